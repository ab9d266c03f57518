#ifndef PERFRING_TESTING_FAKE_SET_H_
#define PERFRING_TESTING_FAKE_SET_H_

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/perf_event.h>
#include <sys/types.h>
#include <unistd.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "perfring/merge/merge.h"
#include "perfring/os/syscalls.h"
#include "perfring/perf_event.h"
#include "perfring/perf_event_array.h"
#include "perfring/rings/ring_set.h"
#include "perfring/rings/ring_set_options.h"
#include "perfring/testing/fake_kernel.h"

namespace perfring::testing {

// A RingSet on the kernel's stand-in, and its rings for the test to write to.
class FakeSetTest : public ::testing::Test {
 protected:
  static constexpr std::size_t kRecord = 24;  // size of a record that write() writes

  FakeSetTest() : map_fd_{::open("/dev/null", O_RDONLY | O_CLOEXEC)} { online("0-1"); }
  ~FakeSetTest() override { ::close(map_fd_); }

  void online(const std::string& list) {
    kernel_.files["/sys/devices/system/cpu/online"] = list + "\n";
  }
  auto try_open(const RingSetOptions& options = small()) {
    return RingSet::open(PerfEventArray::from_fd(map_fd_).value(), options);
  }
  RingSet open(const RingSetOptions& options = small()) { return try_open(options).value(); }
  static RingSetOptions small() {
    RingSetOptions options;
    options.page_count = 1;
    options.longest_wait = std::chrono::seconds{10};
    options.follows_cpus = false;
    return options;
  }

  // Returns the event in this entry of the map.
  int event_of(unsigned cpu) const {
    int event = -1;
    for (const auto& [key, value] : kernel_.updates) {
      if (key == cpu) event = static_cast<int>(value);
    }
    return event;
  }
  // Returns the event that owns the ring: the first in this entry.
  int ring_of(unsigned cpu) const {
    for (const auto& [key, value] : kernel_.updates) {
      if (key == cpu) return static_cast<int>(value);
    }
    return -1;
  }

  // Publishes a sample on the CPU's ring: its key, followed by the number.
  void write(unsigned cpu, std::uint64_t key, std::uint32_t number = 0) {
    std::uint64_t& head = heads_[cpu];
    const std::size_t page = page_size();
    const perf_event_header header{PERF_RECORD_SAMPLE, 0, kRecord};
    std::byte record[kRecord];
    const std::uint32_t raw = 12;
    __builtin_memcpy(record, &header, 8);
    __builtin_memcpy(record + 8, &raw, 4);
    __builtin_memcpy(record + 12, &key, 8);
    __builtin_memcpy(record + 20, &number, 4);
    for (std::size_t i = 0; i != kRecord; ++i) {
      put(cpu, record + i, 1, page + static_cast<std::size_t>((head + i) % page));
    }
    head += kRecord;
    put(cpu, &head, 8, offsetof(perf_event_mmap_page, data_head));
  }
  // Does the same for a timed set: the time, and 4 bytes.
  void write_timed(unsigned cpu, std::uint64_t time) {
    std::uint64_t& head = heads_[cpu];
    const std::size_t page = page_size();
    const perf_event_header header{PERF_RECORD_SAMPLE, 0, kRecord};
    const std::uint32_t raw[]{4, 0xcafe};
    put(cpu, &header, 8, page + static_cast<std::size_t>(head % page));
    put(cpu, &time, 8, page + static_cast<std::size_t>((head + 8) % page));
    put(cpu, raw, 8, page + static_cast<std::size_t>((head + 16) % page));
    head += kRecord;
    put(cpu, &head, 8, offsetof(perf_event_mmap_page, data_head));
  }
  std::uint64_t tail(unsigned cpu) const {
    std::uint64_t tail = 0;
    EXPECT_EQ(::pread(ring_of(cpu), &tail, 8, offsetof(perf_event_mmap_page, data_tail)), 8);
    return tail;
  }
  void put(unsigned cpu, const void* from, std::size_t length, std::size_t at) const {
    ASSERT_EQ(::pwrite(ring_of(cpu), from, length, static_cast<off_t>(at)),
              static_cast<ssize_t>(length));
  }

  // Returns the calls since the last call of this function.
  std::vector<std::string> calls() { return std::exchange(kernel_.calls, {}); }

  FakeKernel kernel_;
  int map_fd_;
  std::map<unsigned, std::uint64_t> heads_;  // of rings of one page
};

// The CPU and the key of an event, as a callback gets them.
using Keys = std::vector<std::pair<std::uint32_t, std::uint64_t> >;

inline std::uint64_t key_of(const PerfEvent& event) {
  const auto* const sample = std::get_if<Sample>(&event);
  return sample != nullptr ? sample->as<std::uint64_t>().value_or(0) : 0;
}

// Collects the CPU and the key of each event.
struct Collect {
  void operator()(std::uint32_t cpu, const PerfEvent& event) {
    keys.emplace_back(cpu, key_of(event));
  }
  void operator()(std::uint32_t cpu, const Ordered& ordered) {
    keys.emplace_back(cpu, ordered.key);
  }
  Keys keys;
};

// The suites, which are in several files: rounds and merges; CPUs and the latency.
class RingSetTest : public FakeSetTest {
 protected:
  Collect collected_;
  int calls_ = 0;  // of a callback
};

class RingSetCpusTest : public FakeSetTest {
 protected:
  static std::string of(const char* call, int fd, const char* rest = "") {
    return call + std::string{" "} + std::to_string(fd) + rest;
  }
  Collect collected_;
};

}  // namespace perfring::testing

#endif  // PERFRING_TESTING_FAKE_SET_H_
