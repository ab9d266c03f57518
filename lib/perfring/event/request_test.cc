// The events opened for a request, and requests that the types allow but nobody intends.

#include <gtest/gtest.h>
#include <linux/perf_event.h>
#include <sched.h>

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "perfring/event/diagnosis/check.h"
#include "perfring/event/event.h"
#include "perfring/event/request.h"
#include "perfring/event/system.h"
#include "perfring/event/tracepoint_fields.h"
#include "perfring/testing/events.h"
#include "perfring/testing/fake_kernel.h"
#include "perfring/testing/fake_system.h"

namespace perfring::event {
namespace {

using perfring::testing::page_size;
using testing::FakeSystem;
using testing::kFaults;
using testing::kSwitch;

TEST(EventTest, SystemWideEventsTargetSystemByDefault) {
  for (const char* const name : {"sched:sched_switch", "kprobe:x", "kretprobe:x", "uprobe:/x:7",
                                 "uretprobe:/x:7", "msr/tsc/", "bpf-output"}) {
    const Event event = by_name(name).value();
    EXPECT_EQ(target_of({.events = {event}}).kind, Target::Kind::System) << name;
    EXPECT_EQ(target_of({.events = {kFaults, event}}).kind, Target::Kind::System) << name;
    EXPECT_EQ(target_of({.events = {event}, .target = this_thread()}).kind, Target::Kind::Thread);
  }
  for (const char* const name : {"page-faults", "cpu-clock", "dummy", "cycles", "LLC-loads", "r1",
                                 "mem:64", "changes:switches"}) {
    EXPECT_EQ(target_of({.events = {by_name(name).value()}}).kind, Target::Kind::Process) << name;
  }
}

std::string opened(const Request& request) {
  FakeSystem machine;
  std::string text;
  const auto to_open = plan(request, machine, 50);
  if (!to_open) return to_open.error().says;
  for (const Planned& step : to_open->steps) {
    text += std::to_string(step.args.pid) + "@" + std::to_string(step.args.cpu) + ">" +
            std::to_string(step.ring) + (step.args.attr.inherit ? "i " : " ");
  }
  return text;
}

TEST(PlanTest, TargetDeterminesOpenedEvents) {
  EXPECT_EQ(opened({.events = {kFaults}, .target = this_thread()}), "0@-1>0 ");
  EXPECT_EQ(opened({.events = {kFaults}}), "100@-1>0 101@-1>1 ");
  EXPECT_EQ(opened({.events = {kFaults}, .target = this_thread().and_children()}),
            "0@0>0i 0@1>1i 0@2>2i ");
  EXPECT_EQ(opened({.events = {kFaults}, .target = this_process().and_children().on({1})}),
            "100@1>0i 101@1>0i ");
  EXPECT_EQ(opened({.events = {kFaults}, .target = child({"x"}).on({0})}), "50@0>0i ");
  EXPECT_EQ(opened({.events = {kSwitch}}), "-1@0>0 -1@1>1 -1@2>2 ");
  EXPECT_EQ(opened({.events = {kSwitch, kFaults}, .target = event::system().on({2, 0, 2})}),
            "-1@0>0 -1@2>1 -1@0>0 -1@2>1 ");
  EXPECT_EQ(opened({.events = {kFaults}, .target = cgroup("/x").on({0})}), "50@0>0 ");
  EXPECT_EQ(opened({.events = {kFaults}, .target = process(4711)}), "there is no process 4711");
  EXPECT_EQ(opened({.events = {}}), "no event is requested");
}

TEST(PlanTest, AFileThatCannotBeReadIsNamedWithItsError) {
  FakeSystem machine;
  const auto refusal_of = [&](const Target& target) {
    const auto to_open = plan({.events = {kFaults}, .target = target}, machine);
    return to_open ? "a plan" : to_open.error().says;
  };
  machine.errors["/proc/self/task"] = EMFILE;
  EXPECT_EQ(refusal_of(this_process()), "/proc/self/task cannot be read: Too many open files");
  machine.errors["/sys/devices/system/cpu/online"] = EIO;
  EXPECT_EQ(refusal_of(event::system()),
            "the online CPUs cannot be read: /sys/devices/system/cpu/online: Input/output error");
}

TEST(PlanTest, EachRecordWakes) {
  FakeSystem machine;
  const auto to_open = plan({.events = {kFaults}, .target = this_thread()}, machine);
  EXPECT_EQ(to_open->steps[0].args.attr.watermark, 1U);
  EXPECT_EQ(to_open->steps[0].args.attr.wakeup_watermark, 1U);
}

// A child waits before its execve(), and is counted from that call on.
TEST(PlanTest, AChildsEventsBeginAtItsExec) {
  FakeSystem machine;
  for (const Target& target : {child({"x"}), this_thread(), event::system(), cgroup("/x")}) {
    const auto to_open = plan({.events = {kFaults}, .target = target}, machine, 50);
    ASSERT_TRUE(to_open);
    for (const Planned& step : to_open->steps) {
      EXPECT_EQ(step.args.attr.disabled, 1U);
      EXPECT_EQ(step.args.attr.enable_on_exec, target.kind == Target::Kind::Child);
      EXPECT_EQ(step.args.flags & PERF_FLAG_PID_CGROUP,
                target.kind == Target::Kind::Cgroup ? PERF_FLAG_PID_CGROUP : 0);
    }
  }
}

// A default does not overwrite a field that an event sets itself.
TEST(PlanTest, WakeupsThatAnEventSetsItselfStay) {
  FakeSystem machine;
  const auto planned = [&](std::vector<Event> events, std::uint32_t batch) {
    std::string all;
    const auto to_open =
        plan({.events = std::move(events), .target = this_thread(), .batch = batch}, machine);
    for (const Planned& each : to_open->steps) {
      all += std::to_string(each.args.attr.watermark) + ":" +
             std::to_string(each.args.attr.wakeup_watermark) + " ";
    }
    return all + (to_open->wakes_itself ? "itself" : "-");
  };
  using Attr = perf_event_attr;
  const Event switches = changes({.switches = true});
  const Event by_five = kFaults.adjust([](Attr& a) { a.wakeup_events = 5; });
  const auto by_bytes = [](Attr& a) { a.watermark = 1, a.wakeup_watermark = 4096; };
  const std::string half = std::to_string(16 * page_size() / 2);
  EXPECT_EQ(planned({kFaults, by_five}, 0), "1:1 0:5 -");
  EXPECT_EQ(planned({by_five, kFaults}, 64), "0:5 1:64 -");
  EXPECT_EQ(planned({kFaults.adjust(by_bytes)}, 0), "1:4096 -");
  EXPECT_EQ(planned({switches}, 0), "1:" + half + " itself");
  EXPECT_EQ(planned({switches.adjust(by_bytes)}, 0), "1:4096 -") << "R20";
  EXPECT_EQ(planned({switches, kFaults.adjust(by_bytes)}, 0), "1:" + half + " 1:4096 itself");
  // R3: check() reports this for such an event.
  const Event never = switches.adjust([](Attr& a) { a.wakeup_events = 1; });
  std::string fields;
  std::string advice;
  for (const Finding& each : check({.events = {never}, .target = this_thread()}, machine)) {
    fields += each.field + " ";
    if (each.field == "pid") advice = each.advice;
  }
  EXPECT_NE(fields.find("wakeup_events"), std::string::npos) << fields;
  EXPECT_TRUE(advice.starts_with("leave watermark and wakeup_events")) << advice;
}

TEST(PlanTest, SwitchesOfTheWaitingThreadWakeByHalfTheRing) {
  FakeSystem machine;
  Request request{.events = {changes({.switches = true})}, .target = this_thread()};
  request.page_count = 8;
  const auto wakeup = [&] { return plan(request, machine)->steps[0].args.attr.wakeup_watermark; };
  EXPECT_EQ(wakeup(), 4 * page_size());
  request.batch = 100;
  EXPECT_EQ(wakeup(), 100U);
  request.batch = 0;
  request.target = thread(77);
  EXPECT_EQ(wakeup(), 1U);
}

// R5, R27
TEST(CheckRequestTest, WarnsWhenWaitingThreadIsWatched) {
  FakeSystem machine;
  machine.be_root();
  machine.files["/proc/self/cgroup"] = "4:memory:/other\n0::/user/me\n";
  for (const char* const name : {"raw_syscalls/sys_exit", "syscalls/sys_enter_epoll_pwait2",
                                 "syscalls/sys_enter_read", "block/block_rq_complete"}) {
    machine.files[std::string{"/sys/kernel/tracing/events/"} + name + "/id"] = "9\n";
  }
  for (const pid_t own : {::getpid(), 77}) {
    machine.files["/proc/" + std::to_string(own) + "/task/" + std::to_string(own) + "/comm"] = "x";
  }
  for (const char* const folder : {"user", "user/me", "user/me2", "user/me/below", "other"}) {
    machine.kinds[std::string{"/sys/fs/cgroup/"} + folder] = {FileKind::Type::Folder, 0,
                                                              0x63677270};
  }
  const auto is_own = [&](const Event& event, const Target& target) {
    const Request request{.events = {kFaults, event}, .target = target, .page_count = 2};
    const auto found = check(request, machine);
    const bool warned = std::ranges::any_of(found, [](const Finding& each) {
      return each.field == "pid" && each.says.starts_with("the waiting thread is watched");
    });
    const std::uint32_t wakeup = plan(request, machine)->steps[0].args.attr.wakeup_watermark;
    EXPECT_EQ(wakeup, warned ? page_size() : 1) << event.name();
    EXPECT_EQ(plan(request, machine)->wakes_itself, warned);
    return warned;
  };
  const Event switches = changes({.switches = true});
  for (const Target& own :
       {this_thread(), this_process(), thread(::gettid()), process(::getpid()), event::system(),
        cgroup("/sys/fs/cgroup/user/"), cgroup("/sys/fs/cgroup/user/me")}) {
    EXPECT_TRUE(is_own(switches, own)) << static_cast<int>(own.kind) << own.path;
    EXPECT_FALSE(is_own(changes({.execs = true}), own));
  }
  for (const Target& other :
       {thread(77), process(77), child({"x"}), cgroup("/sys/fs/cgroup/user/me2"),
        cgroup("/sys/fs/cgroup/user/me/below"), cgroup("/sys/fs/cgroup/other")}) {
    EXPECT_FALSE(is_own(switches, other)) << static_cast<int>(other.kind) << other.path;
  }
  for (const Event& each :
       {software(PERF_COUNT_SW_CONTEXT_SWITCHES), software(PERF_COUNT_SW_CGROUP_SWITCHES), kSwitch,
        tracepoint("raw_syscalls:sys_exit"), tracepoint("syscalls:sys_enter_epoll_pwait2")}) {
    EXPECT_TRUE(is_own(each, event::system())) << each.name();
  }
  for (const Event& each :
       {software(PERF_COUNT_SW_CPU_MIGRATIONS), tracepoint("syscalls:sys_enter_read"),
        tracepoint("block:block_rq_complete"), changes({.forks = true})}) {
    EXPECT_FALSE(is_own(each, event::system())) << each.name();
  }
}

// Returns plan()'s refusal of a target; empty if it makes a plan.
std::string refused(const Target& target) {
  FakeSystem machine;
  const auto to_open = plan({.events = {kFaults}, .target = target}, machine);
  return to_open ? "" : to_open.error().field + ": " + to_open.error().says;
}

TEST(TargetMisuseTest, ATaskBelow0IsNotEveryTask) {
  for (const pid_t task : {-1, -5, INT_MIN}) {
    const std::string expected = "pid: there is no task " + std::to_string(task);
    EXPECT_EQ(refused(thread(task)), expected);
    EXPECT_EQ(refused(thread(task).on({0})), expected);
    EXPECT_EQ(refused(process(task).and_children()), expected);
  }
}

TEST(TargetMisuseTest, ACpuBeyondAnIntIsNotAnyCpu) {
  for (const std::uint32_t cpu : {0x80000000U, 0xffffffffU}) {
    const std::string expected = "cpu: there is no CPU " + std::to_string(cpu);
    EXPECT_EQ(refused(this_thread().on({0, cpu})), expected);
    EXPECT_EQ(refused(event::system().on({cpu})), expected);
    EXPECT_EQ(refused(child({"x"}).on({cpu})), expected);
  }
  EXPECT_EQ(refused(this_thread().on({0x7fffffffU})), "") << "it is the kernel's to refuse";
}

TEST(TargetMisuseTest, AChildOrAFolderBelow0IsRefused) {
  FakeSystem machine;
  const auto refusal_of = [&](const Target& target, pid_t pid) {
    const auto to_open = plan({.events = {kFaults}, .target = target}, machine, pid);
    return to_open ? "" : to_open.error().field + ": " + to_open.error().says;
  };
  EXPECT_EQ(refusal_of(child({"x"}), -1), "pid: there is no task -1")
      << "the kernel's -1 is every task";
  EXPECT_EQ(refusal_of(cgroup("/x"), INT_MIN), "pid: -2147483648 is not a descriptor");
  EXPECT_EQ(refusal_of(child({"x"}), INT_MAX), "") << "it is the kernel's to refuse";
  EXPECT_EQ(refusal_of(this_thread(), -1), "") << "a thread has no use for it";
}

TEST(TargetMisuseTest, ATargetOfAnUnknownKindIsRefused) {
  constexpr const char* kUnknown = "target: the kind of target is unknown";
  EXPECT_EQ(refused({.kind = Target::Kind{5}}), kUnknown);
  EXPECT_EQ(refused({.kind = Target::Kind{255}, .cpus = {0}}), kUnknown);
}

TEST(EventMisuseTest, AMovedFromEventHasNoName) {
  FakeSystem machine;
  for (Event event : {tracepoint("sched:sched_switch"), pmu("msr/tsc/"), kFaults,
                      kprobe("x").adjust([](perf_event_attr& attr) { attr.pinned = 1; })}) {
    const Event taken = std::move(event);
    ASSERT_TRUE(taken.attr(machine)) << taken.name();
    const auto attr = event.attr(machine);  // NOLINT: moved from, on purpose
    const bool has_name = taken.kind() == EventKind::Tracepoint || taken.kind() == EventKind::Pmu;
    EXPECT_EQ(attr.has_value(), !has_name) << taken.name();
    EXPECT_EQ(event.name(), "");
    event = taken;
    EXPECT_EQ(event.attr(machine).has_value(), true);
  }
}

TEST(EventMisuseTest, AnEmptyFunctionChangesNothing) {
  FakeSystem machine;
  EXPECT_TRUE(kFaults.adjust(nullptr).attr(machine));
  EXPECT_TRUE(kFaults.adjust(std::function<void(perf_event_attr&)>{}).attr(machine));
}

TEST(EventMisuseTest, ATextEndsAtItsFirstNul) {
  FakeSystem machine;
  const std::string with_nul{"do_it\0else", 10};
  const Event probe = kprobe(with_nul);
  const perf_event_attr attr = probe.attr(machine).value();
  EXPECT_STREQ(reinterpret_cast<const char*>(static_cast<std::uintptr_t>(attr.config1)), "do_it");
  const auto none = tracepoint(std::string{"sched:sched_switch\0", 19}).attr(machine);
  ASSERT_FALSE(none);
  EXPECT_TRUE(none.error().says.ends_with("is not the name of a tracepoint")) << none.error().says;
  EXPECT_FALSE(by_name(std::string_view{"page-faults\0", 12}));
}

TEST(EventMisuseTest, NumbersOfAnySizeAreTakenAsTheyAre) {
  constexpr std::uint64_t kAll = ~std::uint64_t{0};
  FakeSystem machine;
  machine.be_root();
  EXPECT_EQ(kFaults.period(kAll).attr(machine)->sample_period, kAll);
  EXPECT_EQ(kFaults.frequency(kAll).attr(machine)->sample_freq, kAll);
  EXPECT_EQ(kFaults.sample(kAll).attr(machine)->sample_type, kAll);
  EXPECT_EQ(breakpoint(kAll, Access{200}, kAll).attr(machine)->bp_type, 200U);
  EXPECT_EQ(kFaults.kernel(Kernel{9}).attr(machine)->exclude_kernel, 0U);
  const perf_event_attr own{};
  EXPECT_TRUE((Event{EventKind{77}, "of no kind", own, Kernel::Included}.attr(machine)));
  // The kernel refuses all of them, and check() names them.
  for (const Event& event :
       {kFaults.period(kAll), kFaults.frequency(kAll), kFaults.sample(kAll),
        breakpoint(kAll, Access{200}, kAll), breakpoint(64, Access::Write, 0)}) {
    const auto found = check(Request{.events = {event}, .target = this_thread()}, machine);
    ASSERT_FALSE(found.empty());
    EXPECT_EQ(found.front().severity, Finding::Severity::Refused);
  }
}

TEST(EventMisuseTest, AMegabyteOfANameIsRefusedInTime) {
  FakeSystem machine;
  const std::string longest(1 << 20, 'a');
  EXPECT_FALSE(by_name(longest));
  EXPECT_FALSE(tracepoint("sched:" + longest).attr(machine));
  EXPECT_FALSE(pmu("msr/" + longest + "/").attr(machine));
  EXPECT_FALSE(TracepointFormat::parse(longest));
}

}  // namespace
}  // namespace perfring::event
