// Payloads that header.size cannot hold: what of them is delivered, read off K6 to K10.

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "proptests/property.h"
#include "proptests/run.h"
#include "proptests/scripts.h"

namespace perfring::proptests {
namespace {

using testing::Seen;

// The delivered part of the record, byte for byte: its header, its raw size, and as much of the
// payload as the truncated size has room for. Nothing, if that is 0 (K7).
std::vector<Seen> remains(const oracle::Payload& payload) {
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
  return {Seen::malformed(Defect::BadSample, bytes)};
}

bool is_oversize(std::uint64_t length) {
  return length > 65516;
}

// A ring in which nothing unread is overwritten.
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
    run.run(output(36));  // at the truncated head, over what was spilled (K9)
    ++sequence;
    run.run(kDrain);
    expect_good(run);
    auto seen = run.take_seen();
    if (!is_oversize(length)) continue;
    RC_ASSERT(seen.size() == expected.size() + 1);
    seen.pop_back();  // the 36 bytes: the oracle's to check
    for (Seen& each : seen) each.head_size = each.bytes.size();
    RC_ASSERT(seen == expected);
  }
  run.settle();
  expect_good(run);
  RC_ASSERT(run.received().overwritten == 0U);
}

TEST(OversizePayloadTest, AnOversizePayloadIsMalformedAsTheKernelTruncatesIt) {
  always(is_malformed<ScriptCpu>);
}
TEST(OversizePayloadTest, FindsAKernelThatTruncatesRaw) {
  EXPECT_TRUE(counterexample(is_malformed<faults::TruncatesRaw<ScriptCpu>>));
}

// In small rings they overwrite what is unread (K10). It all ends, and is exact again after that.
template <class Consumer>
void recovers() {
  const auto mix = everything();
  CopyingRun<ScriptCpu, Consumer> run{*settings()};
  run.run(*steps(mix));
  run.run(output(*oversize_lengths()));
  run.run(*steps(mix));
  run.run(Step{.action = Action::Resume});
  for (int i = 0; i < 2; ++i) run.run(kDrain);
  RC_ASSERT(!run.readable());
  const std::uint64_t delivered = run.received().delivered;
  for (int i = 0; i < 10; ++i) RC_ASSERT(run.run(output(36)) == 0);
  run.settle();
  expect_good(run);
  RC_ASSERT(run.received().delivered == delivered + 10);
}

TEST(OversizePayloadTest, OnlyOverwrittenRecordsAreChanged) {
  always(recovers<Core>);
}
TEST(OversizePayloadTest, FindsAConsumerThatBelievesTheTruncatedSize) {
  EXPECT_TRUE(counterexample(recovers<faults::Believes<CheckedMemory>>));
}

}  // namespace
}  // namespace perfring::proptests
