// Events as values, and their names.

#include <gtest/gtest.h>
#include <linux/perf_event.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <ctime>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "perfring/event/event.h"
#include "perfring/event/request.h"
#include "perfring/event/system.h"
#include "perfring/testing/events.h"
#include "perfring/testing/fake_system.h"

namespace perfring::event {
namespace {

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
  using Call = Event (*)(const Event&);
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
      Event changed = event;
      for (const std::size_t i : order) changed = calls[i](changed);
      const perf_event_attr attr = attr_of(changed);
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
  EXPECT_EQ(attr_of(kFaults.frequency(50).period(5)).sample_period, 5U);  // the later call wins
  EXPECT_EQ(attr_of(kFaults.frequency(50).period(5)).freq, 0U);
  EXPECT_EQ(attr_of(kFaults.period(5).frequency(50)).freq, 1U);
  EXPECT_EQ(software(PERF_COUNT_SW_CONTEXT_SWITCHES).kernel(), Kernel::Included);  // R11
  EXPECT_EQ(kFaults.kernel(), Kernel::IfAllowed);
  const perf_event_attr groups = attr_of(changes({.cgroups = true}));
  EXPECT_TRUE(groups.comm) << "R10";
}

// The table of event.h, by command-line names. The numbers are those of the uapi.
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

// An empty symbol does not mean the file's first byte.
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
  for (const char* const bits : {"config:64", "config:5-4", "config:", "config5:0", "config:x"}) {
    machine.files["/sys/bus/event_source/devices/cpu/format/odd"] = bits;
    EXPECT_EQ(attr("cpu/odd=0/").has_value(), bits == std::string_view{"config:"}) << bits;
    EXPECT_FALSE(attr("cpu/odd=1/")) << bits;
  }
  EXPECT_EQ(attr("cpu/config=0xf000000ff,event=1/")->config, 1U) << "its bits are put, not added";
  EXPECT_EQ(attr("cpu/config=0x100,event=1/")->config, 0x101U);
  for (const auto& [text, message] :
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
    EXPECT_NE(refused.error().says.find(message), std::string::npos) << refused.error().says;
  }
}

// Formats of kernels since 6.3 name words that this build's perf_event_attr may not have.
TEST(EventTest, PmuTermsMayUseExtendedConfigWords) {
  FakeSystem machine;
  machine.device("arm_spe_0", 12);
  const std::string format = "/sys/bus/event_source/devices/arm_spe_0/format/";
  machine.files[format + "inv_data_src_filter"] = "config3:0-63\n";
  machine.files[format + "data_src_filter"] = "config4:8-15\n";
  machine.files[format + "ts_enable"] = "config:0\n";
  const auto open_args = [&](const char* text) { return pmu(text).open_args(machine).value(); };
  const OpenArgs both =
      open_args("arm_spe_0/ts_enable,inv_data_src_filter=0x123456789a,data_src_filter=7/");
  EXPECT_EQ(both.attr.type, 12U);
  EXPECT_EQ(both.attr.config, 1U);
  EXPECT_EQ(both.config3, 0x12'3456'789aU);
  EXPECT_EQ(both.config4, 0x700U);
  EXPECT_EQ(open_args("arm_spe_0/config3=5,config4=6/").config3, 5U);
  EXPECT_EQ(open_args("arm_spe_0/config3=5,config4=6/").config4, 6U);
  EXPECT_EQ(open_args("arm_spe_0/config3=5/").config4, 0U);
  // plan() asks the machine for them.
  const auto planned =
      plan({.events = {pmu("arm_spe_0/config3=5/")}, .target = this_thread()}, machine);
  ASSERT_TRUE(planned);
  EXPECT_EQ(planned->steps.front().args.config3, 5U);
}

// Reads the bytes at the offsets in the kernel's struct.
TEST(EventTest, PlacesExtendedConfigAtKernelOffsets) {
  const auto word = [](const internal::LongAttr& attr, std::size_t at) {
    std::uint64_t value = 0;
    std::memcpy(&value, &attr.bytes[at], sizeof value);
    return value;
  };
  const auto size = [](const internal::LongAttr& attr) {
    std::uint32_t value = 0;
    std::memcpy(&value, &attr.bytes[4], sizeof value);
    return value;
  };
  OpenArgs args;
  std::memset(&args.attr, 0x11, sizeof args.attr);
  for (const std::uint32_t own : {std::uint32_t{0}, std::uint32_t{64}, std::uint32_t{128}}) {
    args.attr.size = own;
    args.config3 = args.config4 = 0;
    EXPECT_EQ(size(internal::long_attr_of(args)), own) << "only where it is needed";
    args.config3 = 0x33;
    EXPECT_EQ(size(internal::long_attr_of(args)), 136U);
    EXPECT_EQ(word(internal::long_attr_of(args), 128), 0x33U);
    args.config4 = 0x44;
    EXPECT_EQ(size(internal::long_attr_of(args)), 144U);
    EXPECT_EQ(word(internal::long_attr_of(args), 128), 0x33U);
    EXPECT_EQ(word(internal::long_attr_of(args), 136), 0x44U);
    EXPECT_EQ(word(internal::long_attr_of(args), 120), 0x1111'1111'1111'1111U);
  }
  args.attr.size = 200;
  EXPECT_EQ(size(internal::long_attr_of(args)), 200U);
}

TEST(EventTest, SimilarNamesAreRankedByEditDistance) {
  using internal::nearest;
  EXPECT_EQ(nearest("abc", {"xyz", "abcd", "ABC", "abx", "b"}), "ABC, abcd, abx");
  EXPECT_EQ(nearest("ab", {"b", "abcd"}), "b, abcd");
  EXPECT_EQ(nearest("", {"b"}), "b");
  EXPECT_EQ(nearest("x", {}), "");
  EXPECT_EQ(nearest("kitten", {"sitting", "mitt", "kit"}), "kit, mitt, sitting") << "each is 3";
  // Only the first 64 characters of long names count.
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
  const auto refusal_of = [](const char* text) { return by_name(text).error().says; };
  EXPECT_EQ(refusal_of("page-faults:u"), "'u' after an event's name is not understood");
  EXPECT_EQ(refusal_of("changes:"), "'' is not a change");
  EXPECT_EQ(refusal_of("kprobe:"), "the probe has no function");
  EXPECT_EQ(refusal_of("kretprobe:"), "the probe has no function");
  for (const char* const odd : {"uprobe:", "uprobe:/bin/true", "uprobe:/bin/true:", "uretprobe::1"})
    EXPECT_NE(refusal_of(odd).find("does not name a file and a place in it"), std::string::npos)
        << odd;
  EXPECT_EQ(by_name("instructions")->name(), "the hardware event instructions");
  EXPECT_EQ(by_name("LLC-store-misses")->name(), "the cache event LLC-store-misses");
  EXPECT_NE(by_name("page-fault").error().advice.find("page-faults"), std::string::npos);
}

}  // namespace
}  // namespace perfring::event
