// Events as values, what is opened for a request, and what check() says of it.

#include "perfring/event/request.h"

#include <gtest/gtest.h>
#include <linux/capability.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <ctime>
#include <functional>
#include <string>

#include "perfring/event/check.h"
#include "perfring/event/event_error.h"
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

perf_event_attr attr_of(const Event& event) {
  FakeSystem machine;
  return event.attr(machine).value();
}

bool equal(const perf_event_attr& a, const perf_event_attr& b) {
  return std::memcmp(&a, &b, sizeof a) == 0;
}

TEST(EventTest, FieldsThatAreNotSetKeepTheEventsDefaults) {
  const perf_event_attr own = attr_of(kSwitch);
  EXPECT_EQ(own.sample_period, 1U);
  EXPECT_EQ(own.exclude_kernel, 0U);
  EXPECT_TRUE(own.sample_type & PERF_SAMPLE_RAW);
  perf_event_attr with_callchain = attr_of(kSwitch.callchain());
  EXPECT_TRUE(with_callchain.sample_type & PERF_SAMPLE_CALLCHAIN);
  with_callchain.sample_type &= ~std::uint64_t{PERF_SAMPLE_CALLCHAIN};
  EXPECT_TRUE(equal(with_callchain, own));
}

TEST(EventTest, CallsInAnyOrderAreTheSameEvent) {
  using Call = std::function<Event(const Event&)>;
  const std::vector<Call> calls{
      [](const Event& event) { return event.callchain(); },
      [](const Event& event) { return event.period(7); },
      [](const Event& event) { return event.kernel(Kernel::Excluded); },
      [](const Event& event) { return event.sample(PERF_SAMPLE_ADDR); },
      [](const Event& event) {
        return event.adjust([](perf_event_attr& attr) { attr.exclude_idle = 1; });
      }};
  for (const Event& event : {kFaults, kSwitch, software(PERF_COUNT_SW_CPU_CLOCK),
                             changes({.switches = true}), breakpoint(4096, Access::Write)}) {
    std::vector<std::size_t> order{0, 1, 2, 3, 4};
    std::optional<perf_event_attr> first;
    do {
      Event said = event;
      for (const std::size_t i : order) said = calls[i](said);
      const perf_event_attr attr = attr_of(said);
      if (!first) first = attr;
      EXPECT_TRUE(equal(attr, *first)) << event.name();
    } while (std::ranges::next_permutation(order).found);
    EXPECT_EQ(first->sample_period, 7U);
    EXPECT_EQ(first->freq, 0U);
    EXPECT_EQ(first->exclude_callchain_kernel, 1U);
    EXPECT_EQ(first->exclude_idle, 1U);
  }
}

TEST(EventTest, EachKindOfEventHasItsDefaults) {
  constexpr std::uint64_t kAlways =
      PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU;
  const auto fields = [](const Event& event) { return attr_of(event).sample_type; };
  EXPECT_EQ(fields(kFaults), kAlways | PERF_SAMPLE_IP | PERF_SAMPLE_ADDR);
  EXPECT_EQ(fields(software(PERF_COUNT_SW_CPU_CLOCK)),
            kAlways | PERF_SAMPLE_IP | PERF_SAMPLE_PERIOD);
  EXPECT_EQ(fields(kSwitch), kAlways | PERF_SAMPLE_RAW);
  EXPECT_EQ(fields(kprobe("x")), kAlways | PERF_SAMPLE_RAW);
  EXPECT_EQ(fields(changes({.switches = true})), kAlways);
  for (const Event& event : {kFaults, kSwitch, changes({.names = true}), pmu("msr/tsc/")}) {
    const perf_event_attr attr = attr_of(event);
    EXPECT_EQ(attr.sample_id_all, 1U);
    EXPECT_EQ(attr.use_clockid, 1U);
    EXPECT_EQ(attr.clockid, CLOCK_MONOTONIC);
    EXPECT_EQ(attr.disabled, 1U);
  }
  EXPECT_EQ(attr_of(software(PERF_COUNT_SW_TASK_CLOCK)).sample_freq, 99U);
  EXPECT_EQ(attr_of(software(PERF_COUNT_SW_TASK_CLOCK).period(5)).freq, 0U);
  EXPECT_EQ(attr_of(kFaults.frequency(50).period(5)).sample_period, 5U);  // the later counts
  EXPECT_EQ(attr_of(kFaults.frequency(50).period(5)).freq, 0U);
  EXPECT_EQ(attr_of(kFaults.period(5).frequency(50)).freq, 1U);
  EXPECT_EQ(software(PERF_COUNT_SW_CONTEXT_SWITCHES).kernel(), Kernel::Included);  // R11
  EXPECT_EQ(kFaults.kernel(), Kernel::IfAllowed);
  const perf_event_attr groups = attr_of(changes({.cgroups = true}));
  EXPECT_TRUE(groups.comm) << "R10";
}

// event.h's table, by the names of a command line. The numbers are the uapi's.
TEST(EventTest, EachNameIsItsEventWithItsDefaults) {
  enum class Occurs { Each, Timed, Never };
  struct Row {
    const char* name;
    std::uint32_t type;
    std::uint64_t config;
    Occurs occurs;
    std::uint64_t fields;
    Kernel kernel;
  };
  constexpr std::uint64_t kIp = PERF_SAMPLE_IP;
  constexpr std::uint64_t kFault = PERF_SAMPLE_IP | PERF_SAMPLE_ADDR;
  constexpr std::uint64_t kClock = PERF_SAMPLE_IP | PERF_SAMPLE_PERIOD;
  constexpr auto kAllowed = Kernel::IfAllowed;
  constexpr auto kAlways = Kernel::Included;
  using enum Occurs;
  const std::vector<Row> rows{
      {"cpu-clock", PERF_TYPE_SOFTWARE, 0, Timed, kClock, kAllowed},
      {"task-clock", PERF_TYPE_SOFTWARE, 1, Timed, kClock, kAllowed},
      {"page-faults", PERF_TYPE_SOFTWARE, 2, Each, kFault, kAllowed},
      {"faults", PERF_TYPE_SOFTWARE, 2, Each, kFault, kAllowed},
      {"context-switches", PERF_TYPE_SOFTWARE, 3, Each, kIp, kAlways},
      {"cs", PERF_TYPE_SOFTWARE, 3, Each, kIp, kAlways},
      {"cpu-migrations", PERF_TYPE_SOFTWARE, 4, Each, kIp, kAlways},
      {"migrations", PERF_TYPE_SOFTWARE, 4, Each, kIp, kAlways},
      {"minor-faults", PERF_TYPE_SOFTWARE, 5, Each, kFault, kAllowed},
      {"major-faults", PERF_TYPE_SOFTWARE, 6, Each, kFault, kAllowed},
      {"alignment-faults", PERF_TYPE_SOFTWARE, 7, Each, kFault, kAlways},
      {"emulation-faults", PERF_TYPE_SOFTWARE, 8, Each, kFault, kAlways},
      {"dummy", PERF_TYPE_SOFTWARE, 9, Never, 0, kAllowed},
      {"bpf-output", PERF_TYPE_SOFTWARE, 10, Each, PERF_SAMPLE_RAW, kAlways},
      {"cgroup-switches", PERF_TYPE_SOFTWARE, 11, Each, kIp, kAlways},
      {"cpu-cycles", PERF_TYPE_HARDWARE, 0, Timed, kClock, kAllowed},
      {"cycles", PERF_TYPE_HARDWARE, 0, Timed, kClock, kAllowed},
      {"instructions", PERF_TYPE_HARDWARE, 1, Timed, kClock, kAllowed},
      {"cache-references", PERF_TYPE_HARDWARE, 2, Timed, kClock, kAllowed},
      {"cache-misses", PERF_TYPE_HARDWARE, 3, Timed, kClock, kAllowed},
      {"branch-instructions", PERF_TYPE_HARDWARE, 4, Timed, kClock, kAllowed},
      {"branches", PERF_TYPE_HARDWARE, 4, Timed, kClock, kAllowed},
      {"branch-misses", PERF_TYPE_HARDWARE, 5, Timed, kClock, kAllowed},
      {"bus-cycles", PERF_TYPE_HARDWARE, 6, Timed, kClock, kAllowed},
      {"stalled-cycles-frontend", PERF_TYPE_HARDWARE, 7, Timed, kClock, kAllowed},
      {"stalled-cycles-backend", PERF_TYPE_HARDWARE, 8, Timed, kClock, kAllowed},
      {"ref-cycles", PERF_TYPE_HARDWARE, 9, Timed, kClock, kAllowed},
      {"L1-dcache-loads", PERF_TYPE_HW_CACHE, 0, Timed, kClock, kAllowed},
      {"L1-icache-load-misses", PERF_TYPE_HW_CACHE, 0x10001, Timed, kClock, kAllowed},
      {"dTLB-stores", PERF_TYPE_HW_CACHE, 0x103, Timed, kClock, kAllowed},
      {"iTLB-prefetches", PERF_TYPE_HW_CACHE, 0x204, Timed, kClock, kAllowed},
      {"branch-loads", PERF_TYPE_HW_CACHE, 5, Timed, kClock, kAllowed},
      {"node-prefetch-misses", PERF_TYPE_HW_CACHE, 0x10206, Timed, kClock, kAllowed},
      {"r0", PERF_TYPE_RAW, 0, Timed, kClock, kAllowed},
      {"rffff1a8", PERF_TYPE_RAW, 0xffff1a8, Timed, kClock, kAllowed},
      {"sched:sched_switch", PERF_TYPE_TRACEPOINT, 314, Each, PERF_SAMPLE_RAW, kAlways},
      {"msr/aperf/", 10, 1, Never, 0, kAlways},
      {"kprobe:x", 8, 0, Each, PERF_SAMPLE_RAW, kAlways},
      {"kretprobe:x", 8, 1, Each, PERF_SAMPLE_RAW, kAlways},
      {"uprobe:/x:7", 9, 0, Each, PERF_SAMPLE_RAW, kAlways},
      {"uretprobe:/x:7", 9, 1, Each, PERF_SAMPLE_RAW, kAlways},
      {"mem:64", PERF_TYPE_BREAKPOINT, 0, Each, kFault, kAllowed},
      {"changes:switches", PERF_TYPE_SOFTWARE, 9, Never, 0, kAllowed},
  };
  for (const Row& row : rows) {
    const auto event = by_name(row.name);
    ASSERT_TRUE(event) << row.name;
    const perf_event_attr attr = attr_of(*event);
    EXPECT_EQ(attr.type, row.type) << row.name;
    EXPECT_EQ(attr.config, row.config) << row.name;
    EXPECT_EQ(attr.freq, row.occurs == Timed) << row.name;
    EXPECT_EQ(attr.sample_period, row.occurs == Timed ? 99 : row.occurs == Each) << row.name;
    constexpr std::uint64_t kEach =
        PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU;
    EXPECT_EQ(attr.sample_type, row.fields | kEach) << row.name;
    EXPECT_EQ(attr.read_format,
              PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING | PERF_FORMAT_ID);
    EXPECT_EQ(attr.size, sizeof attr);
    EXPECT_EQ(event->kernel(), row.kernel) << row.name;
  }
  for (const std::string& known : known_names()) {
    const std::string name = by_name(known)->name();
    EXPECT_TRUE(name.ends_with(" " + known)) << known << " is " << name;
  }
  EXPECT_GE(known_names().size(), 22U + 7 * 3 * 2);
}

TEST(EventTest, EachChangeSetsItsOwnBits) {
  const auto bits = [](const char* list) {
    const perf_event_attr attr = attr_of(by_name(std::string{"changes:"} + list).value());
    std::string text;
    const auto put = [&text](bool is, const char* name) { text += is ? name : ""; };
    put(attr.context_switch, "switch ");
    put(attr.comm, "comm ");
    put(attr.comm_exec, "exec ");
    put(attr.task, "task ");
    put(attr.mmap, "mmap ");
    put(attr.mmap2, "mmap2 ");
    put(attr.mmap_data, "data ");
    put(attr.cgroup, "cgroup ");
    put(attr.namespaces, "namespaces ");
    put(attr.ksymbol, "ksymbol ");
    put(attr.bpf_event, "bpf ");
    put(attr.text_poke, "text ");
    return text;
  };
  EXPECT_EQ(bits("switches"), "switch ");
  EXPECT_EQ(bits("names"), "comm ");
  EXPECT_EQ(bits("execs"), "comm exec ");
  EXPECT_EQ(bits("forks"), "task ");
  EXPECT_EQ(bits("maps"), "mmap mmap2 ");
  EXPECT_EQ(bits("data-maps"), "mmap mmap2 data ");
  EXPECT_EQ(bits("cgroups"), "comm cgroup ");
  EXPECT_EQ(bits("namespaces"), "comm namespaces ");
  EXPECT_EQ(bits("symbols"), "ksymbol ");
  EXPECT_EQ(bits("programs"), "bpf ");
  EXPECT_EQ(bits("text"), "text ");
  EXPECT_EQ(bits("switches,forks,text"), "switch task text ");
}

TEST(EventTest, EventsOfAnyTaskWatchAllTasksUnlessATargetIsNamed) {
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

TEST(EventTest, FallbacksAreTriedInTheOrderOfTheCalls) {
  const Event chain = kSwitch.or_else(kFaults).or_else(kprobe("x")).or_else(kprobe("y"));
  std::string names = chain.name();
  for (const Event* each = chain.fallback(); each != nullptr; each = each->fallback()) {
    names += ", " + each->name();
  }
  EXPECT_EQ(names,
            "the tracepoint sched:sched_switch, the software event page-faults, a kprobe on x, "
            "a kprobe on y");
}

TEST(EventTest, ProbesHaveTheTypeThatThisMachineGivesThem) {
  const Event named = kprobe("do_it");
  EXPECT_EQ(attr_of(kprobe("x")).type, 8U);
  EXPECT_EQ(attr_of(kprobe("x")).config, 0U);
  EXPECT_EQ(attr_of(kretprobe("x")).config, 1U);
  EXPECT_EQ(attr_of(uretprobe("/bin/true", 64)).config2, 64U);
  EXPECT_STREQ(reinterpret_cast<const char*>(static_cast<std::uintptr_t>(attr_of(named).config1)),
               "do_it");
  FakeSystem without;
  without.files.erase("/sys/bus/event_source/devices/kprobe/type");
  EXPECT_EQ(kprobe("x").attr(without).error().says, "this kernel has no kprobe PMU");
}

// Not the file's first byte.
TEST(EventTest, AUprobeOnAnEmptySymbolIsRefused) {
  FakeSystem machine;
  for (const Event& each : {uprobe("/bin/true", ""), uretprobe("/bin/true", "")}) {
    const auto attr = each.attr(machine);
    ASSERT_FALSE(attr);
    EXPECT_EQ(attr.error().says, "no symbol is given");
  }
  for (const char* const name : {"uprobe:/bin/true", "uprobe:/bin/true:", "uretprobe:/bin/true:"}) {
    EXPECT_FALSE(by_name(name)) << name;
  }
  EXPECT_TRUE(uprobe("/bin/true", std::uint64_t{0}).attr(machine));
}

TEST(EventTest, TermsOfAPmuAreThoseOfSysfs) {
  FakeSystem machine;
  const auto attr = [&](const char* text) { return pmu(text).attr(machine); };
  EXPECT_EQ(attr("msr/tsc/")->type, 10U);
  EXPECT_EQ(attr("msr/aperf/")->config, 1U);
  EXPECT_EQ(attr("msr/event=0x23/")->config, 0x23U);
  EXPECT_EQ(attr("msr/config1=7,config=9/")->config1, 7U);
  machine.device("cpu", 4);
  machine.files["/sys/bus/event_source/devices/cpu/format/event"] = "config:0-7,32-35\n";
  machine.files["/sys/bus/event_source/devices/cpu/format/ldlat"] = "config1:0-15\n";
  machine.files["/sys/bus/event_source/devices/cpu/format/any"] = "config:21\n";
  EXPECT_EQ(attr("cpu/event=0x3c5,any/")->config, 0x3002000c5U);
  EXPECT_EQ(attr("cpu/ldlat=30/")->config1, 30U);
  EXPECT_EQ(attr("cpu/event=0xfff/")->config, 0xf000000ffU) << "as much as its bits hold";
  EXPECT_EQ(attr("cpu/config2=7,ldlat=0xffff")->config2, 7U);
  EXPECT_EQ(attr("cpu/any=0,config1=5/")->config, 0U);
  EXPECT_EQ(attr("cpu//")->type, 4U) << "without terms";
  machine.files["/sys/bus/event_source/devices/cpu/format/wide"] = "config2:0-63\n";
  EXPECT_EQ(attr("cpu/wide=0xffffffffffffffff/")->config2, ~std::uint64_t{0});
  for (const char* const bits : {"config:64", "config:5-4", "config:", "config3:0", "config:x"}) {
    machine.files["/sys/bus/event_source/devices/cpu/format/odd"] = bits;
    EXPECT_EQ(attr("cpu/odd=0/").has_value(), bits == std::string_view{"config:"}) << bits;
    EXPECT_FALSE(attr("cpu/odd=1/")) << bits;
  }
  EXPECT_EQ(attr("cpu/config=0xf000000ff,event=1/")->config, 1U) << "its bits are put, not added";
  EXPECT_EQ(attr("cpu/config=0x100,event=1/")->config, 0x101U);
  for (const auto& [text, says] :
       std::vector<std::pair<const char*, const char*>>{{"cpu/event=0x1000/", "a value this large"},
                                                        {"cpu/evnt=1/", "no event or term 'evnt'"},
                                                        {"nope/x/", "no PMU 'nope'"},
                                                        {"cpu/event=x/", "'x' is not a number"},
                                                        {"/x/", "not an event of a PMU"},
                                                        {"../cpu/x/", "not an event of a PMU"},
                                                        {"cpu", "not an event of a PMU"},
                                                        {"cpu/../type/", "no event or term"}}) {
    const auto refused = attr(text);
    ASSERT_FALSE(refused) << text;
    EXPECT_NE(refused.error().says.find(says), std::string::npos) << refused.error().says;
  }
}

TEST(EventTest, TheMostSimilarNamesAreThoseThatNeedTheFewestChanges) {
  using internal::nearest;
  EXPECT_EQ(nearest("abc", {"xyz", "abcd", "ABC", "abx", "b"}), "ABC, abcd, abx");
  EXPECT_EQ(nearest("ab", {"b", "abcd"}), "b, abcd");
  EXPECT_EQ(nearest("", {"b"}), "b");
  EXPECT_EQ(nearest("x", {}), "");
  EXPECT_EQ(nearest("kitten", {"sitting", "mitt", "kit"}), "kit, mitt, sitting") << "each is 3";
  // Of long names the first 64 characters count.
  const std::string same(64, 'a');
  EXPECT_EQ(nearest(same + "x", {same + "x", same}), same + ", " + same + "x") << "are the same";
  const std::string other = std::string(63, 'a') + "b";
  EXPECT_EQ(nearest(other, {same, other}), other + ", " + same) << "the last of them counts";
}

TEST(EventTest, ByNameReadsTheNamesOfACommandLine) {
  const auto attr = [](const char* text) { return attr_of(by_name(text).value()); };
  for (const std::string& known : known_names()) EXPECT_TRUE(by_name(known)) << known;
  EXPECT_EQ(attr("faults").config, PERF_COUNT_SW_PAGE_FAULTS);
  EXPECT_EQ(attr("cycles").type, PERF_TYPE_HARDWARE);
  EXPECT_EQ(attr("LLC-store-misses").config, 0x10102U);
  EXPECT_EQ(attr("r1a8").config, 0x1a8U);
  EXPECT_EQ(attr("sched:sched_switch").config, 314U);
  EXPECT_EQ(attr("msr/tsc/").type, 10U);
  EXPECT_EQ(attr("kprobe:x+0x10").config2, 16U);
  EXPECT_EQ(attr("uprobe:/bin/true:0x1000").config2, 4096U);
  EXPECT_EQ(attr("mem:0x1000:w:8").bp_len, 8U);
  EXPECT_EQ(attr("mem:4096").bp_type, 3U);
  EXPECT_EQ(attr("mem:4096").bp_len, 4U);
  EXPECT_EQ(attr("mem:0X10:r").bp_type, 1U);
  EXPECT_EQ(attr("mem:16:rw:2").bp_type, 3U);
  EXPECT_EQ(attr("mem:16:x").bp_type, 4U);
  EXPECT_EQ(attr("mem:16:x:1").bp_len, sizeof(long));
  EXPECT_EQ(attr("mem:16").bp_addr, 16U);
  EXPECT_EQ(by_name("mem:0x10")->name(), "a breakpoint at 0x10");
  EXPECT_EQ(by_name("kprobe:x+0x10")->name(), "a kprobe on x+0x10");
  EXPECT_EQ(by_name("kprobe:x+y")->name(), "a kprobe on x+y") << "y is not a number";
  EXPECT_EQ(by_name("kretprobe:x+1")->name(), "a kretprobe on x+1") << "it has no offset";
  EXPECT_EQ(by_name("uprobe:/bin/true:main")->name(), "a uprobe on /bin/true:main");
  EXPECT_EQ(by_name("uretprobe:/a:b:main")->name(), "a uretprobe on /a:b:main");
  EXPECT_EQ(by_name("uprobe:/a:b:16")->name(), "a uprobe on /a:b+0x10");
  EXPECT_EQ(attr("changes:switches,execs").context_switch, 1U);
  for (const char* const odd : {"", "nope", "r", "changes:nope", "mem:x", "mem:1:q", "mem:1:w:z"}) {
    const auto refused = by_name(odd);
    ASSERT_FALSE(refused) << odd;
    EXPECT_FALSE(refused.error().advice.empty());
  }
  const auto says = [](const char* text) { return by_name(text).error().says; };
  EXPECT_EQ(says("page-faults:u"), "'u' after an event's name is not understood");
  EXPECT_EQ(says("changes:"), "'' is not a change");
  EXPECT_EQ(says("kprobe:"), "the probe has no function");
  EXPECT_EQ(says("kretprobe:"), "the probe has no function");
  for (const char* const odd : {"uprobe:", "uprobe:/bin/true", "uprobe:/bin/true:", "uretprobe::1"})
    EXPECT_NE(says(odd).find("does not name a file and a place in it"), std::string::npos) << odd;
  EXPECT_EQ(by_name("instructions")->name(), "the hardware event instructions");
  EXPECT_EQ(by_name("LLC-store-misses")->name(), "the cache event LLC-store-misses");
  EXPECT_NE(by_name("page-fault").error().advice.find("page-faults"), std::string::npos);
}

std::string opened(const Request& request) {
  FakeSystem machine;
  std::string text;
  const auto made = plan(request, machine, 50);
  if (!made) return made.error().says;
  for (const Planned& step : made->steps) {
    text += std::to_string(step.ask.pid) + "@" + std::to_string(step.ask.cpu) + ">" +
            std::to_string(step.ring) + (step.ask.attr.inherit ? "i " : " ");
  }
  return text;
}

TEST(PlanTest, EachTargetOpensAnEventForItsTasksAndCpus) {
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
  EXPECT_EQ(opened({.events = {}}), "no event is asked for");
}

TEST(PlanTest, EachRecordWakes) {
  FakeSystem machine;
  const auto made = plan({.events = {kFaults}, .target = this_thread()}, machine);
  EXPECT_EQ(made->steps[0].ask.attr.watermark, 1U);
  EXPECT_EQ(made->steps[0].ask.attr.wakeup_watermark, 1U);
}

// A child is stopped before its execve(), and counted from there on.
TEST(PlanTest, AChildsEventsBeginAtItsExec) {
  FakeSystem machine;
  for (const Target& target : {child({"x"}), this_thread(), event::system(), cgroup("/x")}) {
    const auto made = plan({.events = {kFaults}, .target = target}, machine, 50);
    ASSERT_TRUE(made);
    for (const Planned& step : made->steps) {
      EXPECT_EQ(step.ask.attr.disabled, 1U);
      EXPECT_EQ(step.ask.attr.enable_on_exec, target.kind == Target::Kind::Child);
      EXPECT_EQ(step.ask.flags & PERF_FLAG_PID_CGROUP,
                target.kind == Target::Kind::Cgroup ? PERF_FLAG_PID_CGROUP : 0);
    }
  }
}

// What an event sets itself is not overwritten by a default.
TEST(PlanTest, WakeupsThatAnEventSetsItselfStay) {
  FakeSystem machine;
  const auto planned = [&](std::vector<Event> events, std::uint32_t batch) {
    std::string all;
    const auto made =
        plan({.events = std::move(events), .target = this_thread(), .batch = batch}, machine);
    for (const Planned& each : made->steps) {
      all += std::to_string(each.ask.attr.watermark) + ":" +
             std::to_string(each.ask.attr.wakeup_watermark) + " ";
    }
    return all + (made->wakes_itself ? "itself" : "-");
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
  // R3: check() knows that of such an event.
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
  const auto wakeup = [&] { return plan(request, machine)->steps[0].ask.attr.wakeup_watermark; };
  EXPECT_EQ(wakeup(), 4 * page_size());
  request.batch = 100;
  EXPECT_EQ(wakeup(), 100U);
  request.batch = 0;
  request.target = thread(77);
  EXPECT_EQ(wakeup(), 1U);
}

// The fields of what is found, refusals first.
std::string fields(const Request& request, FakeSystem& machine) {
  std::string all;
  for (const Finding& each : check(request, machine)) all += each.field + " ";
  return all;
}

TEST(CheckRequestTest, AnAllowedCallerHasNoFindingOfAnyEventThatIsThere) {
  FakeSystem machine;
  machine.be_root();
  machine.files["/sys/kernel/tracing/events/block/block_rq_complete/id"] = "9\n";
  machine.kinds["/bin/true"] = {FileKind::Type::Regular, 8192, 0};
  for (const Event& each :
       {tracepoint("block:block_rq_complete"), kprobe("x"), uprobe("/bin/true", 4096), kFaults,
        software(PERF_COUNT_SW_CPU_CLOCK).callchain(),
        changes({.execs = true, .forks = true, .maps = true, .cgroups = true}),
        breakpoint(4096, Access::ReadWrite)}) {
    EXPECT_EQ(fields({.events = {each}, .target = event::system()}, machine), "") << each.name();
  }
}

TEST(CheckRequestTest, MissingUnreadableAndMisnamedTracepointsAreToldApart) {
  FakeSystem machine;
  const auto says = [&machine](const char* name) {
    return check(Request{.events = {tracepoint(name)}}, machine).front().says;
  };
  const auto advice = [&machine](const char* name) {
    return check(Request{.events = {tracepoint(name)}}, machine).front().advice;
  };
  for (const char* const file : {"enable", "header_page", "sched/enable", "sched/filter"}) {
    machine.files[std::string{"/sys/kernel/tracing/events/"} + file] = "0\n";
  }
  EXPECT_EQ(says("sched:sched_swich"), "there is no tracepoint 'sched:sched_swich'");
  EXPECT_EQ(advice("sched:sched_swich"),
            "the most similar of sched are sched_switch, sched_waking");
  EXPECT_EQ(says("shed:x"), "there is no group of tracepoints 'shed'");
  EXPECT_EQ(advice("shed:x"), "the most similar are sched, irq");
  EXPECT_EQ(by_name("PAGE-FAULTS").error().advice.substr(0, 28), "give one such as page-faults");
  machine.errors["/sys/kernel/tracing/events"] = EACCES;
  EXPECT_NE(says("sched:sched_switch").find("may not be read"), std::string::npos);
  machine.errors["/sys/kernel/tracing/events"] = ENOENT;
  EXPECT_NE(says("sched:sched_switch").find("is not mounted"), std::string::npos);
  for (const char* const odd : {"", ":", "a:", ":b", "sched:../../x", "a/b:c", "\xff\n"}) {
    EXPECT_NE(says(odd).find("not the name of a tracepoint"), std::string::npos) << odd;
  }
}

// R5, R27
TEST(CheckRequestTest, WatchingTheWaitingThreadIsNamedAndDoesNotWakeIt) {
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
    const bool told = std::ranges::any_of(found, [](const Finding& each) {
      return each.field == "pid" && each.says.starts_with("the thread that waits is watched");
    });
    const std::uint32_t wakeup = plan(request, machine)->steps[0].ask.attr.wakeup_watermark;
    EXPECT_EQ(wakeup, told ? page_size() : 1) << event.name();
    EXPECT_EQ(plan(request, machine)->wakes_itself, told);
    return told;
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

// R5
TEST(CheckRequestTest, SamplingOnlyTheWaitingThreadsTimeIsNamed) {
  FakeSystem machine;
  machine.be_root();
  const Event clock = software(PERF_COUNT_SW_TASK_CLOCK);
  const auto of = [&](const Event& event, const Target& target) {
    return fields({.events = {event}, .target = target}, machine);
  };
  machine.files["/proc/77/task/77/comm"] = "x";
  machine.files["/proc/" + std::to_string(::gettid()) + "/comm"] = "x";
  EXPECT_EQ(of(clock, this_thread()), "pid ");
  EXPECT_EQ(of(software(PERF_COUNT_SW_CPU_CLOCK), thread(::gettid())), "pid ");
  EXPECT_EQ(of(clock, this_process()), "") << "it has two threads";
  EXPECT_EQ(of(clock, thread(77)), "");
  EXPECT_EQ(of(clock, event::system()), "");
  EXPECT_EQ(of(kFaults, this_thread()), "");
}

TEST(CheckRequestTest, FieldsThatFtracesTracepointsRefuseAreNamed) {
  FakeSystem machine;
  machine.be_root();
  for (const char* const name : {"ftrace/function", "ftrace/print"}) {
    machine.files[std::string{"/sys/kernel/tracing/events/"} + name + "/id"] = "1\n";
  }
  const auto of = [&](const Event& event) { return fields({.events = {event}}, machine); };
  const Event function = tracepoint("ftrace:function");
  const Event alone =
      function.adjust([](perf_event_attr& attr) { attr.exclude_callchain_user = 1; });
  EXPECT_EQ(of(function), "exclude_callchain_user ");
  EXPECT_EQ(of(alone), "");
  EXPECT_EQ(of(alone.sample(PERF_SAMPLE_STACK_USER)), "sample_type ");
  EXPECT_EQ(of(function.period(0)), "sample_period ") << "it counts";
  EXPECT_EQ(of(tracepoint("ftrace:print")), "config ");
  Ask ask;
  ask.attr = function.attr(machine).value();
  machine.answer = [](const Ask& each) {
    return each.attr.type == PERF_TYPE_TRACEPOINT ? EINVAL : 0;
  };
  EXPECT_EQ(EventError::at_failure(EventError::Step::Open, EINVAL, ask, function.name(), machine)
                .causes.front()
                .field,
            "exclude_callchain_user");
}

// The registers of a system call's entry and exit are the user's (R16).
TEST(CheckRequestTest, ATracepointOfASystemCallNeedsNoKernel) {
  FakeSystem machine;
  machine.be_root();
  const auto of = [&](const char* group, const char* name) {
    machine.files[std::string{"/sys/kernel/tracing/events/"} + group + "/" + name + "/id"] = "9\n";
    const Event event = tracepoint(std::string{group} + ":" + name).kernel(Kernel::Excluded);
    return fields({.events = {event}, .target = process(77)}, machine);
  };
  machine.files["/proc/77/task/77/comm"] = "x";
  EXPECT_EQ(of("syscalls", "sys_enter_read"), "");
  EXPECT_EQ(of("syscalls", "sys_exit_read"), "");
  EXPECT_EQ(of("raw_syscalls", "sys_enter"), "exclude_kernel pid ");
}

TEST(CheckRequestTest, TooManyFilesOrPagesAndWrongPageCountsAreNamed) {
  FakeSystem machine;
  const Event faults = kFaults.kernel(Kernel::Excluded);
  // One ring and its control page, of 3 CPUs x 516 KiB.
  const std::size_t most = std::bit_floor(3 * 516 * 1024 / page_size() - 1);
  Request request{.events = {faults}, .target = this_thread(), .page_count = most};
  EXPECT_EQ(fields(request, machine), "");
  request.page_count = 3;
  EXPECT_EQ(fields(request, machine), "page_count ");
  request.page_count = 2 * most;
  EXPECT_EQ(fields(request, machine), "page_count ");
  machine.capabilities(1ULL << CAP_IPC_LOCK);
  EXPECT_EQ(fields(request, machine), "");
  machine.capabilities(0);
  request.page_count = 2;  // and the control page: a page for each CPU
  const auto kb = [&](std::size_t kib) {
    machine.files["/proc/sys/kernel/perf_event_mlock_kb"] = std::to_string(kib) + "\n";
    return fields(request, machine);
  };
  EXPECT_EQ(kb(page_size() / 1024), "") << "as much as may be locked";
  EXPECT_EQ(kb(page_size() / 1024 - 1), "page_count ");
  machine.capabilities(1ULL << CAP_IPC_LOCK);
  request.page_count = 1;
  request.events.assign(70, faults);
  EXPECT_EQ(fields(request, machine), "fd config ");
}

// R25
TEST(CheckRequestTest, ASoftwareEventThatIsAskedForTwiceIsNamed) {
  FakeSystem machine;
  machine.be_root();
  const auto fields_of = [&](const Event& first, const Event& second) {
    return fields({.events = {first, second}, .target = event::system()}, machine);
  };
  const Event clock = software(PERF_COUNT_SW_CPU_CLOCK);
  EXPECT_EQ(fields_of(kFaults, kFaults), "config ");
  EXPECT_EQ(fields_of(kFaults, Event{kFaults}.period(3)), "config ");
  EXPECT_EQ(fields_of(kFaults, software(PERF_COUNT_SW_PAGE_FAULTS_MIN)), "");
  EXPECT_EQ(fields_of(clock, clock), "") << "each has a timer of its own";
  EXPECT_EQ(fields_of(changes({.forks = true}), changes({.execs = true})), "");
}

// kernel/events/core.c: perf_event_set_output() at v6.18, and R12.
TEST(CheckRequestTest, EventsThatCannotShareARingAreNamed) {
  FakeSystem machine;
  machine.be_root();
  const auto said = [&](std::vector<Event> events) {
    std::string all;
    for (const Finding& each : check({.events = std::move(events), .target = system()}, machine)) {
      EXPECT_EQ(each.severity, Finding::Severity::Refused) << each.says;
      EXPECT_FALSE(each.advice.empty()) << each.says;
      all += each.field + ": " + each.says + "\n";
    }
    return all;
  };
  using Attr = perf_event_attr;
  const Event clock = software(PERF_COUNT_SW_CPU_CLOCK);
  const Event raw = clock.adjust([](Attr& a) { a.clockid = CLOCK_MONOTONIC_RAW; });
  const Event none = clock.adjust([](Attr& a) { a.use_clockid = 0, a.clockid = 0; });
  const Event nobodys =
      clock.adjust([](Attr& a) { a.sample_type &= ~std::uint64_t{PERF_SAMPLE_IDENTIFIER}; });
  const Event no_sample_id = clock.adjust([](Attr& a) { a.sample_id_all = 0; });
  const std::string clocks = "clockid: the events of one ring have different clocks\n";
  const std::string whose =
      "sample_type: several events write to one ring, and their records do not say whose they are "
      "(R12)\n";
  EXPECT_EQ(said({kFaults, clock}), "");
  EXPECT_EQ(said({kFaults, raw}), clocks);
  EXPECT_EQ(said({none, kFaults}), clocks);
  EXPECT_EQ(said({kFaults, clock, raw, none}), clocks) << "once";
  EXPECT_EQ(said({raw}), "") << "alone in its ring";
  EXPECT_EQ(said({kFaults, nobodys}), whose);
  EXPECT_EQ(said({no_sample_id, kFaults}), whose);
  EXPECT_EQ(said({nobodys}), "") << "alone in its ring";
  EXPECT_EQ(said({kFaults.adjust([](Attr& a) { a.write_backward = 1; })}),
            "write_backward: the ring is written backwards, and a Sampler reads forwards\n");
}

TEST(CheckRequestTest, TenThousandCpusAreOneSentence) {
  FakeSystem machine;
  machine.be_root();
  std::vector<std::uint32_t> cpus;
  for (std::uint32_t i = 0; i < 10'000; ++i) cpus.push_back(i);
  const Request request{.events = {kFaults}, .target = event::system().on(cpus)};
  const auto found = check(request, machine);
  ASSERT_GE(found.size(), 2U);
  EXPECT_EQ(found[0].says, "this machine has no CPU 4-9999");
  EXPECT_EQ(found[1].says, "offline: CPU 3");
  EXPECT_EQ(fds_needed(request, machine), 10'002U);
}

TEST(CheckRequestTest, OpenFilesAreThoseOfTheEventsTheWaiterAndAChildsPipes) {
  FakeSystem machine;
  machine.be_root();
  Request request{.events = {kFaults, kSwitch}, .target = this_thread()};
  EXPECT_EQ(fds_needed(request, machine), 4U);
  request.target = child({"x"}).on({0});
  EXPECT_EQ(fds_needed(request, machine), 7U);
  request = {.events = std::vector<Event>(59, software(PERF_COUNT_SW_CPU_CLOCK)),
             .target = child({"x"}).on({0})};
  EXPECT_EQ(fields(request, machine), "") << "64 are allowed";
  machine.files["/proc/self/fd/0"] = machine.files["/proc/self/fd/1"] = "";
  EXPECT_EQ(fields(request, machine), "fd ") << "one is open, besides that of the folder";
  EXPECT_EQ(check(request, machine).front().says,
            "59 events need 64 open files, and the limit is 64, with 1 in use");
}

TEST(CheckRequestTest, AFolderThatIsNotACgroupIsNamed) {
  FakeSystem machine;
  machine.be_root();
  machine.kinds["/sys/fs/cgroup/a"] = {FileKind::Type::Folder, 0, 0x63677270};
  machine.kinds["/tmp"] = {FileKind::Type::Folder, 0, 0x1021994};
  const auto of = [&](const char* path) {
    return fields({.events = {kFaults}, .target = cgroup(path)}, machine);
  };
  EXPECT_EQ(of("/sys/fs/cgroup/a"), "");
  EXPECT_EQ(of("/tmp"), "cgroup ");
  EXPECT_EQ(of("/none"), "cgroup ");
}

TEST(CheckRequestTest, ACgroupOfAHierarchyWithoutPerfEventIsNamed) {
  FakeSystem machine;
  machine.be_root();
  constexpr std::uint64_t kCgroup1 = 0x27e0eb;
  for (const char* const folder : {"cpu", "cpu/a", "perf_event", "perf_event/a", "link/a"}) {
    machine.kinds[std::string{"/sys/fs/cgroup/"} + folder] = {FileKind::Type::Folder, 0, kCgroup1};
  }
  machine.files["/proc/self/mounts"] =
      "sysfs / sysfs rw 0 0\n"
      "tmpfs /sys/fs/cgroup tmpfs rw,mode=755 0 0\n"
      "cgroup /sys/fs/cgroup/cpu cgroup rw,relatime,cpu 0 0\n"
      "cgroup /sys/fs/cgroup/perf_event cgroup rw,net_cls,perf_event 0 0\n";
  const auto says = [&](const char* folder) {
    const auto found = check(
        {.events = {kFaults}, .target = cgroup(std::string{"/sys/fs/cgroup/"} + folder)}, machine);
    return found.empty() ? "" : found.front().field + ": " + found.front().says;
  };
  constexpr const char* kNone = "cgroup: the folder is in a cgroup v1 hierarchy without perf_event";
  EXPECT_EQ(says("cpu"), kNone);
  EXPECT_EQ(says("cpu/a"), kNone);
  EXPECT_EQ(says("perf_event"), "");
  EXPECT_EQ(says("perf_event/a"), "");
  EXPECT_EQ(says("link/a"), "") << "it may be a symbolic link into another";
  machine.files.erase("/proc/self/mounts");
  EXPECT_EQ(says("cpu"), "");
}

TEST(CheckRequestTest, MorePagesThanARingCanHaveAreNamed) {
  FakeSystem machine;
  machine.be_root();
  const auto of = [&](std::size_t pages) {
    return fields({.events = {kFaults}, .target = this_thread(), .page_count = pages}, machine);
  };
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  EXPECT_EQ(of((std::size_t{1} << 30) / page), "");
  EXPECT_EQ(of((std::size_t{1} << 31) / page * 2), "page_count ");
#if defined(__x86_64__)
  EXPECT_EQ(of((std::size_t{1} << 31) / page), "page_count ") << "K35";
  EXPECT_EQ(of(std::size_t{1} << 40), "page_count ");
#endif
}

TEST(CheckRequestTest, AFilterOfAnEventWithoutFieldsIsNamed) {
  FakeSystem machine;
  machine.be_root();
  const auto of = [&](const Event& event) {
    return fields({.events = {event.filter("pid == 1")}, .target = this_thread()}, machine);
  };
  EXPECT_EQ(of(kFaults), "filter ");
  EXPECT_EQ(of(changes({.execs = true})), "filter ");
  EXPECT_EQ(of(kSwitch).find("filter"), std::string::npos);
}

#if defined(__x86_64__) || defined(__i386__)
TEST(CheckRequestTest, MoreBreakpointsThanAProcessorHasAreNamed) {
  FakeSystem machine;
  machine.be_root();
  const auto of = [&](std::size_t count, const Target& target) {
    const Request request{.events = std::vector<Event>(count, breakpoint(4096, Access::Write)),
                          .target = target};
    std::string said;
    for (const Finding& each : check(request, machine)) said += each.field + ": " + each.says;
    return said;
  };
  constexpr const char* kFive = "type: 5 breakpoints are asked for, and x86 has four for each CPU";
  EXPECT_EQ(of(4, this_thread()), "");
  EXPECT_EQ(of(5, this_thread()), kFive);
  EXPECT_EQ(of(4, event::system()), "") << "four on each CPU";
  EXPECT_EQ(of(5, event::system()), kFive);
}
#endif

TEST(CheckMemberTest, AFieldThatAMemberMayNotHaveIsNamed) {
  Ask leader;
  leader.attr = kFaults.attr().value();
  const auto field = [&](auto change) {
    Ask member = leader;
    change(member);
    const auto found = check_member(member, leader);
    return found.empty() ? std::string{} : found.front().field;
  };
  EXPECT_EQ(field([](Ask&) {}), "");
  EXPECT_EQ(field([](Ask& ask) { ask.cpu = 1; }), "cpu");
  EXPECT_EQ(field([](Ask& ask) { ask.pid = -1; }), "pid");
  EXPECT_EQ(field([](Ask& ask) { ask.attr.clockid = CLOCK_REALTIME; }), "clockid");
  EXPECT_EQ(field([](Ask& ask) { ask.attr.use_clockid = 0; }), "clockid");
  EXPECT_EQ(field([](Ask& ask) { ask.attr.pinned = 1; }), "pinned");
  EXPECT_EQ(field([](Ask& ask) { ask.attr.exclusive = 1; }), "exclusive");
  EXPECT_EQ(field([](Ask& ask) { ask.attr.inherit = 1; }), "inherit");
  leader.pid = -1, leader.cpu = 0;
  EXPECT_EQ(field([](Ask& ask) { ask.attr.inherit = 1; }), "") << "a CPU's events ignore it";
}

TEST(CheckGroupTest, EachMemberIsComparedWithTheLeader) {
  FakeSystem machine;
  machine.be_root();
  const auto of = [&](auto change, const Event& leader = kFaults) {
    std::string all;
    const Request request{.events = {leader, kSwitch.adjust(change), kFaults.adjust(change)},
                          .target = event::system()};
    for (const Finding& each : check_group(request, machine)) all += each.field + " ";
    return all;
  };
  using Attr = perf_event_attr;
  EXPECT_EQ(of([](Attr&) {}), "") << "nothing is sampled, nothing mapped, nothing waited for";
  EXPECT_EQ(of([](Attr& a) { a.pinned = 1; }), "pinned pinned ");
  EXPECT_EQ(of([](Attr& a) { a.exclusive = 1; }), "exclusive exclusive ");
  EXPECT_EQ(of([](Attr& a) { a.use_clockid = 0; }), "clockid clockid ");
  EXPECT_EQ(of([](Attr&) {}, kFaults.adjust([](Attr& a) { a.pinned = a.exclusive = 1; })), "");
  EXPECT_EQ(of([](Attr& a) { a.type = 99; }), "type type ") << "and each by itself";
  const auto own = [&](std::vector<Event> events) {
    std::string all;
    for (const Finding& each : check_group(
             {.events = std::move(events), .target = this_thread(), .page_count = 3}, machine)) {
      all += each.field + " ";
    }
    return all;
  };
  const Event inherited = kFaults.adjust([](Attr& a) { a.inherit = 1; });
  EXPECT_EQ(own({inherited, inherited}), "") << "R9 is about mmap()";
  EXPECT_EQ(own({inherited, kFaults}), "inherit ");
  EXPECT_EQ(own({}), "events ");
  EXPECT_EQ(own(std::vector<Event>(64, kFaults)), "");
  EXPECT_EQ(own(std::vector<Event>(65, kFaults)), "fd ");
}

// As the kernel prints it (L: sched:sched_process_exec, and sched:sched_switch's comm).
constexpr const char* kFormat =
    "name: sched_process_exec\nID: 310\nformat:\n"
    "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
    "\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n"
    "\tfield:__data_loc char[] filename;\toffset:8;\tsize:4;\tsigned:0;\n"
    "\tfield:pid_t pid;\toffset:12;\tsize:4;\tsigned:1;\n"
    "\tfield:char comm[16];\toffset:16;\tsize:16;\tsigned:0;\n"
    "\tfield:__rel_loc char[] name;\toffset:32;\tsize:4;\tsigned:0;\n"
    "\nprint fmt: \"filename=%s\", __get_str(filename)\n";

class TracepointFormatTest : public ::testing::Test {
 protected:
  TracepointFormat format = TracepointFormat::parse(kFormat).value();
  std::vector<std::byte> raw = std::vector<std::byte>(64);

  template <class T>
  void put(std::size_t at, const T& value) {
    std::memcpy(raw.data() + at, &value, sizeof value);
  }
};

TEST_F(TracepointFormatTest, FieldsAreReadByNameAndType) {
  put(4, std::int32_t{-7});
  put(16, std::array{'s', 'h', '\0', 'x'});
  put(8, std::uint32_t{6 << 16 | 40});
  put(40, std::array{'/', 'b', 'i', 'n', '/', 'x'});
  put(32, std::uint32_t{3 << 16 | 12});  // from 36 on
  put(48, std::array{'a', 'b', '\0'});
  EXPECT_EQ(format.field<std::int32_t>("common_pid")->of(raw), -7);
  EXPECT_EQ(format.field<std::uint16_t>("common_type")->of(raw), 0);
  EXPECT_EQ(format.text("comm")->of(raw), "sh");
  EXPECT_EQ(format.text("filename")->of(raw), "/bin/x");
  EXPECT_EQ(format.text("name")->of(raw), "ab");
}

TEST_F(TracepointFormatTest, AnotherTypeOrNameIsRefusedWhenItIsBound) {
  ASSERT_FALSE(format.field<std::uint32_t>("pid"));
  EXPECT_NE(format.field<std::uint32_t>("pid").error().says.find("a signed integer of 4 bytes"),
            std::string::npos);
  EXPECT_FALSE(format.field<std::int64_t>("pid"));
  EXPECT_FALSE(format.field<std::int16_t>("common_type")) << "it is unsigned";
  ASSERT_FALSE(format.field<char>("comm"));
  EXPECT_NE(format.field<char>("comm").error().says.find("an array"), std::string::npos);
  EXPECT_FALSE(format.field<std::uint32_t>("filename"));
  EXPECT_NE(format.text("pid").error().says.find("not text"), std::string::npos);
  EXPECT_NE(format.text("com").error().advice.find("comm"), std::string::npos);
  EXPECT_FALSE(TracepointFormat::parse(""));
  EXPECT_EQ(format.fields().size(), 6U);
  EXPECT_FALSE(TracepointFormat::parse("\tfield:int x;\toffset:y;\tsize:4;\tsigned:1;\n"));
}

TEST_F(TracepointFormatTest, NothingOutsideTheRawDataIsRead) {
  const auto pid = format.field<std::int32_t>("pid").value();
  const auto filename = format.text("filename").value();
  const auto comm = format.text("comm").value();
  for (std::size_t size = 0; size <= raw.size(); ++size) {
    const std::vector<std::byte> cut{raw.begin(), raw.begin() + static_cast<std::ptrdiff_t>(size)};
    EXPECT_EQ(pid.of(cut).has_value(), size >= 16) << size;
    EXPECT_EQ(comm.of(cut).has_value(), size >= 32) << size;
  }
  for (const std::uint32_t location : {0xffffffffU, 0x0001ffffU, 0xffff0000U, 0x00010040U}) {
    put(8, location);
    EXPECT_FALSE(filename.of(raw)) << location;
  }
  put(8, std::uint32_t{1 << 16 | 63});
  EXPECT_TRUE(filename.of(raw));
}

// What open() leaves out by itself is not a refusal (E4); where nothing is left, check() says so.
TEST(CheckRequestTest, APlainUsersRequestIsCheckedAsItWouldBeOpened) {
  FakeSystem machine;
  machine.capabilities(0);
  const auto fields = [&machine](const Event& event) {
    std::string text;
    for (const Finding& each : check({.events = {event}, .target = this_thread()}, machine)) {
      if (each.severity == Finding::Severity::Refused) text += "refused ";
      text += each.field + " ";
    }
    return text;
  };
  EXPECT_EQ(fields(kFaults), "");
  EXPECT_EQ(fields(kFaults.kernel(Kernel::Included)), "refused exclude_kernel ");
  const Event migrations = software(PERF_COUNT_SW_CPU_MIGRATIONS);
  EXPECT_EQ(fields(migrations.kernel(Kernel::IfAllowed)), "exclude_kernel ");
}

}  // namespace
}  // namespace perfring::event
