// How large a ring may be, and that all of it is used (S7, K12, K35). The kernel stores a payload
// with padding, and a Sample includes the padding (K1 to K3, S4).

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <set>
#include <string>
#include <system_error>
#include <variant>
#include <vector>

#include "harness/kernel/known_sizes.h"
#include "harness/live/live_testing.h"
#include "perfring/os/syscalls.h"
#include "perfring/perf_buffer.h"
#include "perfring/perf_buffer_error.h"
#include "perfring/perf_event.h"
#include "perfring/perf_event_array.h"

namespace perfring::live {
namespace {

using Kind = PerfBufferError::Kind;

constexpr std::size_t kLapPayload = 12;  // 24 bytes a record: laps end at different places
constexpr std::uint32_t kNeverWake = 1u << 30;
constexpr std::uint32_t kNoCpu = 1u << 20;  // more than Linux has: perf_event_open refuses it

class PageCountTest : public LiveTest {
 protected:
  // Fills the ring and drains it, twice.
  void expect_capacity(PerfEventArrayBuffer& buffer, std::size_t page_count) {
    const std::size_t room = capacity(page_count * os::page_size(), kLapPayload);
    for (int lap = 0; lap < 2; ++lap) {
      const auto attempts = static_cast<std::uint32_t>(room + 1 - static_cast<std::size_t>(lap));
      const auto emitted = emitter().emit_many(cpu(), kLapPayload, attempts);
      // The second lap starts with the first's Lost, which takes one record's place.
      ASSERT_EQ(emitted.accepted, lap == 0 ? room : room - 1);
      ASSERT_EQ(emitted.refused, 1u);
      std::uint64_t samples = 0;
      buffer.for_each([&](const PerfEvent& event) {
        if (std::holds_alternative<Sample>(event)) ++samples;
      });
      EXPECT_EQ(samples, emitted.accepted);
    }
  }
};

// K12
TEST_F(PageCountTest, EveryPowerOfTwoIsFilledButForItsLastBytes) {
  for (std::size_t page_count = 1; page_count <= 512; page_count *= 2) {
    SCOPED_TRACE(page_count);
    auto buffer = open(PerfBufferOptions{.page_count = page_count, .wakeup_watermark = kNeverWake});
    expect_capacity(buffer, page_count);
  }
}

TEST_F(PageCountTest, WithoutACountTheRingHasTwoPages) {
  EXPECT_EQ(PerfBufferOptions{}.page_count, 2u);
  {
    auto buffer = must(array().open(cpu()));
    expect_capacity(buffer, 2);
  }
  {
    auto buffer = must(array().open(cpu(), {}));
    expect_capacity(buffer, 2);
  }
  {
    auto buffer = must(array().open(cpu(), PerfBufferOptions{}));
    expect_capacity(buffer, 2);
  }
}

TEST_F(PageCountTest, OpenMapsTheRequestedPageCount) {
  auto buffer = must(array().open(cpu(), 8));
  expect_capacity(buffer, 8);
}

// These need no kernel: the count is refused before any system call, or the CPU by the system call.
TEST(PageCountArgumentsTest, ACountThatIsNoPowerOfTwoIsRefused) {
  for (const std::size_t page_count :
       std::initializer_list<std::size_t>{0, 3, 5, 6, 7, 100, 1000}) {
    const auto buffer = PerfBuffer::open(kNoCpu, page_count);
    ASSERT_FALSE(buffer.has_value());
    EXPECT_EQ(buffer.error().kind, Kind::InvalidPageCount);
    EXPECT_EQ(buffer.error().page_count, page_count);
    EXPECT_EQ(buffer.error().cpu, kNoCpu);
    EXPECT_EQ(buffer.error().io_error, std::error_code{});
    EXPECT_EQ(buffer.error().message(), "invalid page count " + std::to_string(page_count) +
                                            ", the value must be a power of two");
  }
}

TEST(PageCountArgumentsTest, RingsAboveTwoGibibytesAreRefused) {
  const std::size_t limit = (std::size_t{1} << 31) / os::page_size();
  for (const std::size_t page_count : {limit * 2, std::numeric_limits<std::size_t>::max() / 2 + 1,
                                       std::numeric_limits<std::size_t>::max()}) {
    const auto buffer = PerfBuffer::open(kNoCpu, page_count);
    ASSERT_FALSE(buffer.has_value());
    EXPECT_EQ(buffer.error().kind, Kind::InvalidPageCount);
    EXPECT_NE(buffer.error().message().find("power of two of at most " + std::to_string(limit) +
                                            " (a ring of 2 GiB)"),
              std::string::npos)
        << buffer.error().message();
    EXPECT_NE(buffer.error().explain().find("a power of two from 1 to " + std::to_string(limit)),
              std::string::npos)
        << buffer.error().explain();
  }
  // The kernel decides on the limit itself.
  EXPECT_EQ(PerfBuffer::open(kNoCpu, limit).error().kind, Kind::OpenError);
}

class PayloadTest : public LiveTest {};

// Returns the pages of a ring of at least 256 KiB.
std::size_t roomy() {
  return std::max<std::size_t>(1, 262144 / os::page_size());
}

// K1
TEST_F(PayloadTest, EverySizeArrivesIntact) {
  auto buffer = open(roomy());
  for (const kernel::KnownSize& record : kernel::kKnownSizes) {
    fill_payload(record.payload, static_cast<unsigned>(record.payload));
    ASSERT_EQ(emit(record.payload), 0) << record.payload;
    const auto delivered = drain(buffer);
    ASSERT_EQ(delivered.size(), 1u) << record.payload;
    EXPECT_EQ(delivered[0].bytes.size(), record.raw) << record.payload;
    EXPECT_TRUE(is_payload(delivered[0], record.payload)) << record.payload;
  }
}

// K1
TEST_F(PayloadTest, TheNextRecordStartsAtTheSizeOfTheOneBefore) {
  for (const kernel::KnownSize& record : kernel::kKnownSizes) {
    auto buffer = open(roomy());
    ASSERT_EQ(emit(record.payload), 0);
    ASSERT_EQ(emit(record.payload), 0);
    const auto delivered = drain(buffer);
    ASSERT_EQ(delivered.size(), 2u) << record.payload;
    EXPECT_EQ(delivered[1].head.data() - delivered[0].head.data(), record.size) << record.payload;
  }
}

// K2. The first lap is one record of 0xEE, except for its front, which the second record covers.
TEST_F(PayloadTest, PaddingIsWhatTheRingHeldBefore) {
  auto buffer = open(1);
  std::ranges::fill(emitter().payload(), std::byte{0xEE});
  const std::size_t lap = std::min<std::size_t>(os::page_size() - 8, 65528);
  ASSERT_EQ(emit(lap - 12), 0);
  const auto first = drain(buffer);
  ASSERT_EQ(first.size(), 1u);
  while (emit(4) == 0) {  // to the end of the page, and 8 bytes beyond
    if (drain(buffer)[0].head.data() < first[0].head.data() + 8) break;
  }

  fill_payload(100);
  for (const std::size_t size :
       std::initializer_list<std::size_t>{0, 1, 2, 3, 5, 6, 7, 8, 9, 10, 11, 13, 94, 97}) {
    ASSERT_EQ(emit(size), 0);
    const auto delivered = drain(buffer);
    ASSERT_EQ(delivered.size(), 1u);
    ASSERT_TRUE(is_payload(delivered[0], size));
    EXPECT_EQ(std::ranges::count(delivered[0].bytes.begin() + static_cast<std::ptrdiff_t>(size),
                                 delivered[0].bytes.end(), std::byte{0xEE}),
              static_cast<std::ptrdiff_t>(raw_size(size) - size))
        << size;
  }
}

// K2
TEST_F(PayloadTest, PaddingOfAFreshRingIsZero) {
  auto buffer = open(1);
  std::ranges::fill(emitter().payload(), std::byte{0xEE});
  ASSERT_EQ(emit(5), 0);
  const auto delivered = drain(buffer);
  ASSERT_EQ(delivered.size(), 1u);
  std::vector<std::byte> expected(12);
  std::fill_n(expected.begin(), 5, std::byte{0xEE});
  EXPECT_EQ(delivered[0].bytes, expected);
}

// S4. A record has 104 bytes, an odd multiple of 8, so that a record starts at each 8-byte position
// of the ring. A record that starts 8 bytes before the end has its payload in one piece.
TEST_F(PayloadTest, TheEndOfTheRingSplitsAPayloadAnywhere) {
  constexpr std::size_t kSplitPayload = 92;
  auto buffer = open(1);
  std::set<std::size_t> heads;
  for (std::size_t i = 0; i < os::page_size() / 8; ++i) {
    fill_payload(kSplitPayload, static_cast<unsigned>(i));
    ASSERT_EQ(emit(kSplitPayload), 0);
    const auto delivered = drain(buffer);
    ASSERT_EQ(delivered.size(), 1u);
    ASSERT_TRUE(is_payload(delivered[0], kSplitPayload)) << i;
    if (!delivered[0].tail.empty()) heads.insert(delivered[0].head.size());
  }
  EXPECT_EQ(heads, (std::set<std::size_t>{4, 12, 20, 28, 36, 44, 52, 60, 68, 76, 84}));
}

// K3
TEST_F(PayloadTest, LargePayloadsSurviveTheEndOfTheRing) {
  const std::size_t page_count = std::max<std::size_t>(1, 131072 / os::page_size());
  auto buffer = open(page_count);
  std::size_t split = 0;
  for (unsigned i = 0; i < 64; ++i) {
    const std::size_t size = 65516 - i;
    fill_payload(size, i);
    ASSERT_EQ(emit(size), 0);
    const auto delivered = drain(buffer);
    ASSERT_EQ(delivered.size(), 1u);
    ASSERT_TRUE(is_payload(delivered[0], size)) << i;
    split += !delivered[0].tail.empty();
  }
  EXPECT_GT(split, 0u);
}

// K37. The slices that a drain hands out are the kernel's memory, on every lap (K5).
TEST_F(PayloadTest, SlicesLieInTheRing) {
  auto buffer = open(1);
  ASSERT_EQ(emit(100), 0);
  const auto first = drain(buffer);
  const MappedRing ring{first.at(0), 1};
  EXPECT_EQ(ring.page.data_offset, os::page_size());
  EXPECT_EQ(ring.page.data_size, os::page_size());
  for (int i = 0; i < 200; ++i) {
    ASSERT_EQ(emit(100), 0);
    for (const DeliveredEvent& copied : drain(buffer)) {
      EXPECT_TRUE(ring.contains(copied.head));
      EXPECT_TRUE(ring.contains(copied.tail));
      if (!copied.tail.empty()) {
        EXPECT_EQ(copied.head.data() + copied.head.size(), ring.data.data() + ring.data.size());
        EXPECT_EQ(copied.tail.data(), ring.data.data());
      }
    }
  }
}

}  // namespace
}  // namespace perfring::live
