// Events and their mappings: K35 to K37, K40, K42, and refusals.

#include "harness/kernel/perf_event.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <chrono>
#include <optional>
#include <type_traits>

#include "harness/kernel/kernel_testing.h"

namespace perfring::kernel {
namespace {

// The caller chooses the id: it does not depend on earlier events.
TEST(PerfEventOpenTest, TheEventHasTheRequestedId) {
  EXPECT_EQ(must(perf_event_open(bpf_output(), 3, 5))->id, 5u);
  EXPECT_EQ(must(perf_event_open(bpf_output(), 3, 5))->id, 5u);
  EXPECT_EQ(must(perf_event_open(bpf_output(), 3, ~__u64{0}))->id, ~__u64{0});
}

int open_error(const perf_event_attr& attr, int cpu = 3) {
  const auto event = perf_event_open(attr, cpu, 8);
  return event ? 0 : event.error();
}

TEST(PerfEventOpenTest, RefusesAnEventThatIsNotSimulated) {
  EXPECT_EQ(open_error(bpf_output()), 0);
  EXPECT_EQ(open_error(bpf_output(), 0), 0);
  EXPECT_EQ(open_error(bpf_output(), -1), -EINVAL);
  EXPECT_EQ(open_error(bpf_output(PERF_SAMPLE_CALLCHAIN)), -EINVAL);
  EXPECT_EQ(open_error(bpf_output(PERF_SAMPLE_RAW | PERF_SAMPLE_READ)), -EINVAL);
  perf_event_attr attr = bpf_output();
  attr.type = PERF_TYPE_HARDWARE;
  EXPECT_EQ(open_error(attr), -EINVAL);
  attr = bpf_output();
  attr.config = PERF_COUNT_SW_DUMMY;
  EXPECT_EQ(open_error(attr), -EINVAL);
}

TEST(PerfEventOpenTest, DisabledEventRefusesOutputUntilEnabled) {
  RingSetup setup;
  setup.attr.disabled = 1;
  TestRing ring{setup};
  EXPECT_EQ(ring.output(4), -EOPNOTSUPP);
  perf_event_enable(*ring.event);
  EXPECT_EQ(ring.output(4), 0);
}

TEST(PerfEventOpenTest, AnEventOfCpu0RunsNowhereWhileItIsDisabled) {
  perf_event_attr attr = bpf_output();
  EXPECT_EQ(must(perf_event_open(attr, 0, 7))->oncpu, 0);
  attr.disabled = 1;
  const perf_file event = must(perf_event_open(attr, 0, 7));
  EXPECT_EQ(event->oncpu, -1);
  perf_event_enable(*event);
  EXPECT_EQ(event->oncpu, 0);
  perf_event_disable(*event);
  EXPECT_EQ(event->oncpu, -1);
  perf_event_enable(*event);
  perf_event_exit_cpu(*event);
  EXPECT_EQ(event->oncpu, -1);
  perf_event_enable(*event);
  EXPECT_EQ(event->oncpu, -1) << "it has no CPU any more";
}

TEST(BpfOutputAttrTest, SamplesEachRecordWithRequestedWakeup) {
  const perf_event_attr attr = bpf_output_attr(/*watermark=*/0, /*wakeup_events=*/5);
  EXPECT_EQ(attr.size, sizeof attr);
  EXPECT_EQ(attr.type, __u32{PERF_TYPE_SOFTWARE});
  EXPECT_EQ(attr.config, __u64{PERF_COUNT_SW_BPF_OUTPUT});
  EXPECT_EQ(attr.sample_type, __u64{PERF_SAMPLE_RAW});
  EXPECT_EQ(attr.sample_period, 1u);
  EXPECT_EQ(attr.watermark, 0u);
  EXPECT_EQ(attr.wakeup_events, 5u);
  EXPECT_EQ(bpf_output_attr(64, 5).watermark, 1u);
  EXPECT_EQ(bpf_output_attr(64, 5).wakeup_watermark, 64u);
}

// The event lost its ring after its irq_work was queued.
TEST(PerfPendingIrqTest, AnEventWithoutARingWakesNobody) {
  const perf_file event = must(perf_event_open(bpf_output(), 3, 8));
  perf_pending_irq(*event);
  EXPECT_EQ(perf_poll(*event), unsigned{EPOLLHUP});
}

TEST(HardwareCpuTest, TheClockIsTheSteadyClock) {
  const auto now = [] {
    return static_cast<__u64>(
        std::chrono::nanoseconds{std::chrono::steady_clock::now().time_since_epoch()}.count());
  };
  const __u64 before = now();
  const __u64 time = HardwareCpu{}.clock();
  EXPECT_LE(before, time);
  EXPECT_LE(time, now());
}

// Maps `size` bytes for a new event. Returns the error.
int mmap_error(std::size_t size) {
  std::vector<__u64> memory(size / sizeof(__u64) + 1);
  const auto bytes = std::as_writable_bytes(std::span{memory}).first(size);
  const auto mapping = perf_mmap(must(perf_event_open(bpf_output(), 3, 8)), bytes);
  return mapping ? 0 : mapping.error();
}

// K35
TEST(PerfMmapTest, TakesNoDataPagesOrAPowerOfTwo) {
  for (const std::size_t pages : {0u, 1u, 2u, 4u, 8u, 64u}) {
    EXPECT_EQ(mmap_error((1 + pages) * kPage), 0) << pages;
  }
  for (const std::size_t pages : {3u, 5u, 6u, 7u, 9u, 63u}) {
    EXPECT_EQ(mmap_error((1 + pages) * kPage), -EINVAL) << pages;
  }
  EXPECT_EQ(mmap_error(0), -EINVAL);
  EXPECT_EQ(mmap_error(100), -EINVAL);
  EXPECT_EQ(mmap_error(kPage + 8), -EINVAL);
  EXPECT_EQ(mmap_error(2 * kPage - 8), -EINVAL);
  EXPECT_EQ(mmap_error(3 * kPage + 8), -EINVAL);
}

// K35, K43: a ring with no data pages refuses all output and counts nothing.
TEST(PerfMmapTest, ARingOfNoDataPagesTakesNothing) {
  TestRing ring{{.pages = 0}};
  EXPECT_EQ(ring.output(4), -ENOSPC);
  EXPECT_EQ(ring.event->lost_samples, 0u);
  EXPECT_EQ(perf_event_pause_output(*ring.event, false), -EINVAL);
  EXPECT_EQ(ring.output(4), -ENOSPC);
  EXPECT_EQ(ring.page().data_size, 0u);
}

// K37
TEST(PerfMmapTest, FillsThePage) {
  static_assert(offsetof(perf_event_mmap_page, data_head) == 1024);
  static_assert(offsetof(perf_event_mmap_page, data_tail) == 1032);
  static_assert(offsetof(perf_event_mmap_page, data_offset) == 1040);
  static_assert(offsetof(perf_event_mmap_page, data_size) == 1048);
  TestRing ring{{.pages = 4}};
  EXPECT_EQ(ring.page().data_head, 0u);
  EXPECT_EQ(ring.page().data_tail, 0u);
  EXPECT_EQ(ring.page().data_offset, 4096u);
  EXPECT_EQ(ring.page().data_size, 16384u);
  EXPECT_EQ(ring.page().size, offsetof(perf_event_mmap_page, __reserved));
  EXPECT_EQ(ring.page().cap_bit0, 0u);
  EXPECT_EQ(ring.page().cap_bit0_is_deprecated, 1u);
  EXPECT_EQ(reinterpret_cast<std::byte*>(&ring.page()), ring.bytes().data());
  EXPECT_EQ(ring.rb().data_pages, ring.bytes().data() + 4096);
}

// Pages of another size, as on some arm64 kernels.
TEST(PerfMmapTest, TakesPagesOfAnySize) {
  std::vector<__u64> memory(2 * 65536 / 8);
  const perf_file event = must(perf_event_open(bpf_output(), 3, 8));
  const auto bytes = std::as_writable_bytes(std::span{memory});
  const perf_mapping mapping = must(perf_mmap(event, bytes, true, 16));
  EXPECT_EQ(mapping.rb().nr_pages, 1u);
  EXPECT_EQ(mapping.rb().user_page->data_offset, 65536u);
  EXPECT_EQ(mapping.rb().user_page->data_size, 65536u);
  EXPECT_EQ(perf_mmap(event, bytes, true, 17).error(), -EINVAL);
}

// K36
TEST(PerfMmapTest, ASecondMappingIsOfTheSameRingOnly) {
  TestRing ring;
  std::vector<__u64> other(3 * kPage / 8);
  const auto others = std::as_writable_bytes(std::span{other});
  EXPECT_EQ(perf_mmap(ring.event, others).error(), -EINVAL);                   // another size
  EXPECT_EQ(perf_mmap(ring.event, others.first(2 * kPage)).error(), -EINVAL);  // other memory
  EXPECT_EQ(perf_mmap(ring.event, ring.bytes().first(kPage)).error(), -EINVAL);
  std::optional<perf_mapping> again = must(perf_mmap(ring.event, ring.bytes()));
  EXPECT_EQ(&again->rb(), &ring.rb());
  again.reset();
  EXPECT_EQ(ring.output(4), 0);  // the first mapping is still there
  again = must(perf_mmap(ring.event, ring.bytes()));
  {
    const perf_mapping unmaps = std::move(ring.mapping);
  }
  EXPECT_EQ(ring.output(4), 0);
  again.reset();
  EXPECT_EQ(ring.output(4), -ENOSPC);
}

TEST(PerfMmapTest, AMappingCanBeReplaced) {
  TestRing one, two;
  perf_buffer* const rb = &two.rb();
  one.mapping = std::move(two.mapping);
  EXPECT_EQ(perf_poll(*one.event), unsigned{EPOLLHUP});  // its own ring is gone
  EXPECT_EQ(&one.mapping.rb(), rb);
  EXPECT_EQ(two.output(4), 0);
  {
    const perf_mapping unmaps = std::move(one.mapping);
  }
  EXPECT_EQ(two.output(4), -ENOSPC);
}

perf_file event_like(const perf_event_attr& attr, int cpu = 3) {
  return must(perf_event_open(attr, cpu, 8));
}

// K42
TEST(PerfEventSetOutputTest, RefusesATargetThatTheKernelRefuses) {
  TestRing ring;
  perf_event& target = *ring.event;
  EXPECT_EQ(perf_event_set_output(target, &target), -EINVAL);
  EXPECT_EQ(perf_event_set_output(*event_like(bpf_output(), 2), &target), -EINVAL);
  perf_event_attr attr = bpf_output();
  attr.use_clockid = 1;
  EXPECT_EQ(perf_event_set_output(*event_like(attr), &target), -EINVAL);
  attr = bpf_output();
  attr.write_backward = 1;
  EXPECT_EQ(perf_event_set_output(*event_like(attr), &target), -EINVAL);
  TestRing mapped;
  EXPECT_EQ(perf_event_set_output(*mapped.event, &target), -EINVAL);
  EXPECT_EQ(perf_event_set_output(*mapped.event, nullptr), -EINVAL);
  EXPECT_EQ(perf_event_set_output(*event_like(bpf_output()), event_like(bpf_output()).get()),
            -EINVAL);  // no ring
  const perf_file redirected = event_like(bpf_output());
  EXPECT_EQ(perf_event_set_output(*redirected, &target), 0);
  EXPECT_EQ(perf_event_set_output(*redirected, redirected.get()), -EINVAL);
}

// K42: clockid selects a clock only with use_clockid.
TEST(PerfEventSetOutputTest, ComparesTheClocksThatAreUsed) {
  perf_event_attr attr = bpf_output();
  attr.clockid = 4;
  TestRing unused{{.attr = attr}};
  EXPECT_EQ(perf_event_set_output(*event_like(bpf_output()), unused.event.get()), 0);
  attr.use_clockid = 1;
  EXPECT_EQ(perf_event_set_output(*event_like(attr), unused.event.get()), -EINVAL);
  TestRing used{{.attr = attr}};
  EXPECT_EQ(perf_event_set_output(*event_like(attr), used.event.get()), 0);
  attr.clockid = 1;
  EXPECT_EQ(perf_event_set_output(*event_like(attr), used.event.get()), -EINVAL);
}

// An event that redirects its output, and the two ways to undo it.
TEST(PerfEventSetOutputTest, RedirectionLastsUntilUndone) {
  TestRing ring;
  std::optional<perf_file> second = event_like(bpf_output());
  ASSERT_EQ(ring.file.update_elem(1, *second), 0);
  ASSERT_EQ(perf_event_set_output(**second, ring.event.get()), 0);
  EXPECT_EQ(ring.output(4, 1), 0);
  EXPECT_EQ(ring.head(), 16u);
  EXPECT_EQ(perf_event_set_output(**second, nullptr), 0);
  EXPECT_EQ(ring.output(4, 1), -ENOSPC);
  EXPECT_EQ(ring.rb().event_list.size(), 1u);
  ASSERT_EQ(perf_event_set_output(**second, ring.event.get()), 0);
  EXPECT_EQ(ring.rb().event_list.size(), 2u);
  ASSERT_EQ(ring.file.delete_elem(1), 0);
  second.reset();
  EXPECT_EQ(ring.rb().event_list.size(), 1u);  // the event has left the list
}

TEST(PerfEventSetOutputTest, TheLastUnmappingOfTheRingEndsTheRedirection) {
  for (const bool mapped_by_both : {false, true}) {
    TestRing ring;
    const perf_file second = event_like(bpf_output());
    ASSERT_EQ(ring.file.update_elem(1, second), 0);
    ASSERT_EQ(perf_event_set_output(*second, ring.event.get()), 0);
    std::optional<perf_mapping> other;
    if (mapped_by_both) other = must(perf_mmap(second, ring.bytes()));
    {
      const perf_mapping unmaps = std::move(ring.mapping);
    }
    EXPECT_EQ(ring.output(4, 0), -ENOSPC);
    EXPECT_EQ(ring.output(4, 1), mapped_by_both ? 0 : -ENOSPC);
    EXPECT_EQ(perf_poll(*second), mapped_by_both ? kReadable : unsigned{EPOLLHUP});
    other.reset();
    EXPECT_EQ(ring.output(4, 1), -ENOSPC);
    EXPECT_EQ(perf_poll(*second), unsigned{EPOLLHUP});
  }
}

// Waiters are woken when the event gets another ring, but not when it gets its first.
TEST(PerfEventSetOutputTest, WakesTheWaitersOfTheOldRing) {
  struct Waiter : wait_queue_entry {
    int woken = 0;
    void wake() override { ++woken; }
  } waiter;
  TestRing ring;
  const perf_file second = event_like(bpf_output());
  second->waitq.push_back(&waiter);
  ASSERT_EQ(perf_event_set_output(*second, ring.event.get()), 0);
  EXPECT_EQ(waiter.woken, 0);
  TestRing other;
  ASSERT_EQ(perf_event_set_output(*second, other.event.get()), 0);
  EXPECT_EQ(waiter.woken, 1);
  ASSERT_EQ(perf_event_set_output(*second, nullptr), 0);
  EXPECT_EQ(waiter.woken, 2);
  second->waitq.clear();
}

TEST(PerfEventPauseOutputTest, NeedsARing) {
  EXPECT_EQ(perf_event_pause_output(*event_like(bpf_output()), true), -EINVAL);
}

}  // namespace
}  // namespace perfring::kernel
