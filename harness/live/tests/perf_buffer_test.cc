// The life of a PerfBuffer, from open to destruction (S1 to S3, S6, S7), on the live kernel.

#include "perfring/perf_buffer.h"

#include <fcntl.h>
#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>

#include "harness/live/emitter.h"
#include "harness/live/live_testing.h"
#include "perfring/control_flow.h"
#include "perfring/os/syscalls.h"
#include "perfring/perf_event.h"
#include "perfring/perf_event_array.h"

namespace perfring::live {
namespace {

static_assert(!std::is_copy_constructible_v<PerfBuffer> && !std::is_copy_assignable_v<PerfBuffer>);
static_assert(std::is_nothrow_move_constructible_v<PerfBuffer>);
static_assert(std::is_nothrow_move_assignable_v<PerfBuffer>);

class PerfBufferLiveTest : public LiveTest {
 protected:
  // The perf event files that this process has open, and their mappings.
  struct Resources {
    std::size_t files;
    std::size_t mappings;
    bool operator==(const Resources&) const = default;
  };
  static Resources current_resources() {
    return {perf_event_files(), perf_event_mappings().size()};
  }

  // Opens a plain PerfBuffer, and enters it in the map, which the buffer does not hold.
  PerfBuffer open(std::size_t page_count = 2) { return open(array(), cpu(), page_count); }
  static PerfBuffer open(const PerfEventArray& array, std::uint32_t cpu, std::size_t page_count) {
    PerfBuffer buffer = must(PerfBuffer::open(cpu, page_count));
    must(os::bpf_map_update(array.fd(), cpu, static_cast<std::uint32_t>(buffer.fd())));
    return buffer;
  }
};

TEST_F(PerfBufferLiveTest, IsReadyForOutputOnceOpen) {
  auto buffer = open();
  EXPECT_GE(buffer.fd(), 0);
  EXPECT_FALSE(buffer.readable());
  EXPECT_TRUE(drain(buffer).empty());
  EXPECT_EQ(emit(8), 0);
}

// S6
TEST_F(PerfBufferLiveTest, IsReadableUntilDrained) {
  auto buffer = open();
  for (int lap = 0; lap < 3; ++lap) {
    ASSERT_EQ(emit(8), 0);
    EXPECT_TRUE(buffer.readable());
    ASSERT_EQ(emit(8), 0);
    EXPECT_TRUE(buffer.readable());
    EXPECT_EQ(drain(buffer).size(), 2u);
    EXPECT_FALSE(buffer.readable());
  }
}

// S7: the event is enabled last. If the ioctl is a no-op that "succeeds", it never is.
TEST_F(PerfBufferLiveTest, TheEventIsDisabledUntilAllIsInPlace) {
  EXPECT_EQ(in_child([&] {
              refuse(SYS_ioctl, PERF_EVENT_IOC_ENABLE, 0);
              auto buffer = open();
              return std::to_string(emit(8));
            }),
            std::to_string(-EOPNOTSUPP));
}

// S7. A file that survives exec would keep the event, and K45's map entry, alive forever.
TEST_F(PerfBufferLiveTest, TheEventIsClosedOnExec) {
  auto buffer = open();
  EXPECT_EQ(::fcntl(buffer.fd(), F_GETFD), FD_CLOEXEC);
}

// S7: sample_period is 1. An event without a period is not a sampling event, and refuses another
// period.
TEST_F(PerfBufferLiveTest, TheEventHasASamplePeriod) {
  auto buffer = open();
  std::uint64_t period = 1;
  EXPECT_EQ(::ioctl(buffer.fd(), PERF_EVENT_IOC_PERIOD, &period), 0) << errno;
}

TEST_F(PerfBufferLiveTest, MapsRingPlusControlPage) {
  for (const std::size_t page_count : std::initializer_list<std::size_t>{1, 2, 16}) {
    auto buffer = open(page_count);
    const auto mappings = perf_event_mappings();
    ASSERT_EQ(mappings.size(), 1u);
    EXPECT_EQ(mappings[0].size, (1 + page_count) * os::page_size());
    EXPECT_EQ(mappings[0].permissions, "rw-s");
  }
}

TEST_F(PerfBufferLiveTest, DestructionReleasesEverything) {
  ASSERT_EQ(current_resources(), (Resources{0, 0}));
  {
    auto buffer = open();
    EXPECT_EQ(current_resources(), (Resources{1, 1}));
    EXPECT_EQ(emit(8), 0);
  }
  EXPECT_EQ(current_resources(), (Resources{0, 0}));
  EXPECT_EQ(emit(8), -EOPNOTSUPP);
}

#ifdef NDEBUG
constexpr bool kHasAssertions = false;
#else
constexpr bool kHasAssertions = true;
#endif

// K36: the child has no mapping of the ring, but shares the open file of the event.
TEST_F(PerfBufferLiveTest, AForkedChildsCopyIsTheParentsToStop) {
  auto buffer = open();
  ASSERT_EQ(emit(8), 0);
  EXPECT_EQ(in_child([&] {
              if (!perf_event_mappings().empty()) return "mapped";
              {
                const PerfBuffer taken = std::move(buffer);
              }
              return perf_event_files() == 0 ? "closed" : "open";
            }),
            "closed");
  EXPECT_EQ(emit(8), 0) << "still enabled";
  EXPECT_EQ(drain(buffer).size(), 2u);
  EXPECT_EQ(in_child([&] {
              std::signal(SIGSEGV, SIG_DFL);  // a sanitizer has a handler for it
              return std::to_string(buffer.readable());
            }),
            "[killed by signal " + std::to_string(kHasAssertions ? SIGABRT : SIGSEGV) + "]");
}

// Memory that the child maps at the address of the parent's ring stays mapped.
TEST_F(PerfBufferLiveTest, AForkedChildsCopyLeavesTheMemoryAlone) {
  auto buffer = open(1);
  ASSERT_EQ(emit(8), 0);
  const DeliveredEvent first = drain(buffer).at(0);
  EXPECT_EQ(in_child([&] {
              const MappedRing ring{first, 1};
              void* const at = const_cast<perf_event_mmap_page*>(&ring.page);
              const std::size_t length = 2 * os::page_size();
              if (::mmap(at, length, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) != at) {
                return "not mapped";
              }
              {
                const PerfBuffer taken = std::move(buffer);
              }
              return ::msync(at, length, MS_ASYNC) == 0 ? "there" : "gone";
            }),
            "there");
}

TEST_F(PerfBufferLiveTest, MoveConstructionTakesEverything) {
  auto first = open();
  const int fd = first.fd();
  ASSERT_EQ(emit(8), 0);
  {
    PerfBuffer second{std::move(first)};
    EXPECT_EQ(current_resources(), (Resources{1, 1}));
    EXPECT_EQ(second.fd(), fd);
    EXPECT_TRUE(second.readable());
    EXPECT_EQ(emit(8), 0);
    EXPECT_EQ(drain(second).size(), 2u);
  }
  EXPECT_EQ(current_resources(), (Resources{0, 0}));
  EXPECT_EQ(emit(8), -EOPNOTSUPP);
}

TEST_F(PerfBufferLiveTest, AMovedFromBufferIsEmpty) {
  auto first = open();
  ASSERT_EQ(emit(8), 0);
  {
    const PerfBuffer second{std::move(first)};
    EXPECT_EQ(first.fd(), -1);  // NOLINT(bugprone-use-after-move): that is the test
    EXPECT_FALSE(first.readable());
    EXPECT_TRUE(drain(first).empty());
  }
  EXPECT_FALSE(first.readable());  // even after its former ring is unmapped
  EXPECT_TRUE(drain(first).empty());
}

TEST_F(PerfBufferLiveTest, MoveAssignmentReleasesWhatWasThere) {
  auto other_emitter = must(Emitter::create());
  auto other_array = must(PerfEventArray::from_fd(other_emitter.map_fd()));
  PerfBuffer kept = open();
  PerfBuffer other = open(other_array, cpu(), 4);
  ASSERT_EQ(current_resources(), (Resources{2, 2}));
  ASSERT_EQ(other_emitter.emit(cpu(), 8), 0);

  kept = std::move(other);
  EXPECT_EQ(current_resources(), (Resources{1, 1}));
  EXPECT_EQ(perf_event_mappings().at(0).size, 5 * os::page_size());
  EXPECT_EQ(emit(8), -EOPNOTSUPP);
  EXPECT_EQ(other_emitter.emit(cpu(), 8), 0);
  EXPECT_EQ(drain(kept).size(), 2u);
  EXPECT_EQ(other.fd(), -1);  // NOLINT(bugprone-use-after-move)
  EXPECT_FALSE(other.readable());

  other = open();  // a moved-from buffer may hold a ring again
  EXPECT_EQ(emit(8), 0);
  EXPECT_EQ(drain(other).size(), 1u);
}

TEST_F(PerfBufferLiveTest, MoveAssignmentToItselfChangesNothing) {
  auto buffer = open();
  ASSERT_EQ(emit(8), 0);
  PerfBuffer& same = buffer;
  buffer = std::move(same);
  EXPECT_EQ(current_resources(), (Resources{1, 1}));
  EXPECT_EQ(drain(buffer).size(), 1u);
  EXPECT_EQ(emit(8), 0);
}

// S2: data_tail is written when the drain ends, and not before.
TEST_F(PerfBufferLiveTest, DataTailMovesOnceADrain) {
  auto buffer = open(1);
  ASSERT_EQ(emit(4), 0);
  const MappedRing ring{drain(buffer).at(0), 1};
  EXPECT_EQ(ring.page.data_tail, 16u);
  for (int i = 0; i < 3; ++i) ASSERT_EQ(emit(12), 0);
  buffer.for_each([&](const PerfEvent&) { EXPECT_EQ(ring.page.data_tail, 16u); });
  EXPECT_EQ(ring.page.data_tail, 16u + 3 * 24);
  EXPECT_EQ(ring.page.data_tail, ring.page.data_head);
}

// S1: a record that arrives during a drain waits for the next drain.
TEST_F(PerfBufferLiveTest, ADrainEndsWhereDataHeadWas) {
  auto buffer = open();
  ASSERT_EQ(emit(8), 0);
  int count = 0;
  buffer.for_each([&](const PerfEvent&) {
    ++count;
    EXPECT_EQ(emit(8), 0);
  });
  EXPECT_EQ(count, 1);
  EXPECT_TRUE(buffer.readable());
  EXPECT_EQ(drain(buffer).size(), 1u);
}

// S3: the record on which f broke off is consumed, and the records after it are not.
TEST_F(PerfBufferLiveTest, BreakingOffLeavesTheRest) {
  auto buffer = open();
  ASSERT_EQ(emitter().emit_many(cpu(), 8, 5).accepted, 5u);
  const auto flow = buffer.try_fold(0, [](int n, const PerfEvent&) -> ControlFlow<int, int> {
    if (n == 1) return Break{42};
    return Continue{n + 1};
  });
  ASSERT_TRUE(flow.is_break());
  EXPECT_EQ(flow.break_value(), 42);
  const auto rest = drain(buffer);
  ASSERT_EQ(rest.size(), 3u);
  EXPECT_EQ(rest[0].number(), 2u);
}

// S2, S3
TEST_F(PerfBufferLiveTest, ThrowingLeavesTheRest) {
  auto buffer = open();
  ASSERT_EQ(emitter().emit_many(cpu(), 8, 3).accepted, 3u);
  EXPECT_THROW(buffer.for_each([](const PerfEvent&) { throw std::runtime_error("f"); }),
               std::runtime_error);
  const auto rest = drain(buffer);
  ASSERT_EQ(rest.size(), 2u);
  EXPECT_EQ(rest[0].number(), 1u);
}

TEST_F(PerfBufferLiveTest, FoldsWhatItDelivers) {
  auto buffer = open();
  ASSERT_EQ(emitter().emit_many(cpu(), 8, 5).accepted, 5u);
  const auto bytes = buffer.fold(std::size_t{0}, [](std::size_t sum, const PerfEvent& event) {
    const auto& sample = std::get<Sample>(event);
    return sum + sample.size();
  });
  EXPECT_EQ(bytes, 5 * 12u);
}

// K43: the event is for all processes on one CPU. It refuses output from another CPU.
TEST_F(PerfBufferLiveTest, TakesOutputOfItsCpuOnly) {
  if (!other_cpu()) GTEST_SKIP() << "only one CPU is online";
  auto here = open();
  auto there = open(array(), *other_cpu(), 2);
  EXPECT_EQ(emitter().emit(cpu(), 8), 0);
  EXPECT_EQ(drain(here).size(), 1u);
  EXPECT_FALSE(there.readable());
  EXPECT_EQ(emitter().emit(*other_cpu(), 8), 0);
  EXPECT_FALSE(here.readable());
  EXPECT_EQ(drain(there).size(), 1u);
  EXPECT_EQ(emitter().emit(*other_cpu(), 8, cpu()), -EOPNOTSUPP);
  EXPECT_EQ(emitter().emit(cpu(), 8, *other_cpu()), -EOPNOTSUPP);
}

}  // namespace
}  // namespace perfring::live
