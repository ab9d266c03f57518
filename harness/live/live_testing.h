#ifndef HARNESS_LIVE_LIVE_TESTING_H_
#define HARNESS_LIVE_LIVE_TESTING_H_

#include <gtest/gtest.h>
#include <linux/perf_event.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/types.h>

#include <cerrno>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <expected>
#include <filesystem>
#include <functional>
#include <optional>
#include <ostream>
#include <span>
#include <stdexcept>
#include <string>
#include <system_error>
#include <type_traits>
#include <utility>
#include <vector>

#include "harness/live/emitter.h"
#include "harness/program/temporary_folder.h"
#include "perfring/os/syscalls.h"
#include "perfring/perfring.h"

namespace perfring::live {

// A PerfEvent that owns its bytes, and remembers their place in the ring.
struct DeliveredEvent {
  enum class Kind : std::uint8_t { Sample, Lost, Malformed } kind;
  std::vector<std::byte> bytes;  // head, then tail
  std::uint64_t count = 0;       // of a Lost
  Defect defect{};               // of a Malformed
  Bytes head;                    // a place only: the kernel may have overwritten the bytes since
  Bytes tail;

  bool is_sample() const { return kind == Kind::Sample; }
  bool is_lost(std::uint64_t n) const { return kind == Kind::Lost && count == n; }
  bool is_malformed(Defect d) const { return kind == Kind::Malformed && defect == d; }
  // The number that Emitter::emit_many() gave it.
  std::uint64_t number() const;
};
DeliveredEvent copy_event(const PerfEvent& event);
void PrintTo(const DeliveredEvent& copied, std::ostream* out);

// Returns all events that one drain of a PerfBuffer or a PerfEventArrayBuffer delivers.
template <class Buffer>
std::vector<DeliveredEvent> drain(Buffer& buffer) {
  std::vector<DeliveredEvent> all;
  buffer.for_each([&](const PerfEvent& event) { all.push_back(copy_event(event)); });
  return all;
}

// The ring's memory, located by the first record that the kernel wrote there.
struct MappedRing {
  MappedRing(const DeliveredEvent& first, std::size_t page_count);

  const perf_event_mmap_page& page;
  Bytes data;

  bool contains(Bytes slice) const {
    return slice.empty() || (slice.data() >= data.data() &&
                             slice.data() + slice.size() <= data.data() + data.size());
  }
};

// Returns the value, or fails the test with an explanation of the error.
template <class T, class Error>
T must(std::expected<T, Error> result) {
  if (result) {
    if constexpr (std::is_void_v<T>) {
      return;
    } else {
      return *std::move(result);
    }
  }
  if constexpr (std::is_same_v<Error, std::error_code>) {
    throw std::system_error(result.error());
  } else if constexpr (std::is_same_v<Error, std::string>) {
    throw std::runtime_error(result.error());
  } else {
    throw std::runtime_error(result.error().explain());
  }
}

// A record's size in the ring, and the raw size that it states, for a payload of at most 65516
// bytes (K1).
constexpr std::size_t raw_size(std::size_t payload) {
  return (payload + 4 + 7) / 8 * 8 - 4;
}
constexpr std::size_t record_size(std::size_t payload) {
  return 8 + 4 + raw_size(payload);
}
inline constexpr std::size_t kLostSize = 24;  // K14

// Returns how many records of this payload a ring takes: it never fills the last 8 bytes (K12).
constexpr std::size_t capacity(std::size_t ring_size, std::size_t payload) {
  return (ring_size - 1) / record_size(payload);
}

// Base of the tests that need the kernel. Without a live kernel they are skipped, and say why. With
// the environment variable PERFRING_REQUIRE_LIVE set, they fail instead.
class LiveTest : public testing::Test {
 protected:
  void SetUp() override;

  // Opens a ring on cpu(), as that entry of the emitter's map.
  PerfEventArrayBuffer open(const PerfBufferOptions& options = {}) {
    return must(array().open(cpu(), options));
  }
  PerfEventArrayBuffer open(std::integral auto page_count) {
    return must(array().open(cpu(), page_count));
  }

  int emit(std::size_t size) { return emitter().emit(cpu(), size); }

  // Fills payload() with bytes that differ from their neighbours and from other seeds'.
  void fill_payload(std::size_t size, unsigned seed = 0);
  // Whether the event is a Sample of that payload: the bytes at its front, and K1's size.
  testing::AssertionResult is_payload(const DeliveredEvent& copied, std::size_t size);

  Emitter& emitter() { return *emitter_; }
  PerfEventArray& array() { return *array_; }
  // An online CPU, and another if there is one.
  std::uint32_t cpu() const { return cpus_.front(); }
  std::optional<std::uint32_t> other_cpu() const {
    return cpus_.size() < 2 ? std::nullopt : std::optional{cpus_.back()};
  }

 private:
  std::vector<std::uint32_t> cpus_;
  std::optional<Emitter> emitter_;
  std::optional<PerfEventArray> array_;
};

// Base of the tests that need root and a kernel with perf, but no BPF. Skips like LiveTest.
class RootTest : public testing::Test {
 protected:
  void SetUp() override;
};

// The test's own process, and children for changes to a process that cannot be undone.

// The number of descriptors that this process has, and the number of perf events among them.
std::size_t open_files();
std::size_t perf_event_files();

// Whether the kernel opens a breakpoint and then counts no hit of it (R30). Does not use perfring.
// Call it before a test opens its own breakpoint: a processor may have room for only one.
bool breakpoints_are_silent();

// Whether this machine's Linux has that version or a later one.
bool is_linux(int major, int minor);

// A line of /proc/self/maps.
struct MappedFile {
  std::size_t size;
  std::string permissions;  // "rw-s"
};
std::vector<MappedFile> perf_event_mappings();

// Runs `body` in a forked child, and returns the text that `body` returned. The child ends without
// running destructors. If it ends in another way, returns a description in brackets.
std::string in_child(const std::function<std::string()>& body);

// in_child() with tracefs mounted in the usual place.
std::string with_tracefs(const std::function<std::string()>& body);

inline constexpr uid_t kNobody = 65534;

// For children. Gives up root for `user`, and keeps only these capabilities (CAP_...). Throws
// std::system_error.
void become(uid_t user, std::span<const int> capabilities = {});

// For children. From now on, system call `number` fails with `error_number`; in the second form,
// only if its second argument is `second`. Throws std::system_error.
void refuse(long number, int error_number);
void refuse(long number, std::uint32_t second, int error_number);

// A LiveTest with a bpffs of its own; skipped if none can be mounted.
class BpffsTest : public LiveTest {
 protected:
  void SetUp() override {
    LiveTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    if (const std::string output = with_bpffs([] { return "mounted"; }); output != "mounted") {
      GTEST_SKIP() << "no bpffs can be mounted in a namespace of one's own: " << output;
    }
  }

  // Runs `body` in a child, with a bpffs at root_ that only the child sees and that ends with it.
  std::string with_bpffs(const std::function<std::string()>& body) {
    return in_child([&]() -> std::string {
      if (::unshare(CLONE_NEWNS) != 0) return std::string{"unshare: "} + std::strerror(errno);
      if (::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) {
        return std::string{"making / private: "} + std::strerror(errno);
      }
      if (::mount("bpf", root_.path().c_str(), "bpf", 0, nullptr) != 0) {
        return std::string{"mount: "} + std::strerror(errno);
      }
      return body();
    });
  }

  std::filesystem::path path(const char* name) const { return root_.path() / name; }

 private:
  TemporaryFolder root_;
};

}  // namespace perfring::live

#endif  // HARNESS_LIVE_LIVE_TESTING_H_
