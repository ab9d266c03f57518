// Positions that only a 32-bit kernel or a 32-bit process can show. More than 4 GiB go through one
// ring, where data_head wraps on a 32-bit kernel (K47 to K50; long). A 64-bit kernel may write
// between the two halves of a 64-bit read (K52, K53). lib reads one half, which cannot be torn. A
// reader as most people write it runs for comparison.

#include <bpf/libbpf.h>
#include <gtest/gtest.h>
#include <linux/perf_event.h>
#include <sys/mman.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <variant>

#include "harness/kernel/perf_event.h"
#include "harness/live/emitter.h"
#include "harness/live/live_testing.h"
#include "perfring/os/fd.h"
#include "perfring/os/mapping.h"
#include "perfring/os/syscalls.h"
#include "perfring/perf_event.h"
#include "perfring/perf_event_array.h"
#include "perfring/ring/hardware_memory.h"
#include "perfring/ring/memory.h"

namespace perfring::live {
namespace {

constexpr std::uint64_t kFourGib = std::uint64_t{1} << 32;
constexpr std::uint64_t kBeyond = 64 << 20;
constexpr std::size_t kPages = 64;
constexpr std::uint32_t kBatch = 5;  // so many of the largest records fit the ring

// Sizes that change from batch to batch, so that records lie everywhere and wrap in all ways.
constexpr std::array<std::size_t, 4> kSizes{45000, 44004, 8, 37117};

class FourGibTest : public LiveTest {
 protected:
  // Fills the ring over and over, and calls `drain` each time, until `drain` returns false or more
  // than 4 GiB were written.
  template <class Drain>
  void pump(Drain drain) {
    std::uint64_t first = 0;
    for (std::size_t i = 0; written_ < kFourGib + kBeyond; ++i) {
      const std::size_t size = kSizes[i % kSizes.size()];
      const Emitted emitted = emitter().emit_many(cpu(), size, kBatch, first);
      ASSERT_EQ(emitted.accepted, kBatch) << "after " << written_ << " bytes";
      first += kBatch;
      written_ += kBatch * record_size(size);
      if (!drain(size)) return;
    }
  }

  std::uint64_t written_ = 0;  // ring bytes
};

// K47, K50
TEST_F(FourGibTest, EveryRecordIsDeliveredInOrder) {
  PerfEventArrayBuffer buffer = open(kPages);
  std::uint64_t next = 0;
  std::optional<MappedRing> memory;
  std::uint64_t wrong = 0;
  pump([&](std::size_t size) {
    fill_payload(16);
    buffer.for_each([&](const PerfEvent& event) {
      const auto* const sample = std::get_if<Sample>(&event);
      if (sample == nullptr || sample->size() != raw_size(size)) {
        ++wrong;
        return;
      }
      if (sample->as<std::uint64_t>() != next++) ++wrong;
      if (!memory) memory.emplace(copy_event(event), kPages);
    });
    return wrong == 0;
  });
  EXPECT_EQ(wrong, 0u) << "after " << written_ << " bytes";
  EXPECT_GT(written_, kFourGib);
  EXPECT_FALSE(buffer.readable());
  RecordProperty("records in order", std::to_string(next));
  RecordProperty("bytes through the ring", std::to_string(written_));
  ASSERT_TRUE(memory);
  RecordProperty("data_head at the end", std::to_string(memory->page.data_head));
  EXPECT_EQ(static_cast<std::uint32_t>(memory->page.data_head),
            static_cast<std::uint32_t>(written_));
}

// A 32-bit process may run on a 64-bit kernel.
bool is_kernel_of_32_bits() {
  utsname name{};
  ::uname(&name);
  return sizeof(long) == 4 && std::string{name.machine} != "x86_64";
}

// libbpf's consumer in the same situation (lib/DIVERGENCES.md, "a 32-bit kernel past 4 GiB").
struct Libbpf {
  std::uint64_t next = 0;
  std::uint64_t wrong = 0;
};

bpf_perf_event_ret on_event(void* context, int, perf_event_header* event) {
  auto& libbpf = *static_cast<Libbpf*>(context);
  std::uint64_t number = 0;
  if (event->type == PERF_RECORD_SAMPLE) {
    std::memcpy(&number, reinterpret_cast<const char*>(event) + 12, sizeof(number));
  }
  if (event->type != PERF_RECORD_SAMPLE || number != libbpf.next) ++libbpf.wrong;
  ++libbpf.next;
  // More than any drain of this ring can hold: libbpf walks in circles.
  return libbpf.wrong > 1'000'000 ? LIBBPF_PERF_EVENT_ERROR : LIBBPF_PERF_EVENT_CONT;
}

std::string positions_text(const Libbpf& libbpf, std::uint64_t written) {
  const std::string at = " after " + std::to_string(written) + " bytes";
  if (libbpf.wrong > 1'000'000) {
    return "perf_buffer__consume() did not return: stopped by its callback, which was given more "
           "than a million wrong records" +
           at;
  }
  if (libbpf.wrong != 0) return std::to_string(libbpf.wrong) + " wrong records" + at;
  return "all " + std::to_string(libbpf.next) + " records in order" + at;
}

// K48, K49
TEST_F(FourGibTest, LibbpfHangsOnlyOn32BitKernel) {
  const std::string report = in_child([&] {
    perf_event_attr attr = kernel::bpf_output_attr(/*watermark=*/0);
    int cpu_number = static_cast<int>(cpu());
    int key = cpu_number;
    perf_buffer_raw_opts options{};
    options.sz = sizeof(options);
    options.cpu_cnt = 1;
    options.cpus = &cpu_number;
    options.map_keys = &key;
    Libbpf libbpf;
    const std::unique_ptr<perf_buffer, decltype(&perf_buffer__free)> buffer{
        perf_buffer__new_raw(emitter().map_fd(), kPages, &attr, on_event, &libbpf, &options),
        perf_buffer__free};
    if (buffer == nullptr) return "perf_buffer__new_raw: " + std::string{std::strerror(errno)};
    ::alarm(600);  // libbpf may never call the callback that stops it
    pump([&](std::size_t) {
      perf_buffer__consume(buffer.get());
      return libbpf.wrong == 0;
    });
    return positions_text(libbpf, written_);
  });
  RecordProperty("libbpf " + std::string{libbpf_version_string()}, report);
  const std::string known =
      is_kernel_of_32_bits() ? "perf_buffer__consume() did not return" : "all ";
  EXPECT_EQ(report.substr(0, known.size()), known)
      << "if libbpf has changed, so must lib/DIVERGENCES.md and conformance/FINDINGS.md: "
      << report;
}

// Counts a reader's values. The writer alternates between two positions.
struct Reads {
  std::uint64_t all = 0;
  std::uint64_t torn = 0;  // neither of the two

  Reads& operator+=(const Reads& more) {
    all += more.all;
    torn += more.torn;
    return *this;
  }
};

// Reads until `stop`. `read` returns true if it read one of the two positions.
template <class Read>
Reads watch(const std::atomic<bool>& stop, Read read) {
  Reads reads;
  while (!stop.load(std::memory_order_relaxed)) {
    ++reads.all;
    if (!read()) ++reads.torn;
  }
  return reads;
}

std::uint64_t naive(const SharedPosition& field) {
  return *const_cast<const volatile SharedPosition*>(&field);
}

// Runs both readers at once, each in its thread, while `write` runs.
template <class Write>
std::pair<Reads, Reads> both(const SharedPosition& field, std::uint64_t a, std::uint64_t b,
                             Write write) {
  std::atomic<bool> stop{false};
  Reads by_lib;
  Reads by_others;
  std::thread lib{[&] {
    by_lib = watch(stop, [&] {
      const Position value = HardwareMemory::read_once(field);
      return value == static_cast<Position>(a) || value == static_cast<Position>(b);
    });
  }};
  std::thread others{[&] {
    by_others = watch(stop, [&] {
      const std::uint64_t value = naive(field);
      return value == a || value == b;
    });
  }};
  write();
  stop = true;
  lib.join();
  others.join();
  return {by_lib, by_others};
}

std::string of(const Reads& reads) {
  return std::to_string(reads.torn) + " torn of " + std::to_string(reads.all);
}

#ifdef __i386__
constexpr bool kTears = true;  // arm reads 64 bits at once, even in 32-bit processes
#else
constexpr bool kTears = false;
#endif

// The writer stores 64 bits at once, as a 64-bit kernel does. If others' reads can be torn, the
// test continues until many were: before that it shows nothing about lib's reads.
TEST(TornReadTest, NoReadIsTornWherePositionsCross4GiB) {
  constexpr std::uint64_t kTornMin = 100;
  constexpr int kRoundsMax = 100;
  alignas(8) SharedPosition field = 0xffff'fff8;
  const auto write = [&] {
    const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds{500};
    while (std::chrono::steady_clock::now() < end) {
      for (int i = 0; i < 1000; ++i) {
        __atomic_store_n(&field, std::uint64_t{0x1'0000'0008}, __ATOMIC_RELAXED);
        __atomic_store_n(&field, std::uint64_t{0xffff'fff8}, __ATOMIC_RELAXED);
      }
    }
  };
  Reads by_lib;
  Reads by_others;
  int rounds = 0;
  do {
    const auto [lib, others] = both(field, 0xffff'fff8, 0x1'0000'0008, write);
    by_lib += lib;
    by_others += others;
  } while (kTears && by_others.torn < kTornMin && ++rounds < kRoundsMax);
  EXPECT_GT(by_lib.all, 0u);
  EXPECT_EQ(by_lib.torn, 0u) << of(by_lib);
  if constexpr (kTears) {
    EXPECT_GE(by_others.torn, kTornMin) << "nothing was provoked: " << of(by_others);
  }
  if constexpr (sizeof(void*) == 8) {
    EXPECT_EQ(by_others.torn, 0u) << of(by_others);
  }
  RecordProperty("lib", of(by_lib));
  RecordProperty("a volatile read of 64 bits", of(by_others));
}

// The kernel's own data_head: a ring that is written backwards goes from 0 to 2^64 - 32 with its
// first record, and a new ring begins at 0 again.
class TornLongTest : public LiveTest {};

// K53
TEST_F(TornLongTest, NoReadOfTheKernelsDataHeadIsTorn) {
  if (sizeof(long) == 8 || is_kernel_of_32_bits()) {
    GTEST_SKIP() << "only a 32-bit process on a 64-bit kernel reads what is written at once in two"
                    " halves";
  }
  perf_event_attr attr = kernel::bpf_output_attr(/*watermark=*/0);
  attr.write_backward = 1;
  const std::uint64_t written = -std::uint64_t{record_size(8)};
  Reads lib;
  Reads others;
  for (int round = 0; round < 2000; ++round) {
    const os::Fd event = must(os::perf_event_open(attr, cpu()));
    const os::Mapping mapping = must(os::Mapping::map(event.get(), 2 * os::page_size()));
    must(os::bpf_map_update(emitter().map_fd(), cpu(), static_cast<std::uint32_t>(event.get())));
    const auto& page = *reinterpret_cast<const perf_event_mmap_page*>(mapping.bytes().data());
    const auto [by_lib, by_others] =
        both(page.data_head, 0, written, [&] { ASSERT_EQ(emit(8), 0); });
    ASSERT_EQ(naive(page.data_head), written);
    lib += by_lib;
    others += by_others;
  }
  EXPECT_GT(lib.all, 0u);
  EXPECT_EQ(lib.torn, 0u) << of(lib);
  RecordProperty("lib", of(lib));
  RecordProperty("a volatile read of 64 bits", of(others));
  if (others.torn == 0) GTEST_SKIP() << "no read was torn, so lib's reads are not tested";
}

}  // namespace
}  // namespace perfring::live
