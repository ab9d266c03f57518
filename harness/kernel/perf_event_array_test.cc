// The map and the helper's codes: K43 to K45.

#include "harness/kernel/perf_event_array.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <optional>

#include "harness/kernel/testing.h"

namespace perfring::kernel {
namespace {

// K43
TEST(BpfPerfEventOutputTest, EachWrongArgumentHasItsErrorCode) {
  TestRing ring;  // of 8 entries, of which 0 is the event
  EXPECT_EQ(ring.output(4, 8), -E2BIG);
  EXPECT_EQ(ring.output(4, 0xffff'fffe), -E2BIG);
  EXPECT_EQ(ring.output(4, 1), -ENOENT);
  EXPECT_EQ(ring.output(4, 7), -ENOENT);
  EXPECT_EQ(ring.output(4, __u64{1} << 32), -EINVAL);  // flags that there are not
  EXPECT_EQ(ring.output(4, 0), 0);
  ring.cpu.id = 2;
  EXPECT_EQ(ring.output(4, 0), -EOPNOTSUPP);
  ring.cpu.id = 3;
  perf_event_disable(*ring.event);
  EXPECT_EQ(ring.output(4, 0), -EOPNOTSUPP);
  perf_event_enable(*ring.event);
  EXPECT_EQ(ring.output(4, 0), 0);
  EXPECT_EQ(ring.output(5000, 0), -ENOSPC);
  perf_event_pause_output(*ring.event, true);
  EXPECT_EQ(ring.output(4, 0), -ENOSPC);
  EXPECT_EQ(ring.cpu.bpf_trace_nest_level, 0);
}

// K43: and it counts nothing.
TEST(BpfPerfEventOutputTest, AnEventWithoutARingIsENOSPC) {
  TestRing ring;
  const perf_file unmapped = must(perf_event_open(bpf_output(), 3, 8));
  ASSERT_EQ(ring.file.update_elem(1, unmapped), 0);
  EXPECT_EQ(ring.output(4, 1), -ENOSPC);
  EXPECT_EQ(unmapped->lost_samples, 0u);
}

// K43: but what else is wrong is said first.
TEST(BpfPerfEventOutputTest, AnotherCpuIsReportedBeforeTheLackOfARing) {
  TestRing ring;
  const perf_file elsewhere = must(perf_event_open(bpf_output(), 2, 9));
  ASSERT_EQ(ring.file.update_elem(1, elsewhere), 0);
  EXPECT_EQ(ring.output(4, 1), -EOPNOTSUPP);
  const perf_file disabled = must(perf_event_open(bpf_output(), 3, 8));
  perf_event_disable(*disabled);
  ASSERT_EQ(ring.file.update_elem(1, disabled), 0);
  EXPECT_EQ(ring.output(4, 1), -EOPNOTSUPP);
  disabled->attr.config = PERF_COUNT_SW_DUMMY;
  EXPECT_EQ(ring.output(4, 1), -EINVAL);
}

// K43: an event of another kind, which this kernel would not open.
TEST(BpfPerfEventOutputTest, AnEventThatIsNoBpfOutputIsEINVAL) {
  TestRing ring;
  ring.event->attr.type = PERF_TYPE_HARDWARE;
  EXPECT_EQ(ring.output(4), -EINVAL);
  ring.event->attr.type = PERF_TYPE_SOFTWARE;
  ring.event->attr.config = PERF_COUNT_SW_DUMMY;
  EXPECT_EQ(ring.output(4), -EINVAL);
}

TEST(BpfPerfEventOutputTest, CurrentCpuIsAnIndex) {
  TestRing ring;  // whose CPU is 3
  EXPECT_EQ(ring.output(4, BPF_F_CURRENT_CPU), -ENOENT);
  ASSERT_EQ(ring.file.update_elem(3, ring.event), 0);
  EXPECT_EQ(ring.output(4, BPF_F_CURRENT_CPU), 0);
  EXPECT_EQ(ring.head(), 16u);
}

// K44
TEST(BpfMapFileTest, EachWrongUpdateHasItsErrorCode) {
  TestRing ring;
  EXPECT_EQ(ring.file.update_elem(1, nullptr), -EBADF);
  EXPECT_EQ(ring.file.update_elem(8, ring.event), -E2BIG);
  EXPECT_EQ(ring.file.update_elem(1, ring.event, BPF_NOEXIST), -EINVAL);
  EXPECT_EQ(ring.file.update_elem(1, ring.event, BPF_EXIST), -EINVAL);
  EXPECT_EQ(ring.map->event_at(1), nullptr);
  EXPECT_EQ(ring.file.update_elem(7, ring.event, BPF_ANY), 0);
  EXPECT_EQ(ring.map->event_at(7), ring.event.get());
}

// K44
TEST(BpfMapFileTest, EachWrongDeleteHasItsErrorCode) {
  TestRing ring;
  EXPECT_EQ(ring.file.delete_elem(1), -ENOENT);
  EXPECT_EQ(ring.file.delete_elem(8), -E2BIG);
  EXPECT_EQ(ring.file.delete_elem(0), 0);
  EXPECT_EQ(ring.output(4), -ENOENT);
  EXPECT_EQ(ring.file.delete_elem(0), -ENOENT);
}

// K45
TEST(BpfMapFileTest, TheLastCloseRemovesItsOwnEntriesOnly) {
  for (const __u32 flags : {0u, unsigned{BPF_F_PRESERVE_ELEMS}}) {
    TestRing ring;
    ring.map = std::make_shared<bpf_array>(4, flags);
    bpf_map_file kept{ring.map};
    std::optional<bpf_map_file> closed;
    closed.emplace(ring.map);
    ASSERT_EQ(kept.update_elem(0, ring.event), 0);
    ASSERT_EQ(closed->update_elem(1, ring.event), 0);
    ASSERT_EQ(closed->update_elem(2, ring.event), 0);
    ASSERT_EQ(kept.update_elem(2, ring.event), 0);  // it was the other's
    closed.reset();
    EXPECT_EQ(ring.output(4, 0), 0);
    EXPECT_EQ(ring.output(4, 1), flags == 0 ? -ENOENT : 0);
    EXPECT_EQ(ring.output(4, 2), 0);
  }
}

// K45, K33
TEST(BpfMapFileTest, AnEntryKeepsAnEventThatIsClosed) {
  TestRing ring;
  perf_event* const event = ring.event.get();
  ring.event.reset();
  EXPECT_EQ(ring.output(4), 0);
  {
    const perf_mapping unmaps = std::move(ring.mapping);
  }
  EXPECT_EQ(perf_poll(*event), unsigned{EPOLLHUP});
}

}  // namespace
}  // namespace perfring::kernel
