// The deliveries of a Sampler, even to callbacks that misuse it, on a stand-in for the kernel.
// harness/live/tests/event_test.cc tests it on a real one.

#include "perfring/sampler/sampler.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "perfring/event/event.h"
#include "perfring/record/view.h"
#include "perfring/testing/events.h"
#include "perfring/testing/fake_kernel.h"

#if __SIZEOF_POINTER__ == 8  // here time_t has one size only
namespace {
std::function<std::optional<std::uint64_t>()> fake_monotonic_clock;  // ns of CLOCK_MONOTONIC
std::function<std::optional<std::uint64_t>(clockid_t)> fake_clocks;
}  // namespace

// Replaces libc's function.
extern "C" int clock_gettime(clockid_t clock, timespec* time) noexcept {
  const auto clock_value = fake_clocks ? fake_clocks(clock)
                           : clock == CLOCK_MONOTONIC && fake_monotonic_clock
                               ? fake_monotonic_clock()
                               : std::nullopt;
  if (!clock_value) return static_cast<int>(::syscall(SYS_clock_gettime, clock, time));
  time->tv_sec = static_cast<time_t>(*clock_value / 1'000'000'000);
  time->tv_nsec = static_cast<long>(*clock_value % 1'000'000'000);
  return 0;
}
#endif

namespace perfring::event {
namespace {

using namespace std::chrono_literals;
using perfring::testing::FakeKernel;
using testing::SamplerTest;
using Clock = Sampler::Clock;

// R25
TEST_F(SamplerTest, ForeignSampleIdMapsToSoleSoftwareEvent) {
  const Event clock = software(PERF_COUNT_SW_CPU_CLOCK);
  const Event faults = software(PERF_COUNT_SW_PAGE_FAULTS);
  const Event switches = software(PERF_COUNT_SW_CONTEXT_SWITCHES);
  const auto event_of_a_sample = [this](std::vector<Event> events) {
    head_ = 0;
    Sampler sampler = open({.events = std::move(events), .target = this_thread(), .page_count = 1});
    constexpr std::uint64_t kNobodys = 987'654;
    write_sample(sampler, kNobodys);
    std::size_t event = 99;
    sampler.flush([&](const Delivered& each) { event = each.event; });
    return event;
  };
  EXPECT_EQ(event_of_a_sample({clock, faults}), 1U);
  EXPECT_EQ(event_of_a_sample({switches, clock}), 0U);
  EXPECT_EQ(event_of_a_sample({clock, faults, switches}), Delivered::kNoEvent);
  EXPECT_EQ(event_of_a_sample({clock, changes({.execs = true})}), Delivered::kNoEvent);
}

// kernel/events/core.c: perf_event_set_output() at v6.18.
TEST_F(SamplerTest, AnEventThatAnothersRingRefusesIsExplained) {
  const Event faults = software(PERF_COUNT_SW_PAGE_FAULTS);
  const Event clock = software(PERF_COUNT_SW_CPU_CLOCK);
  const auto refused = [this](const Event& first, const Event& second) {
    kernel_.output_errno = EINVAL;
    const auto opened = Sampler::open({.events = {first, second}, .target = this_thread()});
    kernel_.output_errno = 0;
    EXPECT_FALSE(opened.has_value());
    EXPECT_EQ(opened.error().step, EventError::Step::Output);
    EXPECT_EQ(FakeKernel::mappings(), 0);
    return opened.error().explain();
  };
  const std::string prefix =
      "asked for: ioctl PERF_EVENT_IOC_SET_OUTPUT of the software event cpu-clock of this thread\n"
      "the system said: Invalid argument: ";
  const auto no_clock = [](perf_event_attr& attr) { attr.use_clockid = 0, attr.clockid = 0; };
  EXPECT_EQ(refused(faults, clock.adjust(no_clock)),
            prefix +
                "the events of one ring have different clocks\n"
                "to change: give all the same, or open a Sampler for each clock");
  EXPECT_EQ(refused(faults, clock), prefix +
                                        "the event cannot write to the ring of the one before it\n"
                                        "to change: open a Sampler for each of them");
}

TEST_F(SamplerTest, PagesWhoseBytesWrapToARingOfOnePageAreRefused) {
  Request wraps = request();
  wraps.page_count = std::numeric_limits<std::size_t>::max() / perfring::testing::page_size() + 2;
  const auto opened = Sampler::open(wraps);
  ASSERT_FALSE(opened.has_value());
  EXPECT_EQ(opened.error().step, EventError::Step::Map);
  EXPECT_EQ(opened.error().io_error, std::errc::invalid_argument);
  EXPECT_EQ(FakeKernel::mappings(), 0);
}

TEST_F(SamplerTest, ACallbackThatAsksForMoreGetsEachRecordOnce) {
  Sampler sampler = open();
  for (std::uint64_t time = 1; time <= 5; ++time) write(sampler, "x", time);
  std::string records;
  sampler.for_each([&](const Delivered& each) {
    records += std::to_string(each.time) + " ";
    if (each.time == 1) {
      const auto next = sampler.next(Clock::time_point::min());
      records += "then " + std::to_string(next->time) + " ";
    }
    if (records.ends_with("3 ")) {
      sampler.flush(
          [&](const Delivered& rest) { records += "(" + std::to_string(rest.time) + ") "; });
    }
  });
  EXPECT_EQ(records, "1 then 2 3 (4) (5) ");
  EXPECT_EQ(sampler.counts().delivered, 5U);
}

// R10, T9: one bit of the attributes can cause several types of records.
TEST_F(SamplerTest, UnrequestedRecordsAreLeftOut) {
  const auto delivered_with = [this](const Changes& which) {
    head_ = 0;
    Sampler sampler =
        open({.events = {event::changes(which)}, .target = this_thread(), .page_count = 1});
    std::uint64_t time = 0;
    for (const std::uint32_t type : {PERF_RECORD_COMM, PERF_RECORD_FORK, PERF_RECORD_EXIT}) {
      write(sampler, "x", ++time, type);
    }
    write(sampler, "x", ++time, 63);  // of a future kernel
    std::string records;
    sampler.flush([&](const Delivered& each) { records += std::to_string(each.time); });
    EXPECT_EQ(sampler.counts().delivered, records.size());
    EXPECT_FALSE(sampler.next(Clock::time_point::min()));
    return records;
  };
  EXPECT_EQ(delivered_with({.cgroups = true}), "4");
  EXPECT_EQ(delivered_with({.namespaces = true}), "4");
  EXPECT_EQ(delivered_with({.maps = true}), "4");
  EXPECT_EQ(delivered_with({.names = true}), "14");
  EXPECT_EQ(delivered_with({.execs = true, .cgroups = true}), "14");
  EXPECT_EQ(delivered_with({.forks = true}), "234");
  EXPECT_EQ(delivered_with({.execs = true, .forks = true}), "1234");
}

TEST_F(SamplerTest, ARecordThatACallbackThrewOnCountsAsDelivered) {
  Sampler sampler = open();
  write(sampler, "one", 1);
  write(sampler, "two", 2);
  EXPECT_THROW(sampler.for_each([](const Delivered&) { throw 7; }), int);
  std::string records;
  sampler.for_each([&](const Delivered& each) { records += name_of(each); });
  EXPECT_EQ(records, "two ");
}

TEST_F(SamplerTest, ANullPointerToAFunctionEndsTheProgram) {
  Sampler sampler = open();  // it holds nothing
  void (*const none)(const Delivered&) = nullptr;
  EXPECT_DEATH(sampler.for_each(none), "");
  EXPECT_DEATH(sampler.flush(none), "");
}

#if __SIZEOF_POINTER__ == 8
// E1: before next() returns nullopt, it reads the rings after it has read the clock.
TEST_F(SamplerTest, DeliversRecordArrivingJustBeforeDeadline) {
  Sampler sampler = open();
  constexpr std::uint64_t kDeadline = 5'000'000'000'000'000;
  int readings = 0;
  fake_monotonic_clock = [&] {
    if (++readings == 1) return std::optional{kDeadline - 1};
    if (readings == 2) write(sampler, "one", kDeadline - 1);
    return std::optional{kDeadline};
  };
  const auto one = sampler.next(Clock::time_point{std::chrono::nanoseconds{kDeadline}});
  const auto none = sampler.next(Clock::time_point{std::chrono::nanoseconds{kDeadline}});
  fake_monotonic_clock = nullptr;
  ASSERT_TRUE(one);
  EXPECT_EQ(name_of(*one), "one ");
  EXPECT_FALSE(none);
}
#endif

TEST_F(SamplerTest, TheRoomOfARecordIsGivenBackByTheNextCall) {
  Sampler sampler = open();
  const auto tail = [&] {
    std::uint64_t value = ~std::uint64_t{0};
    const auto fd = static_cast<int>(sampler.events()[0].ids[0]);
    EXPECT_EQ(::pread(fd, &value, 8, offsetof(perf_event_mmap_page, data_tail)), 8);
    return value;
  };
  write(sampler, "one", 1);
  EXPECT_TRUE(sampler.next(Clock::time_point::min()));
  EXPECT_EQ(tail(), 0U) << "it may still be looked at";
  EXPECT_FALSE(sampler.next(Clock::time_point::min()));
  EXPECT_EQ(tail(), head_);
  write(sampler, "two", 2);
  sampler.for_each([](const Delivered&) {});
  EXPECT_EQ(tail(), head_);
  write(sampler, "three", 3);
  EXPECT_TRUE(sampler.next(Clock::time_point::min()));
  sampler.wait(Clock::time_point::min());
  EXPECT_EQ(tail(), head_);
}

// E7: a poll for the end clears the report of earlier records.
TEST_F(SamplerTest, AskingForTheEndTakesNoReportAway) {
  Sampler sampler = open();
  const auto now = Clock::time_point::min();
  EXPECT_EQ(sampler.wait(now), Woken::Report) << "a ring that was added is looked at";
  EXPECT_EQ(sampler.wait(now), Woken::Timeout);
  EXPECT_FALSE(sampler.ended());  // the stand-in's events are always readable
  EXPECT_LE(sampler.next_deadline(), Clock::now());
  EXPECT_EQ(sampler.wait(now), Woken::Report);
  EXPECT_EQ(sampler.wait(now), Woken::Timeout);
  // Events for all tasks or a cgroup are not polled, so no report is cleared. (The stand-in accepts
  // any folder as a cgroup.)
  for (const Target& target : {event::system().on({0}), cgroup("/tmp").on({0})}) {
    Sampler all = open({.events = {testing::kFaults}, .target = target});
    EXPECT_EQ(all.wait(now), Woken::Report);
    EXPECT_FALSE(all.ended());
    EXPECT_EQ(all.wait(now), Woken::Timeout);
  }
}

TEST_F(SamplerTest, ARecordWithoutATimeHasThatOfTheOneBeforeIt) {
  Sampler sampler = open();
  write(sampler, "x", 5);
  const perf_event_header cut_off{PERF_RECORD_COMM, 0, sizeof cut_off};
  publish(sampler, &cut_off, sizeof cut_off);
  write(sampler, "x", 6);
  std::string records;
  sampler.flush([&](const Delivered& each) {
    const bool malformed = std::holds_alternative<record::Malformed>(each.record);
    records += std::to_string(each.time) + (malformed ? "malformed " : " ");
    EXPECT_FALSE(each.late);
    EXPECT_EQ(each.event, malformed ? Delivered::kNoEvent : 0U);
    EXPECT_EQ(each.bytes.size(), malformed ? 8U : 64U);
  });
  EXPECT_EQ(records, "5 5malformed 6 ");
  EXPECT_EQ(sampler.counts().malformed, 1U);
  EXPECT_EQ(sampler.counts().delivered, 3U);
}

TEST_F(SamplerTest, ARecordOlderThanADeliveredOneIsLate) {
  Sampler sampler = open();
  for (const std::uint64_t time : {5U, 3U, 5U, 6U, 5U}) write(sampler, "x", time);
  std::string records;
  sampler.flush([&](const Delivered& each) { records += each.late ? "late " : "- "; });
  EXPECT_EQ(records, "- late - - late ");
  EXPECT_EQ(sampler.counts().late, 2U);
}

#if __SIZEOF_POINTER__ == 8
// With several rings, a record waits until each ring has been read 100 us after the record's time.
// If the thread's own waits wake it, it does not wait only for that, because the wait would cause
// the next records (R5).
TEST_F(SamplerTest, RecordIsHeldOnlyAsLongAsOrderRequires) {
  for (const bool wakes_itself : {false, true}) {
    head_ = 0;
    Request several = request(this_thread().and_children());
    if (wakes_itself) several.events = {changes({.switches = true})};
    several.target->cpus = {0, 1};
    Sampler sampler = open(several);
    ASSERT_EQ(sampler.rings(), 2U);
    constexpr std::uint64_t kTime = 1'000'000;
    write(sampler, "x", kTime, 63);  // no event leaves out this type
    const auto delivered_at = [&](std::uint64_t now) {
      fake_monotonic_clock = [now] { return std::optional{now}; };
      int count = 0;
      sampler.for_each([&](const Delivered&) { ++count; });
      fake_monotonic_clock = nullptr;
      return count;
    };
    sampler.wait(Clock::time_point::min());  // rings that were added are reported at once
    EXPECT_EQ(delivered_at(kTime), 0);
    EXPECT_EQ(delivered_at(kTime + 100'000), 0);
    const Clock::time_point due{std::chrono::nanoseconds{kTime + 100'001}};
    EXPECT_EQ(sampler.next_deadline() == due, !wakes_itself);
    EXPECT_EQ(delivered_at(kTime + 100'001), 1);
  }
}
#endif

// Two rings; records are written to the first.
class SeveralRingsTest : public SamplerTest {
 protected:
  Sampler open_by(std::optional<clockid_t> clock) {
    head_ = 0;
    Request several = request(this_thread().and_children());
    several.target->cpus = {0, 1};
    several.longest_wait = 1h;
    several.events[0] = several.events[0].adjust([clock](perf_event_attr& attr) {
      attr.use_clockid = clock.has_value();
      attr.clockid = clock.value_or(0);
    });
    Sampler sampler = open(several);
    sampler.wait(Clock::time_point::min());  // rings that were added are reported at once
    return sampler;
  }
  static int count_records(Sampler& sampler) {
    int count = 0;
    sampler.for_each([&](const Delivered&) { ++count; });
    return count;
  }
  static std::uint64_t now_by(clockid_t clock) {
    timespec now{};
    ::syscall(SYS_clock_gettime, clock, &now);
    return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 +
           static_cast<std::uint64_t>(now.tv_nsec);
  }
  static constexpr std::uint64_t kTenMinutes = 600'000'000'000;
};

// By the events' own clock, if they have one. The kernel's own clock cannot be read, so nothing is
// held.
TEST_F(SeveralRingsTest, ARecordIsHeldByTheClockOfItsEvents) {
  for (const clockid_t clock : {CLOCK_REALTIME, CLOCK_BOOTTIME}) {
    Sampler sampler = open_by(clock);
    write(sampler, "x", now_by(clock) - 1'000'000, 63);
    EXPECT_EQ(count_records(sampler), 1) << clock;
    EXPECT_EQ(sampler.counts().ahead, 0U) << clock;
  }
  Sampler sampler = open_by(std::nullopt);
  write(sampler, "x", now_by(CLOCK_MONOTONIC) + kTenMinutes, 63);
  EXPECT_EQ(count_records(sampler), 1);
  EXPECT_EQ(sampler.counts().ahead, 0U);
}

#if __SIZEOF_POINTER__ == 8
TEST_F(SeveralRingsTest, ADeadlineIsOfTheClockOfTheWait) {
  constexpr std::uint64_t kMonotonic = 1'000'000'000;  // earlier than the end of any wait
  constexpr std::uint64_t kReal = 1'800'000'000'000'000'000;
  Sampler sampler = open_by(CLOCK_REALTIME);
  fake_clocks = [=](clockid_t clock) {
    return std::optional{clock == CLOCK_REALTIME ? kReal : kMonotonic};
  };
  write(sampler, "x", kReal - 30'000, 63);
  const int at_once = count_records(sampler);
  const Clock::time_point due = sampler.next_deadline();
  fake_clocks = nullptr;
  EXPECT_EQ(at_once, 0);
  EXPECT_EQ(due, Clock::time_point{std::chrono::nanoseconds{kMonotonic + 70'001}});
  int flushed = 0;
  sampler.flush([&](const Delivered&) { ++flushed; });
  EXPECT_EQ(flushed, 1);
}
#endif

// E3: as in a time namespace, or with times by a clock other than that of the events.
TEST_F(SeveralRingsTest, ARecordAheadOfTheClockWaitsForNothing) {
  Sampler sampler = open_by(CLOCK_MONOTONIC);
  for (int i = 0; i < 50; ++i) write(sampler, "x", now_by(CLOCK_MONOTONIC) + kTenMinutes, 63);
  EXPECT_EQ(count_records(sampler), 50);
  EXPECT_EQ(sampler.counts().ahead, 50U);
  EXPECT_EQ(sampler.counts().late, 0U);
  write(sampler, "x", now_by(CLOCK_MONOTONIC) + kTenMinutes, 63);
  EXPECT_TRUE(sampler.next(Clock::now() + 1h)) << "after an hour";
  EXPECT_EQ(sampler.counts().ahead, 51U);
}

}  // namespace
}  // namespace perfring::event
