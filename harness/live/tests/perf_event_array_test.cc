// The map's side: who owns entries, how long they last, and the helper's answers (K43, K45). Also
// pinning, on a bpffs of the test's own (K46).

#include <gmock/gmock.h>

#include <bpf/bpf.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "harness/live/emitter.h"
#include "harness/live/live_testing.h"
#include "perfring/os/cpus.h"
#include "perfring/os/fd.h"
#include "perfring/os/syscalls.h"
#include "perfring/perf_buffer.h"
#include "perfring/perf_event_array.h"
#include "perfring/perf_event_array_error.h"

namespace perfring::live {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class PerfEventArrayLiveTest : public LiveTest {};

// K43
TEST_F(PerfEventArrayLiveTest, AnEmptyEntryTakesNoOutput) {
  EXPECT_EQ(emit(8), -ENOENT);
}

// K43
TEST_F(PerfEventArrayLiveTest, AnIndexOutsideTheMapTakesNoOutput) {
  auto emitter = must(Emitter::create(1));
  auto array = must(PerfEventArray::from_fd(emitter.map_fd()));
  EXPECT_EQ(emitter.emit(0, 8, 0), -ENOENT);
  EXPECT_EQ(emitter.emit(0, 8, 1), -E2BIG);
  EXPECT_EQ(emitter.emit(0, 8, 1000), -E2BIG);
}

TEST_F(PerfEventArrayLiveTest, OutputGoesToTheEntryOfItsIndex) {
  auto buffer = must(array().open(cpu()));
  EXPECT_EQ(emitter().emit(cpu(), 8, cpu()), 0);
  EXPECT_EQ(emitter().emit(cpu(), 8), 0);
  EXPECT_EQ(drain(buffer).size(), 2u);
  if (!other_cpu()) return;
  EXPECT_EQ(emitter().emit(cpu(), 8, *other_cpu()), -ENOENT);
}

TEST_F(PerfEventArrayLiveTest, HoldsItsOwnDescriptorOfTheMap) {
  EXPECT_NE(array().fd(), emitter().map_fd());
  EXPECT_EQ(::fcntl(array().fd(), F_GETFD), FD_CLOEXEC);
  emitter().close_map();
  auto buffer = open();
  EXPECT_EQ(emit(8), 0);
}

// K45: the entry ends with the map file through which it was put, so a buffer holds that file.
TEST_F(PerfEventArrayLiveTest, ABufferKeepsItsEntryWhenAllElseIsClosed) {
  std::optional<PerfEventArray> array = must(PerfEventArray::from_fd(emitter().map_fd()));
  std::optional<PerfEventArrayBuffer> buffer = must(array->open(cpu()));
  this->array() = must(PerfEventArray::from_fd(must(Emitter::create()).map_fd()));  // drop it
  emitter().close_map();
  EXPECT_EQ(emit(8), 0);
  array.reset();
  EXPECT_EQ(emit(8), 0);
  EXPECT_EQ(drain(*buffer).size(), 2u);
  {
    PerfEventArrayBuffer moved = *std::move(buffer);
    buffer.reset();
    EXPECT_EQ(emit(8), 0);
    EXPECT_EQ(drain(moved).size(), 1u);
  }
  EXPECT_EQ(emit(8), -ENOENT);  // the program still holds the map, but nobody the file
}

// K45. The same, seen from the kernel: the file keeps the entry, not the event.
TEST_F(PerfEventArrayLiveTest, AnEntryGoesWithTheLastDescriptorOfTheMapFile) {
  PerfBuffer event = must(PerfBuffer::open(cpu()));  // holds no map
  must(os::bpf_map_update(array().fd(), cpu(), static_cast<std::uint32_t>(event.fd())));
  EXPECT_EQ(emit(8), 0);
  emitter().close_map();
  EXPECT_EQ(emit(8), 0);  // array() holds the file
  this->array() = must(PerfEventArray::from_fd(must(Emitter::create()).map_fd()));
  EXPECT_EQ(emit(8), -ENOENT);
  EXPECT_EQ(drain(event).size(), 2u);
}

// K45
TEST_F(PerfEventArrayLiveTest, DestroyingABufferLeavesItsEntry) {
  std::optional<PerfEventArrayBuffer> buffer = open();
  EXPECT_EQ(emit(8), 0);
  buffer.reset();
  EXPECT_EQ(emit(8), -EOPNOTSUPP);  // not ENOENT
}

TEST_F(PerfEventArrayLiveTest, OpeningAnIndexAgainReplacesItsEntry) {
  auto first = open();
  ASSERT_EQ(emit(8), 0);
  auto second = open();
  ASSERT_EQ(emit(8), 0);
  ASSERT_EQ(emit(8), 0);
  EXPECT_EQ(drain(first).size(), 1u);
  EXPECT_EQ(drain(second).size(), 2u);
  {
    auto gone = std::move(first);
  }
  EXPECT_EQ(emit(8), 0);  // the entry is the second's
}

TEST_F(PerfEventArrayLiveTest, BuffersOfAllCpusWorkAtOnce) {
  std::vector<PerfEventArrayBuffer> buffers;
  const auto cpus = os::online_cpus().value();
  for (const std::uint32_t cpu : cpus) buffers.push_back(must(array().open(cpu)));
  for (std::size_t i = 0; i < cpus.size(); ++i) {
    ASSERT_EQ(emitter().emit_many(cpus[i], 8, 10, 1000 * i).accepted, 10u);
  }
  for (std::size_t i = 0; i < cpus.size(); ++i) {
    const auto delivered = drain(buffers[i]);
    ASSERT_EQ(delivered.size(), 10u);
    EXPECT_EQ(delivered[0].number(), 1000 * i);
  }
}

// S7 also holds for a buffer of the map.
TEST_F(PerfEventArrayLiveTest, OptionsReachTheBuffer) {
  auto buffer = open(PerfBufferOptions{.page_count = 16, .wakeup_watermark = 1u << 30});
  const auto mappings = perf_event_mappings();
  ASSERT_EQ(mappings.size(), 1u);
  EXPECT_EQ(mappings[0].size, 17 * os::page_size());
}

TEST_F(PerfEventArrayLiveTest, LeaksNothing) {
  const std::size_t files = open_files();
  {
    auto array = must(PerfEventArray::from_fd(emitter().map_fd()));
    auto buffer = must(array.open(cpu()));
    EXPECT_EQ(open_files(), files + 2);
    const PerfEventArray moved = std::move(array);
    EXPECT_EQ(open_files(), files + 2);
  }
  EXPECT_EQ(open_files(), files);
  EXPECT_FALSE(PerfEventArray::from_fd(0).has_value());
  EXPECT_FALSE(array().open(1u << 20).has_value());
  EXPECT_EQ(open_files(), files);
}

// aya's API since its pull request 1740.

TEST_F(PerfEventArrayLiveTest, ABufferOfItsOwnIsInTheMapFromSetToUnset) {
  auto buffer = must(PerfEventArrayBuffer::open(cpu(), 1));
  EXPECT_EQ(emit(8), -ENOENT);
  must(array().set(cpu(), buffer.fd()));
  EXPECT_EQ(emit(8), 0);
  must(array().unset(cpu()));
  EXPECT_EQ(emit(8), -ENOENT);
  EXPECT_EQ(drain(buffer).size(), 1u);  // earlier records are still there
  must(array().set(cpu(), buffer.fd()));
  EXPECT_EQ(emit(8), 0);
  EXPECT_EQ(drain(buffer).size(), 1u);
}

// K45, as in AnEntryGoesWithTheLastDescriptorOfTheMapFile: this buffer holds no map.
TEST_F(PerfEventArrayLiveTest, SetEntryGoesWithMapThoughBufferLives) {
  std::optional<PerfEventArray> array = must(PerfEventArray::from_fd(emitter().map_fd()));
  this->array() = must(PerfEventArray::from_fd(must(Emitter::create()).map_fd()));  // drop it
  emitter().close_map();
  auto buffer = must(PerfEventArrayBuffer::open(cpu(), 1));
  must(array->set(cpu(), buffer.fd()));
  EXPECT_EQ(emit(8), 0);
  array.reset();
  EXPECT_EQ(emit(8), -ENOENT);
  EXPECT_EQ(drain(buffer).size(), 1u);
}

TEST_F(PerfEventArrayLiveTest, DestroyingSetBufferLeavesEntryUntilUnset) {
  {
    auto buffer = must(PerfEventArrayBuffer::open(cpu(), 1));
    must(array().set(cpu(), buffer.fd()));
    EXPECT_EQ(emit(8), 0);
  }
  EXPECT_EQ(emit(8), -EOPNOTSUPP);
  must(array().unset(cpu()));
  EXPECT_EQ(emit(8), -ENOENT);
}

TEST_F(PerfEventArrayLiveTest, SetLeavesReplacedRingToItsOwner) {
  auto first = open();  // a buffer of the other kind
  auto second = must(PerfEventArrayBuffer::open(cpu(), 4));
  EXPECT_EQ(emit(8), 0);
  must(array().set(cpu(), second.fd()));
  EXPECT_EQ(emit(8), 0);
  EXPECT_EQ(emit(8), 0);
  EXPECT_EQ(drain(first).size(), 1u);
  EXPECT_EQ(drain(second).size(), 2u);
}

// K43: the helper looks for an event of the CPU that it runs on.
TEST_F(PerfEventArrayLiveTest, AnEventOfAnotherCpuTakesNoOutput) {
  if (!other_cpu()) GTEST_SKIP() << "only one CPU is online";
  auto buffer = must(PerfEventArrayBuffer::open(*other_cpu(), 1));
  must(array().set(cpu(), buffer.fd()));
  EXPECT_EQ(emit(8), -EOPNOTSUPP);
  EXPECT_TRUE(drain(buffer).empty());
}

// Returns "call errno | explanation", or "done".
template <class T>
std::string report(const std::expected<T, PerfEventArrayError>& result) {
  if (result) return "done";
  const auto& error = std::get<SyscallError>(result.error().cause);
  return std::string{error.call} + " " + std::to_string(error.io_error.value()) + " | " +
         result.error().message() + " | " + result.error().explain();
}

using PinTest = BpffsTest;

// K46
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

// K45: the pin is another open file of the map, with entries of its own. It keeps the map, not the
// entries.
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
  const std::string output = with_bpffs([&] {
    static_cast<void>(array().pin(path("events").c_str()));
    return report(array().pin(path("events").c_str()));
  });
  EXPECT_THAT(output, testing::StartsWith("bpf_obj_pin " + std::to_string(EEXIST) +
                                          " | `bpf_obj_pin` failed: File exists | "));
  EXPECT_THAT(output, AllOf(HasSubstr("bpf_obj_pin of " + path("events").string()),
                            HasSubstr("remove the existing pin")));
}

TEST_F(PinTest, AMissingFolderOrPinIsNamed) {
  std::string output =
      with_bpffs([&] { return report(array().pin((path("none") / "events").c_str())); });
  EXPECT_THAT(output, AllOf(testing::StartsWith("bpf_obj_pin " + std::to_string(ENOENT)),
                            HasSubstr("give a path that exists")));
  output = with_bpffs([&] { return report(PerfEventArray::from_pin(path("none").c_str())); });
  EXPECT_THAT(output, testing::StartsWith("bpf_obj_get " + std::to_string(ENOENT) +
                                          " | `bpf_obj_get` failed: No such file or directory | "));
  EXPECT_THAT(output, AllOf(HasSubstr("bpf_obj_get of " + path("none").string()),
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
TEST_F(PinTest, APathOutsideABpffsIsReported) {
  const auto outside = std::filesystem::temp_directory_path() / "perfring_not_on_a_bpffs";
  std::string output = report(array().pin(outside.c_str()));
  EXPECT_THAT(output, AllOf(testing::StartsWith("bpf_obj_pin " + std::to_string(EPERM)),
                            HasSubstr("mount -t bpf bpf /sys/fs/bpf")));
  EXPECT_FALSE(std::filesystem::exists(outside));
  output = report(PerfEventArray::from_pin("/proc/self/maps"));
  EXPECT_THAT(output, AllOf(testing::StartsWith("bpf_obj_get " + std::to_string(EACCES)),
                            HasSubstr("mount -t bpf bpf /sys/fs/bpf")));
}

// bpffs reserves names with dots.
TEST_F(PinTest, NameWithDotIsRefusedWithAdvice) {
  const std::string output =
      with_bpffs([&] { return report(array().pin(path("events.1").c_str())); });
  EXPECT_THAT(output,
              AllOf(testing::StartsWith("bpf_obj_pin " + std::to_string(EPERM)), HasSubstr("dot")));
}

}  // namespace
}  // namespace perfring::live
