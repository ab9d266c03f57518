// Samplers on the machine's own kernel: how long next() and a wait last, the end of the watched
// tasks, the order of several rings, children.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <system_error>
#include <thread>
#include <variant>
#include <vector>

#include "harness/live/event_testing.h"
#include "harness/live/live_testing.h"
#include "harness/program/child_process.h"
#include "harness/program/sanitizers.h"
#include "perfring/event/diagnosis/event_error.h"
#include "perfring/event/event.h"
#include "perfring/event/request.h"
#include "perfring/event/system.h"
#include "perfring/os/fd.h"
#include "perfring/os/process.h"
#include "perfring/record/sample.h"
#include "perfring/record/tasks.h"
#include "perfring/record/to_string.h"
#include "perfring/sampler/sampler.h"

namespace perfring::event {
namespace {

using namespace std::chrono_literals;
using live::in_child;
using live::must;
using live::open_files;
using testing::fault;
using testing::kFaults;
using testing::LiveEventTest;
using Clock = Sampler::Clock;

TEST_F(LiveEventTest, TheBlogsProgramPrintsTenSwitchRecords) {
  Sampler sampler =
      must(Sampler::open({.events = {changes({.switches = true})}, .target = this_thread()}));
  for (int i = 0; i < 10; ++i) {
    const auto one = sampler.next(Clock::now() + 500ms);
    ASSERT_TRUE(one) << "a timeout, after " << i;
    EXPECT_TRUE(std::holds_alternative<record::Switch>(one->record)) << to_string(one->record);
  }
  // R5: the wait's own records wake nobody.
  const auto before = sampler.counts().delivered;
  for (const auto end = Clock::now() + 500ms; Clock::now() < end;) {
    sampler.wait(end);
    sampler.for_each([](const Delivered&) {});
  }
  EXPECT_LT(sampler.counts().delivered - before, 100U);
}

TEST_F(LiveEventTest, NextNeverTimesOutWithARecordInTheRing) {
  Sampler sampler =
      must(Sampler::open({.events = {kFaults}, .target = this_thread(), .batch = 1 << 20}));
  while (sampler.next(Clock::now())) {
  }
  fault(3);
  std::uint64_t count = 0;
  while (sampler.next(Clock::time_point::min())) ++count;
  EXPECT_GE(count, 3U);
  const auto began = Clock::now();
  while (sampler.next(began + 150ms)) {
  }
  EXPECT_GE(Clock::now() - began, 150ms);
}

// E7: next() has no deadline, and nothing else would end the wait for a minute.
TEST_F(LiveEventTest, NextEndsWithTheTasksThatAreWatched) {
  for (const std::vector<Event>& events :
       {std::vector{kFaults}, std::vector{kFaults, changes({.forks = true})}}) {
    Sampler sampler =
        must(Sampler::open({.events = events, .target = child({"true"}), .longest_wait = 60s}));
    std::size_t faults = 0;
    std::size_t exits = 0;
    const auto began = Clock::now();
    while (const auto each = sampler.next()) {
      faults += std::holds_alternative<record::Sample>(each->record);
      exits += std::holds_alternative<record::Exit>(each->record);
    }
    EXPECT_LT(Clock::now() - began, 30s);
    EXPECT_GT(faults, 0U);
    EXPECT_EQ(exits, events.size() - 1);
    EXPECT_TRUE(sampler.ended());
    EXPECT_FALSE(sampler.next());
    // A loop of waits does not spin either (R22).
    int waits = 0;
    for (const auto end = Clock::now() + 200ms; Clock::now() < end; ++waits) sampler.wait(end);
    EXPECT_LT(waits, 20);
    while (!sampler.child_status()) ::usleep(1000);
  }
}

struct Pipe {
  Pipe() {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) {
      throw std::system_error{errno, std::generic_category(), "pipe2"};
    }
    read_end = os::Fd{ends[0]};
    write_end = os::Fd{ends[1]};
  }

  os::Fd read_end, write_end;
};

// A child that calls `run` with each byte that it is sent, and exits once the pipe is closed.
class CommandedChild {
 public:
  static constexpr char kLeaveItToAChild = 'c';  // a child of the child runs the rest

  explicit CommandedChild(const std::function<void(char)>& run)
      : child_{[this, &run] {
          pipe_.write_end = {};
          return serve(run);
        }} {}

  pid_t id() const { return child_.id(); }
  void send(char command) const { EXPECT_EQ(::write(pipe_.write_end.get(), &command, 1), 1); }
  void close_pipe() { pipe_.write_end = {}; }
  void wait() { child_.wait(); }

 private:
  int serve(const std::function<void(char)>& run) {
    for (char command = 0; ::read(pipe_.read_end.get(), &command, 1) == 1;) {
      if (command != kLeaveItToAChild) {
        run(command);
        continue;
      }
      auto rest = os::Process::fork([&] { return serve(run); });
      if (!rest) return 1;
      rest->keep_running();
      return 0;
    }
    return 0;
  }

  Pipe pipe_;
  ForkedChild child_;
};

TEST_F(LiveEventTest, ASamplerOfAProcessEndsWithItsLastChild) {
  CommandedChild process{[](char command) { fault(command - '0'); }};
  Sampler sampler = must(Sampler::open({.events = {kFaults, changes({.forks = true})},
                                        .target = event::process(process.id()).and_children(),
                                        .longest_wait = 20ms}));
  EXPECT_FALSE(sampler.ended());
  process.send('2');
  // The child inherits the pipe's read end and the events.
  process.send(CommandedChild::kLeaveItToAChild);
  process.wait();
  while (sampler.next(Clock::now() + 50ms)) {
  }
  EXPECT_FALSE(sampler.ended()) << "the child has not";
  process.send('5');
  process.close_pipe();
  std::size_t faults = 0;
  while (const auto each = sampler.next()) {
    faults += std::holds_alternative<record::Sample>(each->record);
  }
  EXPECT_GE(faults, 5U);
  EXPECT_TRUE(sampler.ended());
  EXPECT_EQ(sampler.lost(), 0U);
}

// Two threads share rings, which the first one's events map. The first one ends first.
TEST_F(LiveEventTest, TheLastThreadsEndIsTheEnd) {
#ifdef PERFRING_TSAN
  GTEST_SKIP() << "ThreadSanitizer starts no thread in a process that fork() made";
#endif
  Pipe go;
  const CommandedChild process{[&go](char command) {
    if (command == 'e') ::syscall(SYS_exit, 0);  // ends this thread only
    go.write_end = {};
    std::thread{[&go] {
      char none = 0;
      static_cast<void>(!::read(go.read_end.get(), &none, 1));
      ::usleep(200'000);  // the sampler most likely waits by then
      fault(5);
      ::_exit(0);
    }}.detach();
  }};
  const std::string folder = "/proc/" + std::to_string(process.id()) + "/task";
  const auto threads = [&] { return real_system().list(folder).value().size(); };
  process.send('t');
  while (threads() != 2) ::usleep(1000);
  Sampler sampler = must(Sampler::open({.events = {kFaults},
                                        .target = event::process(process.id()).and_children(),
                                        .longest_wait = 60s}));
  process.send('e');
  const std::string first = folder + "/" + std::to_string(process.id()) + "/stat";
  while (real_system().read(first).value().find(") Z ") == std::string::npos) ::usleep(1000);
  while (sampler.next(Clock::now())) {
  }
  EXPECT_FALSE(sampler.ended());
  go.write_end = {};
  const auto began = Clock::now();
  std::size_t faults = 0;
  while (const auto each = sampler.next()) {
    faults += std::holds_alternative<record::Sample>(each->record);
  }
  EXPECT_LT(Clock::now() - began, 30s);
  EXPECT_GE(faults, 5U);
  EXPECT_TRUE(sampler.ended());
}

TEST_F(LiveEventTest, ASamplerOfAllTasksDoesNotEnd) {
  Sampler sampler =
      must(Sampler::open({.events = {changes({.forks = true})}, .target = event::system()}));
  EXPECT_FALSE(sampler.ended());
  const auto began = Clock::now();
  while (sampler.next(began + 50ms)) {
  }
  EXPECT_GE(Clock::now() - began, 50ms);
}

TEST_F(LiveEventTest, NextHoldsNothingBackBeyondItsDeadline) {
  Sampler sampler =
      must(Sampler::open({.events = {kFaults}, .target = this_thread().and_children()}));
  if (sampler.rings() < 2) GTEST_SKIP() << "one CPU, so that nothing is held for its order";
  while (sampler.next(Clock::now())) {
  }
  fault(1);
  EXPECT_TRUE(sampler.next(Clock::time_point::min()));
}

// Another loop has fd() and next_deadline() only. It sees a record that is held for its order when
// the holding ends, and a record below the batch after longest_wait at the latest (E2).
TEST_F(LiveEventTest, AnotherLoopSeesEachRecordInTime) {
  for (const bool is_held : {true, false}) {
    Sampler sampler =
        must(Sampler::open({.events = {kFaults},
                            .target = is_held ? this_thread().and_children() : this_thread(),
                            .batch = is_held ? 0U : 1U << 15,
                            .longest_wait = is_held ? std::chrono::nanoseconds{60s} : 100ms}));
    if (is_held && sampler.rings() < 2) continue;  // one CPU: nothing is held
    bool is_found = false;
    std::uint64_t memory = 0;
    const auto each = [&](const Delivered& one) {
      const auto* const sample = std::get_if<record::Sample>(&one.record);
      is_found = is_found || (sample != nullptr && sample->addr() == memory);
    };
    memory = fault(1);
    const auto began = Clock::now();
    while (!is_found && Clock::now() - began < 30s) {
      sampler.wait(Clock::time_point::min());
      sampler.for_each(each);
      if (is_found) break;
      const auto left =
          std::chrono::ceil<std::chrono::milliseconds>(sampler.next_deadline() - Clock::now());
      pollfd ready{sampler.fd(), POLLIN, 0};
      ::poll(&ready, 1, std::clamp(static_cast<int>(left.count()), 0, 30'000));
    }
    EXPECT_LT(Clock::now() - began, 20s) << (is_held ? "held" : "below the batch");
    EXPECT_TRUE(is_found);
  }
}

TEST_F(LiveEventTest, SeveralRingsComeInTheOrderOfTheirTimes) {
  // Use clocks, because their samples have times of their own. If others sample kFaults too, its
  // samples have the time of the first event that is served (R25), and are late.
  const Event clock = software(PERF_COUNT_SW_CPU_CLOCK);
  Sampler sampler =
      must(Sampler::open({.events = {Event{clock}.frequency(2000), Event{clock}.frequency(1000)},
                          .target = event::system()}));
  std::uint64_t last = 0;
  std::size_t events[2] = {0, 0};
  const auto each = [&](const Delivered& one) {
    EXPECT_TRUE(one.late || one.time >= last);
    last = std::max(last, one.time);
    ASSERT_LT(one.event, 2U) << to_string(one.record);
    ++events[one.event];
  };
  const auto end = Clock::now() + 30s;
  while ((events[0] <= 50 || events[1] <= 50) && Clock::now() < end) sampler.for_each(each);
  sampler.flush(each);
  EXPECT_GT(events[0], 50U);
  EXPECT_GT(events[1], 50U);
  // Emulated machines take an interrupt late now and then.
  EXPECT_LE(sampler.counts().late, sampler.counts().delivered / 10);
  EXPECT_EQ(sampler.counts().malformed, 0U);
}

// K21. With each clock of the events, no record is held for longer than its order requires.
TEST_F(LiveEventTest, RecordsComeWhateverTheirClock) {
  for (const clockid_t clock :
       {CLOCK_MONOTONIC, CLOCK_MONOTONIC_RAW, CLOCK_REALTIME, CLOCK_BOOTTIME, CLOCK_TAI, -1}) {
    const Event event = kFaults.adjust([clock](perf_event_attr& attr) {
      attr.use_clockid = clock >= 0;
      attr.clockid = std::max(clock, 0);
    });
    Sampler sampler =
        must(Sampler::open({.events = {event}, .target = this_thread().and_children()}));
    fault(3);
    const auto deadline = Clock::now() + 10s;
    std::size_t count = 0;
    while (count < 3 && Clock::now() < deadline) {
      sampler.wait(deadline);
      sampler.for_each([&](const Delivered&) { ++count; });
    }
    EXPECT_GE(count, 3U) << "clock " << clock;
    fault(3);
    const auto began = Clock::now();
    EXPECT_TRUE(sampler.next(began + 60s)) << "clock " << clock;
    EXPECT_LT(Clock::now(), began + 50s) << "clock " << clock;
  }
}

TEST_F(LiveEventTest, AChildIsSeenFromItsExecveToItsEnd) {
  Sampler sampler = must(Sampler::open(
      {.events = {changes({.execs = true, .forks = true})}, .target = child({"true"})}));
  std::string names;
  const auto each = [&](const Delivered& one) {
    const auto* const comm = std::get_if<record::Comm>(&one.record);
    if (comm != nullptr) names += std::string{comm->comm()} + (comm->is_exec() ? " exec " : " ");
    if (std::holds_alternative<record::Exit>(one.record)) names += "exit";
  };
  while (!sampler.child_status()) sampler.wait(Clock::now() + 10ms);
  EXPECT_EQ(*sampler.child_status(), 0);
  sampler.flush(each);
  EXPECT_EQ(names, "true exec exit");
}

TEST_F(LiveEventTest, ACommandThatCannotBeRunIsExplained) {
  const std::size_t before = open_files();
  const auto none = Sampler::open(
      {.events = {changes({.execs = true})}, .target = child({"/nonexistent/program"})});
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().step, EventError::Step::Child);
  EXPECT_NE(none.error().explain().find("there is no such program"), std::string::npos);
  EXPECT_EQ(open_files(), before);
  EXPECT_FALSE(os::wait_any(WNOHANG)) << "the child is left as a zombie";
}

TEST_F(LiveEventTest, ChildKilledBeforeStartIsError) {
  const std::string message = in_child([]() -> std::string {
    auto sampler = Sampler::open({.events = {kFaults}, .target = child({"true"})}, false);
    if (!sampler) return sampler.error().explain();
    static_cast<void>(sampler->signal_child(SIGKILL));
    const auto ended = os::ProcessRef::open(sampler->child());
    while (!ended->has_ended()) ::usleep(1000);
    const auto started = sampler->start();
    if (started) return "it started";
    if (started.error().step != EventError::Step::Child) return started.error().explain();
    if (sampler->child_status() != SIGKILL) return "its status is not known";
    return started.error().causes.front().says;
  });
  EXPECT_EQ(message, "its process ended before it was started");
}

}  // namespace
}  // namespace perfring::event
