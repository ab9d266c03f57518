// The map and the helper's return codes: K43 to K45.

#include <gtest/gtest.h>
#include <linux/bpf.h>
#include <linux/perf_event.h>

#include <array>
#include <bit>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "harness/kernel/kernel_testing.h"
#include "harness/kernel/perf_event.h"
#include "harness/kernel/perf_event_array.h"
#include "harness/kernel/ring_buffer.h"

namespace perfring::kernel {
namespace {

// K43
TEST(BpfPerfEventOutputTest, EachWrongArgumentHasItsErrorCode) {
  TestRing ring;  // 8 entries, entry 0 is the event
  EXPECT_EQ(ring.output(4, 8), -E2BIG);
  EXPECT_EQ(ring.output(4, 0xffff'fffe), -E2BIG);
  EXPECT_EQ(ring.output(4, 1), -ENOENT);
  EXPECT_EQ(ring.output(4, 7), -ENOENT);
  EXPECT_EQ(ring.output(4, __u64{1} << 32), -EINVAL);  // unknown flags
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

// K43: and no loss is counted.
TEST(BpfPerfEventOutputTest, AnEventWithoutARingIsENOSPC) {
  TestRing ring;
  const perf_file unmapped = must(perf_event_open(bpf_output(), 3, 8));
  ASSERT_EQ(ring.file.update_elem(1, unmapped), 0);
  EXPECT_EQ(ring.output(4, 1), -ENOSPC);
  EXPECT_EQ(unmapped->lost_samples, 0u);
}

// K43: other errors come before ENOSPC.
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

// K43: an event of another kind, which perf_event_open() here would refuse.
TEST(BpfPerfEventOutputTest, AnEventThatIsNoBpfOutputIsEINVAL) {
  TestRing ring;
  ring.event->attr.type = PERF_TYPE_HARDWARE;
  EXPECT_EQ(ring.output(4), -EINVAL);
  ring.event->attr.type = PERF_TYPE_SOFTWARE;
  ring.event->attr.config = PERF_COUNT_SW_DUMMY;
  EXPECT_EQ(ring.output(4), -EINVAL);
}

TEST(BpfPerfEventOutputTest, CurrentCpuIsAnIndex) {
  TestRing ring;  // on CPU 3
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
  // With several mistakes, bpf_fd_array_map_update_elem() reports the first that it checks.
  EXPECT_EQ(ring.file.update_elem(8, nullptr, BPF_NOEXIST), -EINVAL);
  EXPECT_EQ(ring.file.update_elem(8, ring.event, __u64{1} << 32), -EINVAL);
  EXPECT_EQ(ring.file.update_elem(8, nullptr), -E2BIG);
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
    ASSERT_EQ(kept.update_elem(2, ring.event), 0);  // set through `closed` before
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

// When the kernel writes a LOST, and the contents of the LOST: K13 to K16, K20, K41, K42.

using Bytes = std::vector<std::byte>;

// K14, K15, K16
TEST(OutputLostTest, LostBeforeNextRecordCountsAllLosses) {
  TestRing ring;
  ASSERT_EQ(ring.output(4000), 0);
  for (int i = 0; i < 3; ++i) ASSERT_EQ(ring.output(200), -ENOSPC);
  ring.consume();
  EXPECT_EQ(ring.head(), 4016u);  // draining writes nothing
  ASSERT_EQ(ring.output(4), 0);
  EXPECT_EQ(ring.head(), 4016u + 24 + 16);
  EXPECT_EQ(
      ring.at(4016, 40),
      Bytes(Expected{}.header(2, 0, 24).u64(7).u64(3).header(9, 1, 16).u32(4).bytes({1, 2, 3, 4})));
  EXPECT_EQ(ring.rb().lost, 0u);
  EXPECT_EQ(ring.event->lost_samples, 3u);  // cumulative
  ASSERT_EQ(ring.output(4), 0);
  EXPECT_EQ(ring.head(), 4016u + 24 + 16 + 16);
}

TEST(OutputLostTest, ALostReportsOneLoss) {
  TestRing ring;
  ASSERT_EQ(ring.output(5000), -ENOSPC);
  ASSERT_EQ(ring.output(4), 0);
  EXPECT_EQ(ring.at(0, 24), Bytes(Expected{}.header(2, 0, 24).u64(7).u64(1)));
}

// K15
TEST(OutputLostTest, ALostIsNotWrittenUnlessTheRecordFitsToo) {
  TestRing ring;
  ASSERT_EQ(ring.fill(4), 255u);
  ring.tail(16);
  EXPECT_EQ(ring.output(4), -ENOSPC);  // 16 bytes are free, 40 are needed
  ring.tail(24);
  EXPECT_EQ(ring.output(4), -ENOSPC);
  ring.tail(32);
  EXPECT_EQ(ring.output(4), 0);
  EXPECT_EQ(ring.field<std::uint64_t>(4080 + 16), 3u);
  EXPECT_EQ(ring.head(), 4120u);
}

// K7: a record of size 0 after a LOST leaves the LOST alone.
TEST(OutputLostTest, ALostStandsAloneBeforeARecordOfSizeZero) {
  TestRing ring{{.pages = 32}};
  perf_event_pause_output(*ring.event, true);
  ASSERT_EQ(ring.output(1), -ENOSPC);
  perf_event_pause_output(*ring.event, false);
  ASSERT_EQ(ring.output(65517), 0);
  EXPECT_EQ(ring.head(), 24u);
  EXPECT_EQ(ring.at(0, 24), Bytes(Expected{}.header(2, 0, 24).u64(7).u64(1)));
}

// K20
TEST(OutputLostTest, ALostHasTheFieldsThatSampleIdAllAdds) {
  RingSetup setup{.attr = bpf_output(kSampleTypes)};
  setup.attr.sample_id_all = 1;
  TestRing ring{setup};
  ASSERT_EQ(ring.output(5000), -ENOSPC);
  ring.cpu.time = 4321;
  ASSERT_EQ(ring.output(4), 0);
  EXPECT_EQ(ring.head(), 72u + 80u);
  EXPECT_EQ(ring.at(0, 80), Bytes(Expected{}
                                      .header(2, 0, 72)
                                      .u64(7)
                                      .u64(1)
                                      .u32(77)
                                      .u32(78)    // TID
                                      .u64(4321)  // TIME, equal to the sample's
                                      .u64(7)     // ID
                                      .u64(7)     // STREAM_ID
                                      .u32(3)
                                      .u32(0)  // CPU
                                      .u64(7)  // IDENTIFIER
                                      .header(9, 1, 80)));
  EXPECT_EQ(ring.field<std::uint64_t>(72 + 24), 4321u);
}

// K20: and no other field.
TEST(OutputLostTest, EachFieldAloneFollowsTheLostThatItGrows) {
  const std::pair<__u64, __u64> fields[]{
      {PERF_SAMPLE_TIME, 4321},
      {PERF_SAMPLE_ID, 7},
      {PERF_SAMPLE_STREAM_ID, 7},
      {PERF_SAMPLE_IDENTIFIER, 7},
      {PERF_SAMPLE_TID, std::bit_cast<__u64>(std::array<__u32, 2>{77, 78})},
      {PERF_SAMPLE_CPU, std::bit_cast<__u64>(std::array<__u32, 2>{3, 0})}};
  for (const auto& [field, value] : fields) {
    RingSetup setup{.attr = bpf_output(PERF_SAMPLE_RAW | field)};
    setup.attr.sample_id_all = 1;
    TestRing ring{setup};
    ASSERT_EQ(ring.output(5000), -ENOSPC);
    ring.cpu.time = 4321;
    ASSERT_EQ(ring.output(4), 0);
    EXPECT_EQ(ring.at(0, 40),
              Bytes(Expected{}.header(2, 0, 32).u64(7).u64(1).u64(value).header(9, 1, 24)))
        << field;
    EXPECT_EQ(ring.head(), 32u + 24u) << field;
  }
}

// K20: 48 bytes for RAW|TIME|CPU|IDENTIFIER, 24 without sample_id_all.
TEST(OutputLostTest, ALostGrowsOnlyWithSampleIdAll) {
  const __u64 type = PERF_SAMPLE_RAW | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU | PERF_SAMPLE_IDENTIFIER;
  for (const bool all : {false, true}) {
    RingSetup setup{.attr = bpf_output(type)};
    setup.attr.sample_id_all = all;
    TestRing ring{setup};
    ASSERT_EQ(ring.output(5000), -ENOSPC);
    ASSERT_EQ(ring.output(4), 0);
    const unsigned size = all ? 48 : 24;
    EXPECT_EQ(ring.size_at(0), size);
    EXPECT_EQ(ring.head(), size + 40);
    EXPECT_EQ(ring.at(size, 8), Bytes(Expected{}.header(9, 1, 40)));
    // The fields must fit too: a tail that leaves room only for the rest makes the kernel refuse.
    ASSERT_EQ(ring.output(5000), -ENOSPC);
    const std::uint64_t head = ring.head();
    ring.tail(head + size + 40);
    EXPECT_EQ(ring.output(4), -ENOSPC);
    ring.tail(head + size + 48);
    EXPECT_EQ(ring.output(4), 0);
  }
}

// K41
TEST(OutputLostTest, PausedRingRefusesOutputUntilResumed) {
  TestRing ring;
  EXPECT_EQ(perf_event_pause_output(*ring.event, true), 0);
  EXPECT_EQ(ring.output(4), -ENOSPC);
  EXPECT_EQ(ring.output(4), -ENOSPC);
  EXPECT_EQ(ring.head(), 0u);
  EXPECT_EQ(ring.event->lost_samples, 2u);
  EXPECT_EQ(perf_poll(*ring.event), 0u);
  EXPECT_EQ(perf_event_pause_output(*ring.event, false), 0);
  ASSERT_EQ(ring.output(4), 0);
  EXPECT_EQ(ring.at(0, 24), Bytes(Expected{}.header(2, 0, 24).u64(7).u64(2)));
  EXPECT_EQ(ring.head(), 40u);
}

// K42: a LOST has the id of the event that writes next and the ring's count. Each event keeps its
// own total.
TEST(OutputLostTest, TheLostOfASharedRingBearsTheNextWritersId) {
  TestRing ring;
  const perf_file second = must(perf_event_open(bpf_output(), 3, 8));
  ASSERT_EQ(perf_event_set_output(*second, ring.event.get()), 0);
  ASSERT_EQ(ring.file.update_elem(1, second), 0);
  ASSERT_EQ(ring.output(4000, 0), 0);
  ASSERT_EQ(ring.output(200, 0), -ENOSPC);
  ASSERT_EQ(ring.output(200, 1), -ENOSPC);
  ASSERT_EQ(ring.output(200, 1), -ENOSPC);
  ring.consume();
  ASSERT_EQ(ring.output(4, 1), 0);
  EXPECT_EQ(ring.at(4016, 24), Bytes(Expected{}.header(2, 0, 24).u64(8).u64(3)));
  EXPECT_EQ(ring.event->lost_samples, 1u);
  EXPECT_EQ(second->lost_samples, 2u);
}

// The count is an unsigned long; the kernel tests it through an int, which drops the high bits.
TEST(OutputLostTest, LossesAreCountedInTheKernelsWord) {
  struct {
    Word word;
    __u64 before;  // losses before; one more follows
    bool reported;
    __u64 lost;
  } const rows[] = {{Word::k32, 0x7fff'ffff, true, 0x8000'0000},
                    {Word::k64, 0x7fff'ffff, true, 0x8000'0000},
                    {Word::k32, 0xffff'ffff, false, 0},
                    {Word::k64, 0xffff'ffff, false, 0},
                    {Word::k32, 0, true, 1},
                    {Word::k64, 0x1'0000'0000, true, 0x1'0000'0001}};
  for (const auto& [word, before, reported, lost] : rows) {
    SCOPED_TRACE(before);
    TestRing ring{{.word = word}};
    ring.rb().lost = before;
    perf_event_pause_output(*ring.event, true);
    ASSERT_EQ(ring.output(4), -ENOSPC);
    perf_event_pause_output(*ring.event, false);
    EXPECT_EQ(ring.rb().lost, word == Word::k32 ? (before + 1) & 0xffff'ffff : before + 1);
    ASSERT_EQ(ring.output(4), 0);
    EXPECT_EQ(ring.head(), reported ? 40u : 16u);
    EXPECT_EQ(static_cast<__s32>(ring.rb().lost), 0);
    EXPECT_EQ(ring.rb().lost == 0, reported || word == Word::k32);
    if (reported) {
      EXPECT_EQ(ring.at(0, 24), Bytes(Expected{}.header(2, 0, 24).u64(7).u64(lost)));
    }
  }
}

}  // namespace
}  // namespace perfring::kernel
