// ring_ordering_faults NAME: runs a producer and a consumer thread over a ring of 256 bytes,
// through the real memory policy ("none") or through one with an edge removed. Prints how many
// records arrived whole and in order, and exits 0 if all did. Under ThreadSanitizer, a missing edge
// is a data race: it is reported, and the exit code is 66.
//
// harness/faults plants more faults under ThreadSanitizer. These two are here because a test that
// reports no race must be able to report one.

#include <linux/perf_event.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <optional>
#include <string_view>
#include <thread>
#include <utility>
#include <variant>

#include "perfring/control_flow.h"
#include "perfring/perf_event.h"
#include "perfring/ring/cursor.h"
#include "perfring/ring/default_memory.h"
#include "perfring/ring/ring.h"
#include "perfring/testing/missing_edges.h"

namespace perfring {
namespace {

constexpr std::size_t kSize = 256;
constexpr std::uint64_t kRecords = 5000;  // the threads alternate once per seven records

alignas(64) perf_event_mmap_page page;
alignas(64) std::byte data[kSize];

using NoAcquireFence = testing::NoAcquireFence<DefaultMemory>;
using NoFullFence = testing::NoFullFence<DefaultMemory>;

// The number of words in payload i; each word is i.
std::size_t words_of(std::uint64_t i) {
  return 1 + i % 4;
}

// Produces like the kernel, with the compiler's own release and acquire for its barriers
// (kernel/events/ring_buffer.c: __perf_output_begin, perf_output_put_handle).
void produce() {
  std::uint64_t head = 0;
  const auto put = [&](std::uint64_t at, const void* from, std::size_t length) {
    for (std::size_t i = 0; i < length; ++i) {
      data[(at + i) % kSize] = static_cast<const std::byte*>(from)[i];
    }
  };
  for (std::uint64_t i = 0; i < kRecords; ++i) {
    const std::size_t raw = words_of(i) * 8 + 4;
    const std::size_t need = 12 + raw;
    while (((__atomic_load_n(&page.data_tail, __ATOMIC_ACQUIRE) - head - 1) & (kSize - 1)) < need) {
      std::this_thread::yield();
    }
    const perf_event_header header{PERF_RECORD_SAMPLE, 0, static_cast<std::uint16_t>(need)};
    const auto raw_size = static_cast<std::uint32_t>(raw);
    put(head, &header, sizeof(header));
    put(head + 8, &raw_size, sizeof(raw_size));
    for (std::size_t word = 0; word < words_of(i); ++word) put(head + 12 + 8 * word, &i, 8);
    head += need;
    __atomic_store_n(&page.data_head, head, __ATOMIC_RELEASE);
  }
}

// Checks that each record arrives whole and in order.
class Check {
 public:
  void operator()(const PerfEvent& event) {
    const auto* sample = std::get_if<Sample>(&event);
    if (sample == nullptr || sample->size() != words_of(next_) * 8 + 4) {
      ++wrong_;
      ++next_;
      return;
    }
    std::byte words[36];
    sample->copy_to(words);
    for (std::size_t word = 0; word < words_of(next_); ++word) {
      if (std::memcmp(words + 8 * word, &next_, 8) != 0) ++wrong_;
    }
    ++next_;
  }
  bool is_done() const { return next_ >= kRecords; }
  std::uint64_t wrong() const { return wrong_; }

 private:
  std::uint64_t next_ = 0;
  std::uint64_t wrong_ = 0;
};

using Drain = void (*)(Check&);

template <class M>
void whole_drains(Check& check) {
  Ring<M>::over(page, data)->for_each(check);
}

// Commits after each record: slow but right.
void commit_each(Check& check) {
  static_cast<void>(Ring<>::over(page, data)
                        ->try_fold(Unit{}, [&](Unit, const PerfEvent& event) -> ControlFlow<> {
                          check(event);
                          return Break{};
                        }));
}

// Drains by a Cursor that releases each record once it has the next, if need be from a second look.
template <class M>
void hold_records(Check& check) {
  Cursor<M> cursor = *Cursor<M>::over(page, data);
  std::optional<typename Cursor<M>::Record> oldest;
  const auto give_back = [&] {
    if (!oldest) return;
    check(oldest->event());
    cursor.release(oldest->end());
  };
  for (int look = 0; look < 2; ++look) {
    cursor.look();
    while (auto record = cursor.next()) {
      give_back();
      oldest = record;
    }
  }
  give_back();
}

const std::pair<std::string_view, Drain> kDrains[] = {
    {"none", whole_drains<DefaultMemory>},
    {"commit_each", commit_each},
    {"cursor", hold_records<DefaultMemory>},
    {"cursor_no_acquire_fence", hold_records<NoAcquireFence>},
    {"cursor_no_full_fence", hold_records<NoFullFence>},
    {"no_acquire_fence", whole_drains<NoAcquireFence>},
    {"no_full_fence", whole_drains<NoFullFence>},
};

int run(Drain drain) {
  ::alarm(250);  // ends the program if a record never arrives
  Check check;
  std::thread producer{produce};
  while (!check.is_done()) {
    drain(check);
    std::this_thread::yield();
  }
  producer.join();
  std::printf("%llu records, %llu wrong\n", static_cast<unsigned long long>(kRecords),
              static_cast<unsigned long long>(check.wrong()));
  return check.wrong() == 0 ? 0 : 1;
}

}  // namespace
}  // namespace perfring

int main(int argc, char** argv) {
  for (const auto& [name, drain] : perfring::kDrains) {
    if (argc == 2 && name == argv[1]) return perfring::run(drain);
  }
  std::fprintf(stderr, "usage: ring_ordering_faults NAME, one of:\n");
  for (const auto& [name, drain] : perfring::kDrains) {
    std::fprintf(stderr, "  %.*s\n", static_cast<int>(name.size()), name.data());
  }
  return 2;
}
