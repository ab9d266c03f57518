// The bytes of a sample: K1 to K10, K19, K22, K25.

#include "harness/kernel/sample.h"

#include <gtest/gtest.h>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "harness/kernel/kernel_testing.h"
#include "harness/kernel/known_sizes.h"

namespace perfring::kernel {
namespace {

using Bytes = std::vector<std::byte>;

// K1
TEST(PerfOutputSampleTest, ASampleHasTheSizesOfTheTable) {
  for (const auto& [payload, size, raw] : kKnownSizes) {
    SCOPED_TRACE(payload);
    TestRing ring{{.pages = 32}};
    ASSERT_EQ(ring.output(payload), 0);
    EXPECT_EQ(ring.head(), size);
    EXPECT_EQ(ring.size_at(0), size);
    EXPECT_EQ(ring.raw_at(0), raw);
    EXPECT_EQ(ring.at(12, payload), ring.payload);
    // K2: the kernel writes neither the padding nor the bytes after it.
    EXPECT_EQ(ring.at(12 + payload, raw - payload + 8), Bytes(raw - payload + 8, std::byte{0xee}));
  }
}

// K1, K25
TEST(PerfOutputSampleTest, ASampleIsWrittenByteForByte) {
  TestRing ring;
  ASSERT_EQ(ring.output(5), 0);
  const bool little = std::endian::native == std::endian::little;
  const Bytes expected =
      little ? Expected{}.bytes({9, 0, 0, 0, 1, 0,    0x18, 0,    0x0c, 0,    0,    0,
                                 1, 2, 3, 4, 5, 0xee, 0xee, 0xee, 0xee, 0xee, 0xee, 0xee})
             : Expected{}.bytes({0, 0, 0, 9, 0, 1,    0,    0x18, 0,    0,    0,    0x0c,
                                 1, 2, 3, 4, 5, 0xee, 0xee, 0xee, 0xee, 0xee, 0xee, 0xee});
  EXPECT_EQ(ring.at(0, 24), expected);
}

// K6, K7, K8: and the kernel copies the whole payload.
TEST(PerfOutputSampleTest, HeaderSizeWrapsAt16Bits) {
  struct {
    std::size_t payload;
    std::uint16_t size;
    std::uint32_t raw;
  } const rows[] = {{65517, 0, 65524},       {65524, 0, 65524},     {65525, 8, 65532},
                    {65532, 8, 65532},       {65533, 16, 65540},    {65540, 16, 65540},
                    {131052, 65528, 131052}, {200000, 3408, 200004}};
  for (const auto& [payload, size, raw] : rows) {
    SCOPED_TRACE(payload);
    TestRing ring{{.pages = 64}};
    ASSERT_EQ(ring.output(payload), 0);
    EXPECT_EQ(ring.head(), size);
    EXPECT_EQ(ring.size_at(0), size);
    EXPECT_EQ(ring.raw_at(0), raw);
    EXPECT_EQ(ring.at(12, payload), ring.payload);
    EXPECT_EQ(ring.event->lost_samples, 0u);
    EXPECT_EQ(ring.rb().lost, 0u);
  }
}

// K7
TEST(PerfOutputSampleTest, ASampleOfSizeZeroIsOverwrittenByTheNext) {
  TestRing ring{{.pages = 16}};
  ASSERT_EQ(ring.output(65517), 0);
  ASSERT_EQ(ring.output(4), 0);
  EXPECT_EQ(ring.head(), 16u);
  EXPECT_EQ(ring.at(0, 16), Bytes(Expected{}.header(9, 1, 16).u32(4).bytes({1, 2, 3, 4})));
}

// K8, K9: a header without a raw size: the next record begins at the raw size's place.
TEST(PerfOutputSampleTest, ASampleOfSizeEightIsFollowedInsideItsPayload) {
  TestRing ring{{.pages = 32}};
  ASSERT_EQ(ring.output(65532), 0);
  ASSERT_EQ(ring.output(4), 0);
  EXPECT_EQ(ring.head(), 24u);
  EXPECT_EQ(ring.at(0, 28), Bytes(Expected{}
                                      .header(9, 1, 8)
                                      .header(9, 1, 16)
                                      .u32(4)
                                      .bytes({1, 2, 3, 4})
                                      .bytes({13, 14, 15, 16})));  // the payload that spilled
}

// K10
TEST(PerfOutputSampleTest, ASampleWhoseSizeWrapsOverwritesUnreadRecords) {
  TestRing ring{{.pages = 16}};
  for (int i = 0; i < 4; ++i) ASSERT_EQ(ring.output(12), 0);
  ASSERT_EQ(ring.head(), 96u);
  ASSERT_EQ(ring.output(65540), 0);
  EXPECT_EQ(ring.head(), 112u);
  for (std::size_t record = 0; record < 96; record += 24) {
    EXPECT_NE(ring.at(record, 8), Bytes(Expected{}.header(9, 1, 24)));
  }
  EXPECT_EQ(ring.at(0, 16), Bytes(ring.payload.end() - 112, ring.payload.end() - 96));
}

// K3: the largest record has 65528 bytes, and each field takes 8 of them.
TEST(PerfOutputSampleTest, TheLargestPayloadShrinksWithTheOtherFields) {
  struct {
    __u64 type;
    std::size_t largest;
  } const rows[] = {
      {PERF_SAMPLE_RAW, 65516},
      {PERF_SAMPLE_RAW | PERF_SAMPLE_TIME, 65508},
      {PERF_SAMPLE_RAW | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU, 65500},
      {PERF_SAMPLE_RAW | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU | PERF_SAMPLE_IDENTIFIER, 65492}};
  for (const auto& [type, largest] : rows) {
    SCOPED_TRACE(largest);
    TestRing ring{{.attr = bpf_output(type), .pages = 32}};
    ASSERT_EQ(ring.output(largest), 0);
    EXPECT_EQ(ring.head(), 65528u);
    EXPECT_EQ(ring.size_at(0), 65528);
    ASSERT_EQ(ring.output(largest + 1), 0);
    EXPECT_EQ(ring.head(), 65528u);
  }
}

// K19: each field alone, before RAW.
TEST(PerfOutputSampleTest, ASampleHasEachFieldOfItsType) {
  struct {
    __u64 type;
    std::uint64_t value;
  } const rows[] = {{PERF_SAMPLE_IDENTIFIER, 7}, {PERF_SAMPLE_TIME, 1000},
                    {PERF_SAMPLE_ADDR, 0},       {PERF_SAMPLE_ID, 7},
                    {PERF_SAMPLE_STREAM_ID, 7},  {PERF_SAMPLE_PERIOD, 0},
                    {PERF_SAMPLE_IP, 0}};
  for (const auto& [type, value] : rows) {
    SCOPED_TRACE(type);
    TestRing ring{{.attr = bpf_output(PERF_SAMPLE_RAW | type)}};
    ASSERT_EQ(ring.output(4), 0);
    EXPECT_EQ(ring.head(), 24u);
    EXPECT_EQ(ring.at(0, 24),
              Bytes(Expected{}.header(9, 1, 24).u64(value).u32(4).bytes({1, 2, 3, 4})));
  }
  TestRing tid{{.attr = bpf_output(PERF_SAMPLE_RAW | PERF_SAMPLE_TID)}};
  ASSERT_EQ(tid.output(4), 0);
  EXPECT_EQ(tid.at(0, 24),
            Bytes(Expected{}.header(9, 1, 24).u32(77).u32(78).u32(4).bytes({1, 2, 3, 4})));
  TestRing cpu{{.attr = bpf_output(PERF_SAMPLE_RAW | PERF_SAMPLE_CPU)}};
  ASSERT_EQ(cpu.output(4), 0);
  EXPECT_EQ(cpu.at(0, 24),
            Bytes(Expected{}.header(9, 1, 24).u32(3).u32(0).u32(4).bytes({1, 2, 3, 4})));
}

// K19
TEST(PerfOutputSampleTest, ASampleHasItsFieldsInTheKernelsOrder) {
  TestRing ring{{.attr = bpf_output(kSampleTypes)}};
  ASSERT_EQ(ring.output(4), 0);
  EXPECT_EQ(ring.head(), 80u);
  EXPECT_EQ(ring.at(0, 80), Bytes(Expected{}
                                      .header(9, 1, 80)
                                      .u64(7)  // IDENTIFIER
                                      .u32(77)
                                      .u32(78)    // TID
                                      .u64(1000)  // TIME
                                      .u64(0)     // ADDR
                                      .u64(7)     // ID
                                      .u64(7)     // STREAM_ID
                                      .u32(3)
                                      .u32(0)  // CPU
                                      .u64(0)  // PERIOD
                                      .u32(4)
                                      .bytes({1, 2, 3, 4})));
}

// K19
TEST(PerfOutputSampleTest, ASampleOfNoTypeIsAHeader) {
  TestRing ring{{.attr = bpf_output(0)}};
  ASSERT_EQ(ring.output(100), 0);
  EXPECT_EQ(ring.head(), 8u);
  EXPECT_EQ(
      ring.at(0, 16),
      Bytes(Expected{}.header(9, 1, 8).bytes({0xee, 0xee, 0xee, 0xee, 0xee, 0xee, 0xee, 0xee})));
}

// The output of the interrupt reads the time later, and reserves earlier.
struct InterruptedCpu : TestCpu {
  std::function<void()> interrupt;
  void step() {
    if (const auto once = std::exchange(interrupt, nullptr)) once();
  }
};

// K22
TEST(PerfOutputSampleTest, TimeIsTakenBeforeTheReservation) {
  TestRing<InterruptedCpu> ring{{.attr = bpf_output(PERF_SAMPLE_RAW | PERF_SAMPLE_TIME)}};
  ring.cpu.interrupt = [&] {
    ring.cpu.time = 2000;
    ASSERT_EQ(ring.output(4), 0);
  };
  ASSERT_EQ(ring.output(4), 0);
  EXPECT_EQ(ring.head(), 48u);
  EXPECT_EQ(ring.field<std::uint64_t>(8), 2000u);
  EXPECT_EQ(ring.field<std::uint64_t>(24 + 8), 1000u);
}

// A record may begin at any position, and it or one of its fields may straddle pages and the ring's
// end.
TEST(PerfOutputSampleTest, ASampleMayLieAnywhere) {
  const __u64 type = PERF_SAMPLE_RAW | PERF_SAMPLE_TIME | PERF_SAMPLE_IDENTIFIER;
  for (std::uint64_t start = 0; start < 4 * kPage; start += 8) {
    TestRing ring{{.attr = bpf_output(type), .pages = 4}};
    start_at(ring.rb(), start);
    ASSERT_EQ(ring.output(500), 0);
    ASSERT_EQ(ring.head(), start + 528);
    ASSERT_EQ(ring.at(start, 28), Bytes(Expected{}.header(9, 1, 528).u64(7).u64(1000).u32(500)));
    ASSERT_EQ(ring.at(start + 28, 500), ring.payload) << start;
    const std::size_t rest = 4 * kPage - 528;
    ASSERT_EQ(ring.at(start + 528, rest), Bytes(rest, std::byte{0xee})) << start;
  }
}

// The same with pages of 64 KiB, which some processors have.
TEST(PerfOutputSampleTest, ASampleMayLieAnywhereInLargerPages) {
  constexpr std::uint64_t kLarge = 65536;
  for (std::uint64_t page = 0; page < 4 * kLarge; page += kPage) {
    TestRing ring{{.pages = 2, .page_shift = 16}};
    const std::uint64_t start = page + kPage - 264;  // puts a 4 KiB boundary inside the record
    start_at(ring.rb(), start);
    ASSERT_EQ(ring.output(5000), 0);
    ASSERT_EQ(ring.head(), start + 5016);
    ASSERT_EQ(ring.at(start, 12), Bytes(Expected{}.header(9, 1, 5016).u32(5004)));
    ASSERT_EQ(ring.at(start + 12, 5000), ring.payload) << start;
    ASSERT_EQ(ring.page().data_offset, kLarge);
    ASSERT_EQ(ring.page().data_size, 2 * kLarge);
  }
}

}  // namespace
}  // namespace perfring::kernel
