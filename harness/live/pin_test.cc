// Pinning, on a bpffs of the test's own (K46).

#include <bpf/bpf.h>
#include <linux/bpf.h>

#include <cerrno>
#include <filesystem>
#include <string>
#include <variant>

#include <gmock/gmock.h>

#include "harness/live/bpffs.h"
#include "harness/live/testing.h"

namespace perfring::live {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// "call errno | explanation", or "done".
template <class T>
std::string report(const std::expected<T, PerfEventArrayError>& result) {
  if (result) return "done";
  const auto& error = std::get<SyscallError>(result.error().cause);
  return std::string{error.call} + " " + std::to_string(error.io_error.value()) + " | " +
         result.error().message() + " | " + result.error().explain();
}

using PinTest = BpffsTest;

TEST_F(PinTest, APinnedArrayCanBeOpenedByItsPath) {
  EXPECT_EQ(with_bpffs([&]() -> std::string {
              if (const auto pinned = array().pin(path("events").c_str()); !pinned)
                return report(pinned);
              auto opened = PerfEventArray::from_pin(path("events").c_str());
              if (!opened) return report(opened);
              auto buffer = must(opened->open(cpu()));
              if (emit(8) != 0) return "no output";
              return std::to_string(drain(buffer).size()) + " record";
            }),
            "1 record");
}

// K45: the pin is another open file of the map, whose entries are its own. It keeps the map, not
// the entries.
TEST_F(PinTest, EntriesDoNotOutliveTheFileThatPutThem) {
  EXPECT_EQ(with_bpffs([&]() -> std::string {
              if (const auto pinned = array().pin(path("events").c_str()); !pinned)
                return report(pinned);
              {
                auto opened = must(PerfEventArray::from_pin(path("events").c_str()));
                auto buffer = must(opened.open(cpu()));
                if (emit(8) != 0) return "no output";
              }
              return std::to_string(emit(8));
            }),
            std::to_string(-ENOENT));
}

TEST_F(PinTest, APathThatExistsIsRefused) {
  const std::string said = with_bpffs([&] {
    static_cast<void>(array().pin(path("events").c_str()));
    return report(array().pin(path("events").c_str()));
  });
  EXPECT_THAT(said, testing::StartsWith("bpf_obj_pin " + std::to_string(EEXIST) +
                                        " | `bpf_obj_pin` failed: File exists | "));
  EXPECT_THAT(said, AllOf(HasSubstr("bpf_obj_pin of " + path("events").string()),
                          HasSubstr("remove the pin that is there")));
}

TEST_F(PinTest, AMissingFolderOrPinIsNamed) {
  std::string said =
      with_bpffs([&] { return report(array().pin((path("none") / "events").c_str())); });
  EXPECT_THAT(said, AllOf(testing::StartsWith("bpf_obj_pin " + std::to_string(ENOENT)),
                          HasSubstr("give a path that exists")));
  said = with_bpffs([&] { return report(PerfEventArray::from_pin(path("none").c_str())); });
  EXPECT_THAT(said, testing::StartsWith("bpf_obj_get " + std::to_string(ENOENT) +
                                        " | `bpf_obj_get` failed: No such file or directory | "));
  EXPECT_THAT(said, AllOf(HasSubstr("bpf_obj_get of " + path("none").string()),
                          HasSubstr("give a path that exists")));
}

TEST_F(PinTest, APinOfAMapOfAnotherTypeIsRefused) {
  EXPECT_EQ(with_bpffs([&]() -> std::string {
              const os::Fd map{bpf_map_create(BPF_MAP_TYPE_ARRAY, nullptr, 4, 4, 1, nullptr)};
              must(os::bpf_pin(map.get(), path("array").c_str()));
              const auto array = PerfEventArray::from_pin(path("array").c_str());
              return array ? "done" : array.error().message();
            }),
            "invalid map type " + std::to_string(BPF_MAP_TYPE_ARRAY));
}

// The kernel refuses these with EPERM or EACCES, although no privilege would help.
TEST_F(PinTest, APathThatIsNotOnABpffsIsToldApart) {
  const auto outside = std::filesystem::temp_directory_path() / "perfring_not_on_a_bpffs";
  std::string said = report(array().pin(outside.c_str()));
  EXPECT_THAT(said, AllOf(testing::StartsWith("bpf_obj_pin " + std::to_string(EPERM)),
                          HasSubstr("mount -t bpf bpf /sys/fs/bpf")));
  EXPECT_FALSE(std::filesystem::exists(outside));
  said = report(PerfEventArray::from_pin("/proc/self/maps"));
  EXPECT_THAT(said, AllOf(testing::StartsWith("bpf_obj_get " + std::to_string(EACCES)),
                          HasSubstr("mount -t bpf bpf /sys/fs/bpf")));
}

// bpffs keeps names with dots for itself.
TEST_F(PinTest, ANameWithADotIsRefusedAndTheAdviceSaysSo) {
  const std::string said =
      with_bpffs([&] { return report(array().pin(path("events.1").c_str())); });
  EXPECT_THAT(said,
              AllOf(testing::StartsWith("bpf_obj_pin " + std::to_string(EPERM)), HasSubstr("dot")));
}

}  // namespace
}  // namespace perfring::live
