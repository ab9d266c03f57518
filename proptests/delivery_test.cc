// A ring with any settings delivers the records written to it, under any schedule. The faults that
// a property finds follow it. At the end: which part of a payload that is too long for header.size
// is delivered, according to K6 to K10.

#include <gtest/gtest.h>
#include <linux/perf_event.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "harness/faults/consumer_faults.h"
#include "harness/faults/kernel_faults.h"
#include "harness/faults/loop_faults.h"
#include "harness/faults/memory_faults.h"
#include "harness/oracle/ledger.h"
#include "harness/oracle/payload.h"
#include "perfring/perf_event.h"
#include "perfring/ring/ring.h"
#include "perfring/testing/copied_events.h"
#include "proptests/property.h"
#include "proptests/scripts.h"

namespace perfring::proptests {
namespace {

using testing::CopiedEvent;

// One record, at any position: its payload is in two slices if and only if it straddles the ring's
// end.
template <class Consumer>
void wraps() {
  const Settings of = *settings();
  const auto length = *rc::gen::suchThat(
      lengths(), [of](std::uint64_t n) { return oracle::record_size(n) <= size_of(of) - 8; });
  CopyingRun<ScriptCpu, Consumer> run{of};
  RC_ASSERT(run.run(output(length)) == 0);
  run.run(kDrain);
  run.settle();
  expect_good(run);
  const std::uint64_t raw = oracle::raw_size(length);
  const std::uint64_t before_end = size_of(of) - (of.start + 12) % size_of(of);
  const std::vector<CopiedEvent> events = run.take_events();
  RC_ASSERT(events.size() == 1U);
  RC_ASSERT(events[0].head_size == std::min(raw, before_end));
}

TEST(WraparoundTest, TheSecondSliceContinuesAtTheRingsStart) {
  always(wraps<Core>, 2000);
}
TEST(WraparoundTest, FindsAConsumerThatDropsTheSecondSlice) {
  EXPECT_TRUE(counterexample(wraps<faults::DropsSecondSlice<CheckedMemory>>, Invariant::intact));
}

// After a complete run everything attempted was delivered or reported lost, once, in order and
// intact.
template <class Cpu, class Consumer>
void runs(const Script& script) {
  CopyingRun<Cpu, Consumer> run{script.settings};
  run.run(script.steps);
  run.settle();
  expect_good(run);
}

template <class Cpu, class Consumer>
void delivers() {
  runs<Cpu, Consumer>(*scripts(everything()));
}

TEST(DeliveryTest, AcceptedRecordsAreDeliveredOnceInOrder) {
  always(delivers<ScriptCpu, Core>, 1000);
}
TEST(DeliveryTest, FindsAKernelThatStoresAfterPublishing) {
  EXPECT_TRUE((
      counterexample(delivers<faults::StoresAfterPublishing<ScriptCpu>, Core>, Invariant::intact)));
}
TEST(DeliveryTest, FindsAKernelThatIgnoresTail) {
  EXPECT_TRUE((
      counterexample(delivers<faults::IgnoresTail<ScriptCpu>, Core>, Invariant::no_early_release)));
}
TEST(DeliveryTest, FindsAKernelThatRefusesInAnEmptyRing) {
  EXPECT_TRUE((
      counterexample(delivers<faults::RefusesInAnEmptyRing<ScriptCpu>, Core>, Invariant::no_loss)));
}
TEST(DeliveryTest, FindsAConsumerThatCommitsEarly) {
  EXPECT_TRUE((counterexample(delivers<ScriptCpu, faults::CommitsEarly<CheckedMemory>>,
                              Invariant::tail_honest)));
}

// With records of every size, each published or committed position is a multiple of 8.
template <class Cpu, class Consumer>
void stays_aligned() {
  Mix mix = everything();
  mix.payloads = rc::gen::weightedOneOf<std::uint64_t>({{30, lengths()}, {1, oversize_lengths()}});
  runs<Cpu, Consumer>(*scripts(mix));
}

TEST(PositionTest, EveryPositionIsAMultipleOf8) {
  always(stays_aligned<ScriptCpu, Core>);
}
TEST(PositionTest, FindsAKernelThatPublishesUnaligned) {
  EXPECT_TRUE((counterexample(stays_aligned<faults::PublishesUnaligned<ScriptCpu>, Core>,
                              Invariant::no_invention)));
}
TEST(PositionTest, FindsAConsumerThatCommitsUnaligned) {
  EXPECT_TRUE(
      (counterexample(stays_aligned<ScriptCpu, Ring<faults::CommitsUnaligned<CheckedMemory>>>,
                      Invariant::tail_honest)));
}

// Runs that start shortly before 2^31, 2^32, 2^63 or 2^64, or a later multiple of 2^32, and pass
// it.
template <class Consumer>
void crosses() {
  Settings of = *settings();
  const auto base = *one_of<std::uint64_t>({1ULL << 32, 0, 1ULL << 31, 1ULL << 63, 12345ULL << 32});
  of.start = base - 8 * *rc::gen::inRange<std::uint64_t>(1, 500);
  CopyingRun<ScriptCpu, Consumer> run{of};
  run.run(*steps({{StepKind::Output, StepKind::Output, StepKind::Drain, StepKind::Break}, 1}));
  while (oracle::after(base + 100, run.ledger().position()) && !run.violation()) {
    run.run(kDrain);
    run.run(output(36));
  }
  run.settle();
  expect_good(run);
}

TEST(PositionTest, CrossingAnyPowerOf2LosesNothing) {
  always(crosses<Core>);
}
TEST(PositionTest, FindsAConsumerWithPositionsOf64Bits) {
  EXPECT_TRUE(
      counterexample(crosses<faults::PositionsOf64Bits<CheckedMemory>>, Invariant::no_invention));
}

// In small rings with long bursts and pauses, each refused record is reported exactly once.
template <class Cpu, class Consumer>
void accounts() {
  Settings of = *settings();
  of.pages = 1;
  const auto list = *steps({{StepKind::Output, StepKind::Output, StepKind::Output, StepKind::Break,
                             StepKind::Drain, StepKind::Pause, StepKind::Resume},
                            1,
                            rc::gen::resize(100, rc::gen::inRange<std::uint64_t>(0, 1500))});
  CopyingRun<Cpu, Consumer> run{of};
  run.run(list);
  run.run(Step{.action = Action::Resume});
  run.run(kDrain);
  const std::uint64_t refused = run.ledger().totals().lost;
  run.run(output(8));  // the empty ring has room for this record and the LOST
  run.settle();
  expect_good(run);
  RC_ASSERT_INVARIANT(no_loss, run.ledger().unreported() == 0U);
  RC_ASSERT_INVARIANT(no_loss, run.received().lost == refused);
}

TEST(LostAccountingTest, EachRefusedRecordIsReportedOnce) {
  always(accounts<ScriptCpu, Core>);
}
TEST(LostAccountingTest, FindsAKernelThatWritesAWrongLostCount) {
  EXPECT_TRUE((counterexample(accounts<faults::WritesAWrongLostCount<ScriptCpu>, Core>,
                              Invariant::no_loss)));
}
TEST(LostAccountingTest, FindsAConsumerThatForgetsLost) {
  EXPECT_TRUE((
      counterexample(accounts<ScriptCpu, faults::ForgetsLost<CheckedMemory>>, Invariant::no_loss)));
}

// Returns the delivered part of the record, byte for byte: its header, its raw size, and the bytes
// of the payload that fit into the truncated size. If the truncated size is 0 (K7), nothing is
// delivered.
std::vector<CopiedEvent> remains(const oracle::Payload& payload) {
  const std::size_t raw = (std::size_t{payload.length} + 4 + 7) / 8 * 8 - 4;
  const auto size = static_cast<std::uint16_t>((12 + raw) % 65536);
  std::vector<std::byte> bytes(12 + raw);
  const perf_event_header header{9, 1, size};
  const auto raw_field = static_cast<std::uint32_t>(raw);
  std::memcpy(bytes.data(), &header, 8);
  std::memcpy(bytes.data() + 8, &raw_field, 4);
  oracle::fill(std::span{bytes}.subspan(12, payload.length), payload);
  if (size == 0) return {};
  bytes.resize(size);
  return {CopiedEvent::malformed(Defect::BadSample, bytes)};
}

bool is_oversize(std::uint64_t length) {
  return length > 65516;
}

// A ring so large that no unread record is overwritten.
constexpr unsigned kPages = 128;

template <class Cpu>
void is_malformed() {
  Settings of = *settings();
  of.pages = kPages;
  const auto payloads = *rc::gen::scale(
      0.2, rc::gen::container<std::vector<std::uint64_t>>(
               rc::gen::weightedOneOf<std::uint64_t>({{2, oversize_lengths()}, {1, lengths()}})));
  CopyingRun<Cpu, Core> run{of};
  std::uint64_t sequence = 0;
  for (const std::uint64_t length : payloads) {
    RC_ASSERT(run.run(output(length)) == 0);
    const auto expected = remains({sequence++, 0, static_cast<std::uint32_t>(length)});
    run.run(output(36));  // at the truncated head, over the spilled bytes (K9)
    ++sequence;
    run.run(kDrain);
    expect_good(run);
    auto events = run.take_events();
    if (!is_oversize(length)) continue;
    RC_ASSERT_INVARIANT(no_loss, !events.empty());
    events.pop_back();  // the 36 bytes, which the oracle checks
    for (CopiedEvent& each : events) each.head_size = each.bytes.size();
    expect_events(events, expected);
  }
  run.settle();
  expect_good(run);
  RC_ASSERT(run.received().overwritten == 0U);
}

TEST(OversizePayloadTest, TruncatedOversizePayloadIsMalformed) {
  always(is_malformed<ScriptCpu>);
}
TEST(OversizePayloadTest, FindsAKernelThatTruncatesRaw) {
  EXPECT_TRUE(counterexample(is_malformed<faults::TruncatesRaw<ScriptCpu>>, Invariant::intact));
}

// In small rings oversize payloads overwrite unread records (K10). Every drain ends, and later
// records are delivered exactly.
template <class Consumer>
void recovers() {
  const auto mix = everything();
  CopyingRun<ScriptCpu, Consumer> run{*settings()};
  run.run(*steps(mix));
  run.run(output(*oversize_lengths()));
  run.run(*steps(mix));
  run.run(Step{.action = Action::Resume});
  for (int i = 0; i < 2; ++i) run.run(kDrain);
  RC_ASSERT_INVARIANT(bounded, !run.readable());
  const std::uint64_t delivered = run.received().delivered;
  for (int i = 0; i < 10; ++i) RC_ASSERT(run.run(output(36)) == 0);
  run.settle();
  expect_good(run);
  RC_ASSERT_INVARIANT(no_loss, run.received().delivered == delivered + 10);
}

TEST(OversizePayloadTest, OnlyOverwrittenRecordsAreChanged) {
  always(recovers<Core>);
}
TEST(OversizePayloadTest, FindsAConsumerThatTrustsTheTruncatedSize) {
  EXPECT_TRUE(
      counterexample(recovers<faults::TrustsRecordSizes<CheckedMemory>>, Invariant::bounded));
}

}  // namespace
}  // namespace perfring::proptests
