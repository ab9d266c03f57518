// The parts of this folder that need no kernel.

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "harness/live/bpf/generator.h"
#include "harness/live/generator.h"
#include "harness/live/live_kernel.h"
#include "harness/live/sorted_lateness.h"
#include "perfring/perf_event.h"

namespace perfring::live {
namespace {

TEST(CapabilitiesTest, AdviceNamesMissingCapabilities) {
  EXPECT_EQ(advice_on_capabilities(false, true),
            "This process lacks CAP_BPF: run as root, or grant it");
  EXPECT_EQ(advice_on_capabilities(true, false),
            "This process lacks CAP_PERFMON: run as root, or grant it");
  EXPECT_EQ(advice_on_capabilities(false, false),
            "This process lacks CAP_BPF and CAP_PERFMON: run as root, or grant them");
  EXPECT_EQ(advice_on_capabilities(true, true), "");
}

TEST(SortedLatenessTest, CountsWhatComesAfterAHigherOne) {
  SortedLateness lateness;
  for (const std::uint64_t key : {5U, 7U, 7U, 6U, 5U, 8U, 7U, 9U}) lateness.add(key);
  EXPECT_EQ(lateness.late(), 3U);
  lateness.add(8);
  lateness.add(9);
  EXPECT_EQ(lateness.late(), 4U);
}

constexpr std::uint32_t kCpu = 3;

// Returns a record as the generator writes it and the kernel pads it, built from its description.
std::vector<std::byte> record(std::uint64_t sequence, std::uint32_t cpu, PayloadRange range) {
  const std::uint32_t size = generator_payload_size(sequence, cpu, range.min, range.max);
  static const std::vector<unsigned char> pattern = generator_pattern();
  std::vector<std::byte> bytes(size);
  std::memcpy(bytes.data(), pattern.data() + generator_window(sequence), size);
  const generator_record front{static_cast<__u32>(sequence), static_cast<__u16>(cpu),
                               generator_checksum(sequence, cpu, size)};
  std::memcpy(bytes.data(), &front, sizeof(front));
  while ((bytes.size() + 4) % 8 != 0) bytes.push_back(std::byte{0xee});
  return bytes;
}

PerfEvent sample(const std::vector<std::byte>& bytes, std::size_t split) {
  return Sample{Bytes{bytes}.first(split), Bytes{bytes}.subspan(split)};
}

PerfEvent sample(const std::vector<std::byte>& bytes) {
  return sample(bytes, bytes.size());
}

TEST(AuditTest, IntactRecordsInOrderRaiseNoComplaint) {
  const PayloadRange range{8, 300};
  Audit audit{kCpu, range};
  std::uint64_t bytes = 0;
  for (std::uint64_t sequence = 0; sequence < 10000; ++sequence) {
    const auto written = record(sequence, kCpu, range);
    audit.check(sample(written));
    bytes += 12 + written.size();
  }
  EXPECT_EQ(audit.counts().delivered, 10000U);
  EXPECT_EQ(audit.counts().out_of_order, 0U);
  EXPECT_EQ(audit.counts().corrupt, 0U);
  EXPECT_EQ(audit.counts().malformed, 0U);
  EXPECT_EQ(audit.counts().bytes, bytes);
}

TEST(AuditTest, ARecordMayStraddleTheRingsEndAnywhere) {
  const PayloadRange range{40, 40};
  const auto written = record(0, kCpu, range);
  for (std::size_t split = 0; split <= written.size(); ++split) {
    Audit audit{kCpu, range};
    audit.check(sample(written, split));
    EXPECT_EQ(audit.counts().corrupt, 0U) << "split at " << split;
    EXPECT_EQ(audit.counts().out_of_order, 0U) << "split at " << split;
  }
}

TEST(AuditTest, EveryChangedByteIsFoundExceptInThePadding) {
  const PayloadRange range{33, 33};
  const auto written = record(0, kCpu, range);
  for (std::size_t i = 0; i < written.size(); ++i) {
    for (const std::size_t split : {written.size(), std::size_t{0}, std::size_t{20}}) {
      auto changed = written;
      changed[i] ^= std::byte{1};
      Audit audit{kCpu, range};
      audit.check(sample(changed, split));
      const bool found = audit.counts().corrupt != 0 || audit.counts().out_of_order != 0;
      EXPECT_EQ(found, i < 33) << "byte " << i << ", split at " << split;
    }
  }
}

TEST(AuditTest, AWrongSizeIsCorrupt) {
  const PayloadRange range{24, 24};
  for (const std::size_t size :
       {std::size_t{0}, std::size_t{4}, std::size_t{7}, std::size_t{20}, std::size_t{36}}) {
    auto bytes = record(0, kCpu, range);
    bytes.resize(size);
    Audit audit{kCpu, range};
    audit.check(sample(bytes));
    EXPECT_EQ(audit.counts().corrupt, 1U) << size;
  }
}

TEST(AuditTest, AGapIsOutOfOrderUnlessALostExplainsIt) {
  const PayloadRange range{8, 8};
  for (const std::uint64_t reported : {0U, 1U, 2U, 3U}) {
    Audit audit{kCpu, range};
    audit.check(sample(record(0, kCpu, range)));
    if (reported != 0) audit.check(Lost{reported});
    audit.check(sample(record(3, kCpu, range)));  // 1 and 2 are missing
    audit.check(sample(record(4, kCpu, range)));
    EXPECT_EQ(audit.counts().out_of_order, reported == 2 ? 0U : 1U) << reported;
    EXPECT_EQ(audit.counts().lost, reported);
    EXPECT_EQ(audit.counts().corrupt, 0U) << reported;
  }
}

TEST(AuditTest, ARepetitionIsOutOfOrder) {
  const PayloadRange range{8, 8};
  Audit audit{kCpu, range};
  audit.check(sample(record(0, kCpu, range)));
  audit.check(sample(record(0, kCpu, range)));
  EXPECT_EQ(audit.counts().out_of_order, 1U);
}

TEST(AuditTest, SequenceNumbersGoOnPast32Bits) {
  const PayloadRange range{8, 64};
  Audit audit{kCpu, range};
  const std::uint64_t first = (std::uint64_t{1} << 32) - 2;
  audit.check(Lost{first});
  for (std::uint64_t i = 0; i < 4; ++i) audit.check(sample(record(first + i, kCpu, range)));
  EXPECT_EQ(audit.counts().out_of_order, 0U);
  EXPECT_EQ(audit.counts().corrupt, 0U);
}

TEST(AuditTest, MalformedIsCountedWithItsBytes) {
  Audit audit{kCpu, {8, 8}};
  const std::vector<std::byte> bytes(24);
  audit.check(Malformed{Defect::BadSample, Bytes{bytes}.first(16), Bytes{bytes}.subspan(16)});
  EXPECT_EQ(audit.counts().malformed, 1U);
  EXPECT_EQ(audit.counts().bytes, 24U);
  EXPECT_EQ(audit.counts().delivered, 0U);
}

}  // namespace
}  // namespace perfring::live
