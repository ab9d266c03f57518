// S7, and a PerfBuffer's life, on a stand-in for the kernel: no privileges needed. harness/live has
// the tests on a real kernel.

#include "perfring/perf_buffer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/perf_event.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <expected>
#include <initializer_list>
#include <limits>
#include <memory>
#include <string>
#include <system_error>
#include <utility>
#include <variant>

#include "perfring/control_flow.h"
#include "perfring/perf_event.h"
#include "perfring/testing/fake_kernel.h"

namespace perfring {
namespace {

using ::testing::ElementsAre;
using testing::emit;
using testing::FakeKernel;
using Kind = PerfBufferError::Kind;

class PerfBufferTest : public ::testing::Test {
 protected:
  static const std::size_t kPage;
  FakeKernel kernel_;
};
const std::size_t PerfBufferTest::kPage = testing::page_size();

// Compares all bytes, so that no other attribute is set.
void expect_event(const perf_event_attr& actual, const perf_event_attr& expected) {
  EXPECT_EQ(std::memcmp(&actual, &expected, sizeof(expected)), 0);
}

perf_event_attr bpf_output() {
  perf_event_attr attr;
  std::memset(&attr, 0, sizeof(attr));
  attr.type = 1;     // PERF_TYPE_SOFTWARE
  attr.config = 10;  // PERF_COUNT_SW_BPF_OUTPUT
  attr.size = sizeof(attr);
  attr.sample_period = 1;
  attr.sample_type = 1024;  // PERF_SAMPLE_RAW
  attr.disabled = 1;
  return attr;
}

TEST_F(PerfBufferTest, OpensABpfOutputEventOnOneCpuForAllProcesses) {
  ASSERT_TRUE(PerfBuffer::open(3).has_value());
  perf_event_attr expected = bpf_output();
  expected.wakeup_events = 1;
  expect_event(kernel_.event, expected);
  EXPECT_EQ(kernel_.pid, -1);
  EXPECT_EQ(kernel_.cpu, 3);
  EXPECT_EQ(kernel_.group, -1);
  EXPECT_EQ(kernel_.flags, 8UL) << "PERF_FLAG_FD_CLOEXEC";
}

TEST_F(PerfBufferTest, WatermarkReplacesWakeupPerRecord) {
  const auto ring = static_cast<std::uint32_t>(4 * kPage);
  // A watermark above the ring's size becomes that size: a 32-bit kernel takes 2^31 and more for a
  // negative number, and never wakes anybody (K30 of the harness's facts).
  for (const auto& [watermark, expected_watermark] :
       std::initializer_list<std::pair<std::uint32_t, std::uint32_t>>{{1, 1},
                                                                      {8192, 8192},
                                                                      {ring, ring},
                                                                      {ring + 1, ring},
                                                                      {1U << 31, ring},
                                                                      {0xffff'ffff, ring}}) {
    ASSERT_TRUE(PerfBuffer::open(0, {.page_count = 4, .wakeup_watermark = watermark}).has_value());
    perf_event_attr expected = bpf_output();
    expected.watermark = 1;
    expected.wakeup_watermark = expected_watermark;
    expect_event(kernel_.event, expected);
  }
}

TEST_F(PerfBufferTest, WatermarkIsCappedAtRequestedRingSize) {
  ASSERT_TRUE(PerfBuffer::open(0, {.page_count = 1, .wakeup_watermark = 0xffff'ffff}).has_value());
  EXPECT_EQ(kernel_.event.wakeup_watermark, kPage);
}

TEST_F(PerfBufferTest, TheRingIsPageCountPagesAfterTheFirst) {
  for (const std::size_t pages : {1U, 2U, 8U, 64U}) {
    auto buffer = PerfBuffer::open(0, pages);
    ASSERT_TRUE(buffer.has_value());
    EXPECT_FALSE(buffer->readable());
    // A record that straddles the end, so that a wrong size would show.
    const std::uint64_t tail = 3 * pages * kPage - 8;
    ASSERT_EQ(::pwrite(buffer->fd(), &tail, 8, offsetof(perf_event_mmap_page, data_tail)), 8);
    emit(buffer->fd(), kPage, pages, tail);
    EXPECT_TRUE(buffer->readable());
    int samples = 0;
    buffer->for_each([&](const PerfEvent& event) {
      const auto* sample = std::get_if<Sample>(&event);
      ASSERT_NE(sample, nullptr);
      ASSERT_EQ(sample->head.size(), 4U);
      std::uint32_t value = 0;
      std::memcpy(&value, sample->head.data(), 4);
      samples += value == 0xcafebabe;
    });
    EXPECT_EQ(samples, 1) << pages;
    std::uint64_t committed = 0;
    ASSERT_EQ(::pread(buffer->fd(), &committed, 8, offsetof(perf_event_mmap_page, data_tail)), 8);
    EXPECT_EQ(committed, tail + 16) << "the kernel sees it";
  }
}

TEST_F(PerfBufferTest, TheDefaultIsTwoPages) {
  auto buffer = PerfBuffer::open(0);
  ASSERT_TRUE(buffer.has_value());
  emit(buffer->fd(), kPage, 2, 2 * kPage + 64);
  const std::uint64_t tail = 2 * kPage + 64;
  ASSERT_EQ(::pwrite(buffer->fd(), &tail, 8, offsetof(perf_event_mmap_page, data_tail)), 8);
  EXPECT_EQ(buffer->fold(0, [](int n, PerfEvent event) { return n + (event.index() == 0); }), 1);
  EXPECT_EQ(PerfBufferOptions{}.page_count, 2U);
  EXPECT_EQ(PerfBufferOptions{}.wakeup_watermark, 0U);
}

// Braces are options: an empty pair is not a page count of 0.
TEST_F(PerfBufferTest, BracedArgumentsAreOptionsNotPageCounts) {
  const auto pages = [](const std::expected<PerfBuffer, PerfBufferError>& buffer) {
    return FakeKernel::mapped_size(buffer.value().fd()) / kPage - 1;
  };
  EXPECT_EQ(pages(PerfBuffer::open(0, {})), 2U);
  EXPECT_EQ(pages(PerfBuffer::open(0, {64})), 64U);
  EXPECT_EQ(pages(PerfBuffer::open(0, {8, 100})), 8U);
  EXPECT_EQ(kernel_.event.wakeup_watermark, 100U);
  EXPECT_EQ(pages(PerfBuffer::open(0, 4)), 4U);
  EXPECT_EQ(pages(PerfBuffer::open(0, 4UL)), 4U);
  EXPECT_EQ(pages(PerfBuffer::open(0, short{16})), 16U);
  EXPECT_EQ(pages(PerfBuffer::open(0, std::uint8_t{128})), 128U);
}

TEST_F(PerfBufferTest, RefusesInvalidPageCountBeforeOpening) {
  constexpr std::size_t kMax = std::numeric_limits<std::size_t>::max();
  const auto refused = [&](auto count) {
    const auto buffer = PerfBuffer::open(0, count);
    return !buffer && buffer.error().kind == Kind::InvalidPageCount ? buffer.error().page_count : 0;
  };
  EXPECT_EQ(refused(-1), kMax);
  EXPECT_EQ(refused(-2), kMax) << "nor the size_t that it converts to";
  EXPECT_EQ(refused(std::numeric_limits<int>::min()), kMax);
  EXPECT_EQ(refused(static_cast<signed char>(-128)), kMax);
  EXPECT_EQ(refused(std::numeric_limits<std::int64_t>::min()), kMax) << "a power of two as size_t";
  EXPECT_EQ(refused(std::numeric_limits<std::uint64_t>::max()), kMax);
  EXPECT_EQ(refused(3), 3U);
  // The low 32 bits of this number are a page count.
  const std::uint64_t wide = (std::uint64_t{1} << 32) + 2;
  EXPECT_EQ(refused(wide), sizeof(kMax) < sizeof(wide) ? kMax : static_cast<std::size_t>(wide));
  EXPECT_THAT(kernel_.calls, ElementsAre());
}

TEST_F(PerfBufferTest, AnyNumberOfACpuIsAskedOfTheKernel) {
  for (const std::uint32_t cpu : {0U, 0x7fff'ffffU, 0x8000'0000U, 0xffff'ffffU}) {
    kernel_.open_errno = EINVAL;
    const auto buffer = PerfBuffer::open(cpu);
    ASSERT_FALSE(buffer.has_value());
    EXPECT_EQ(buffer.error().kind, Kind::OpenError);
    EXPECT_EQ(buffer.error().cpu, cpu);
    EXPECT_EQ(static_cast<std::uint32_t>(kernel_.cpu), cpu);
  }
}

// A functor that nobody may copy, for values that nobody may copy.
struct Counter {
  using Value = std::unique_ptr<int>;
  using Flow = ControlFlow<std::string, Value>;
  Counter() = default;
  Counter(const Counter&) = delete;
  void operator()(const PerfEvent&) { ++calls; }
  Flow operator()(Value value, const PerfEvent&) {
    if (++calls == stop) return Break{"enough of " + std::to_string(*value)};
    return Continue{std::make_unique<int>(*value + 1)};
  }
  int calls = 0;
  int stop = 0;
};

TEST_F(PerfBufferTest, DrainsLikeRing) {
  auto buffer = PerfBuffer::open(0);
  ASSERT_TRUE(buffer.has_value());
  for (std::uint64_t i = 0; i < 6; ++i) emit(buffer->fd(), kPage, 2, 16 * i);
  Counter counter;
  counter.stop = 2;
  const auto broken = buffer->try_fold(std::make_unique<int>(10), counter);
  ASSERT_TRUE(broken.is_break());
  EXPECT_EQ(broken.break_value(), "enough of 11");
  counter.stop = 0;
  const auto all = buffer->try_fold(std::make_unique<int>(20), counter);
  ASSERT_TRUE(all.is_continue());
  EXPECT_EQ(*all.continue_value(), 24);
  EXPECT_EQ(counter.calls, 6);
  EXPECT_FALSE(std::as_const(*buffer).readable());
  emit(buffer->fd(), kPage, 2, 96);
  EXPECT_TRUE(std::as_const(*buffer).readable());
  const auto value = buffer->fold(std::make_unique<int>(30), [](auto last, const PerfEvent&) {
    ++*last;
    return last;
  });
  EXPECT_EQ(*value, 31);
  emit(buffer->fd(), kPage, 2, 112);
  buffer->for_each(counter);
  EXPECT_EQ(counter.calls, 7);
  emit(buffer->fd(), kPage, 2, 128);
  buffer->for_each(
      [&counter, five = std::make_unique<int>(5)](const PerfEvent&) { counter.calls += *five; });
  EXPECT_EQ(counter.calls, 12);
  for (std::uint64_t i = 9; i < 12; ++i) emit(buffer->fd(), kPage, 2, 16 * i);
  const auto twice = [n = 0](const Sample&) mutable { return ++n != 2; };
  const auto none = [](const auto&) { return ADD_FAILURE(), false; };
  EXPECT_FALSE(buffer->for_each_while(Overloaded{twice, none}));
  EXPECT_TRUE(buffer->for_each_while(Overloaded{twice, none}));
  EXPECT_FALSE(buffer->readable());
}

TEST_F(PerfBufferTest, IsEnabledOnlyWhileMapped) {
  int fd = -1;
  {
    const auto buffer = PerfBuffer::open(0);
    ASSERT_TRUE(buffer.has_value());
    fd = buffer->fd();
    EXPECT_EQ(FakeKernel::mappings(), 1);
  }
  const std::string number = std::to_string(fd);
  EXPECT_THAT(kernel_.calls, ElementsAre("open " + number, "enable " + number + ", mapped",
                                         "disable " + number + ", mapped"));
  EXPECT_FALSE(FakeKernel::is_open(fd));
  EXPECT_EQ(FakeKernel::mappings(), 0);
}

TEST_F(PerfBufferTest, AnEventMayBeDescriptor0) {
  const int saved = ::dup(0);
  ::close(0);
  EXPECT_EQ(PerfBuffer::open(0).value().fd(), 0);
  EXPECT_THAT(kernel_.calls, ElementsAre("open 0", "enable 0, mapped", "disable 0, mapped"));
  EXPECT_FALSE(FakeKernel::is_open(0));
  ::dup2(saved, 0);
  ::close(saved);
}

class PerfBufferOpenFailureTest : public PerfBufferTest {
 protected:
  void expect_error(Kind kind, int error) {
    const auto buffer = PerfBuffer::open(5, 4);
    ASSERT_FALSE(buffer.has_value());
    EXPECT_EQ(buffer.error().kind, kind);
    EXPECT_EQ(buffer.error().io_error, std::error_code(error, std::generic_category()));
    EXPECT_EQ(buffer.error().cpu, 5U);
    EXPECT_EQ(buffer.error().page_count, 4U);
    EXPECT_EQ(FakeKernel::mappings(), 0);
    if (kernel_.calls.empty()) return;
    EXPECT_FALSE(FakeKernel::is_open(std::stoi(kernel_.calls[0].substr(5))));
  }
};

TEST_F(PerfBufferOpenFailureTest, AFailedOpenIsReported) {
  kernel_.open_errno = EACCES;
  expect_error(Kind::OpenError, EACCES);
}

TEST_F(PerfBufferOpenFailureTest, FailedMmapClosesEvent) {
  kernel_.event_cannot_be_mapped = true;
  expect_error(Kind::MMapError, ENODEV);
}

TEST_F(PerfBufferOpenFailureTest, FailedEnableReleasesEverything) {
  kernel_.enable_errno = EPERM;
  expect_error(Kind::PerfEventEnableError, EPERM);
}

}  // namespace
}  // namespace perfring
