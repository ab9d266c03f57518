// How large a ring may be, and that all of it is used (S7, K12, K35).

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <limits>

#include "harness/live/testing.h"

namespace perfring::live {
namespace {

using Kind = PerfBufferError::Kind;

constexpr std::size_t kPayload = 12;  // 24 bytes a record: laps end at different places
constexpr std::uint32_t kNeverWake = 1u << 30;
constexpr std::uint32_t kNoCpu = 1u << 20;  // more than Linux has: perf_event_open refuses it

class PageCountTest : public LiveTest {
 protected:
  // Fills the ring, drains it, and does so twice.
  void expect_capacity(PerfEventArrayBuffer& buffer, std::size_t page_count) {
    const std::size_t room = capacity(page_count * os::page_size(), kPayload);
    for (int lap = 0; lap < 2; ++lap) {
      const auto attempts = static_cast<std::uint32_t>(room + 1 - static_cast<std::size_t>(lap));
      const auto emitted = emitter().emit_many(cpu(), kPayload, attempts);
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

// These need no kernel: the count is refused before the system is asked, or the CPU would be.
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
  // The limit itself is a matter for the kernel.
  EXPECT_EQ(PerfBuffer::open(kNoCpu, limit).error().kind, Kind::OpenError);
}

}  // namespace
}  // namespace perfring::live
