// Events that the machine's own kernel refuses, and the causes that perfring names: as root, as a
// user and with CAP_PERFMON. For the refusals of each sort of event see event_sources_test.cc. For
// events that the kernel accepts and never answers see event_refusals_test.cc.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/perf_event.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <fstream>
#include <functional>
#include <sstream>
#include <string>
#include <vector>

#include "harness/live/event_testing.h"
#include "harness/live/live_testing.h"
#include "harness/program/child_process.h"
#include "perfring/event/diagnosis/check.h"
#include "perfring/event/diagnosis/event_error.h"
#include "perfring/event/event.h"
#include "perfring/event/request.h"
#include "perfring/event/system.h"
#include "perfring/os/fd.h"
#include "perfring/sampler/group.h"
#include "perfring/sampler/sampler.h"

namespace perfring::event {
namespace {

using namespace std::chrono_literals;
using live::in_child;
using testing::as_nobody;
using testing::Attr;
using testing::expect;
using testing::fields;
using testing::has_pmu;
using testing::has_rows;
using testing::is_paranoid_2;
using testing::kFaults;
using testing::kNoRows;
using testing::kPerfmon;
using testing::LiveEventCallersTest;
using testing::opened_with;
using testing::refusal_of;
using testing::sampled;
using testing::with;

std::string fields_of(const Request& request) {
  const auto sampler = Sampler::open(request, false);
  if (sampler) return sampler->notes().empty() ? "opens" : "opens without the kernel";
  return fields(sampler.error().causes);
}

// Opens a group of the leader and this member.
std::function<std::string()> counted(const std::function<void(Attr&)>& change, Target target,
                                     const Event& leader = kFaults) {
  return [=]() -> std::string {
    const auto group =
        Group::open({.events = {leader, kFaults.adjust(change)}, .target = target}, false);
    if (group) return "opens";
    return refusal_of(group.error()) + ": " + group.error().causes.at(0).says;
  };
}

// Requests that the types allow and no kernel opens: perfring returns an error that names the
// cause, or opens an equivalent request.
TEST_F(LiveEventCallersTest, WrongArgumentsAreNamed) {
  const auto self = this_thread();
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  struct Wrong {
    const char* what;
    Request request;
    const char* refusal;
  };
  const std::vector<Wrong> rows{
      {"no page", {.events = {kFaults}, .target = self, .page_count = 0}, "page_count"},
      {"three pages", {.events = {kFaults}, .target = self, .page_count = 3}, "page_count"},
      {"all pages",
       {.events = {kFaults}, .target = self, .page_count = ~std::size_t{0}},
       "page_count"},
      {"too many pages",
       {.events = {kFaults}, .target = self, .page_count = ~std::size_t{0} / 2 + 1},
       "page_count"},
      {"pages whose bytes wrap to a ring of one page",
       {.events = {kFaults}, .target = self, .page_count = ~std::size_t{0} / page + 2},
       "page_count"},
      {"a thread of no task", {.events = {kFaults}, .target = thread(-5)}, "pid"},
      {"a process of no task", {.events = {kFaults}, .target = process(-5)}, "pid"},
      {"a process that is not there", {.events = {kFaults}, .target = process(0x7fffffff)}, "pid"},
      {"no command", {.events = {kFaults}, .target = child({})}, "command"},
      {"no cgroup", {.events = {kFaults}, .target = cgroup("")}, "cgroup"},
      {"a CPU twice", {.events = {kFaults}, .target = event::system().on({0, 0})}, "opens"},
      {"a wait below 0", {.events = {kFaults}, .target = self, .longest_wait = -5ns}, "opens"},
      {"a batch beyond the ring", {.events = {kFaults}, .target = self, .batch = ~0U}, "opens"},
  };
  for (const Wrong& row : rows) EXPECT_EQ(fields_of(row.request), row.refusal) << row.what;
  const auto none = Sampler::open({.events = {}, .target = self});
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().step, EventError::Step::Check);
}

TEST_F(LiveEventCallersTest, WrongEventFieldsAreNamed) {
  if (!has_rows()) GTEST_SKIP() << kNoRows;
  constexpr std::uint64_t kOne = 1;
  expect({
      {"aux_output", with([](Attr& a) { a.aux_output = 1; }), "EOPNOTSUPP aux_output"},
      {"branches", with([](Attr& a) {
         a.sample_type |= PERF_SAMPLE_BRANCH_STACK;
         a.branch_sample_type = PERF_SAMPLE_BRANCH_ANY | PERF_SAMPLE_BRANCH_USER;
       }),
       "EOPNOTSUPP PERF_SAMPLE_BRANCH_STACK"},
      {"branches of privileges alone", with([](Attr& a) {
         a.sample_type |= PERF_SAMPLE_BRANCH_STACK;
         a.branch_sample_type = PERF_SAMPLE_BRANCH_USER;
       }),
       "EINVAL PERF_SAMPLE_BRANCH_STACK"},
      {"no registers", with([](Attr& a) { a.sample_type |= PERF_SAMPLE_REGS_USER; }),
       "EINVAL sample_regs_user"},
      {"a stack of 12", with([](Attr& a) {
         a.sample_type |= PERF_SAMPLE_STACK_USER;
         a.sample_stack_user = 12;
       }),
       "EINVAL sample_stack_user"},
      {"a stack of 64 KiB", with([](Attr& a) {
         a.sample_type |= PERF_SAMPLE_STACK_USER;
         a.sample_stack_user = 65536;
       }),
       "EINVAL sample_stack_user"},
      {"a deep callchain", with([](Attr& a) {
         a.sample_type |= PERF_SAMPLE_CALLCHAIN;
         a.sample_max_stack = 60000;
       }),
       "EOVERFLOW sample_max_stack"},
      {"both weights",
       with([](Attr& a) { a.sample_type |= PERF_SAMPLE_WEIGHT | PERF_SAMPLE_WEIGHT_STRUCT; }),
       "EINVAL PERF_SAMPLE_WEIGHT, PERF_SAMPLE_WEIGHT_STRUCT"},
      {"sigtrap", with([](Attr& a) { a.sigtrap = 1; }), "EINVAL sigtrap"},
      {"signals of all tasks",
       sampled(
           Request{.events = {kFaults.adjust([](Attr& a) { a.sigtrap = a.remove_on_exec = 1; })},
                   .target = event::system().on({0})}),
       "EINVAL sigtrap"},
      {"a newer field and a newer format", with([](Attr& a) {
         a.sample_type |= kOne << 62;
         a.read_format |= kOne << 61;
       }),
       "EINVAL PERF_SAMPLE_(bit 62), PERF_FORMAT_(bit 61)"},
      {"a newer software event", with([](Attr& a) { a.config = 1000; }), "ENOENT config"},
      {"namespaces of all tasks",
       sampled(
           Request{.events = {changes({.namespaces = true})}, .target = event::system().on({0})}),
       "opens", "EACCES pid, namespaces", "opens"},
      {"both on exec", with([](Attr& a) { a.enable_on_exec = a.remove_on_exec = 1; }),
       "EINVAL enable_on_exec, remove_on_exec"},
      {"inherit_thread", with([](Attr& a) { a.inherit_thread = 1; }), "EINVAL inherit_thread"},
      {"inherit, READ without TID", with([](Attr& a) {
         a.inherit = 1;
         a.sample_type = PERF_SAMPLE_READ;
       }),
       "EINVAL inherit"},
      {"a size of 8", opened_with([](OpenArgs& args) { args.attr.size = 8; }), "E2BIG size"},
      {"written backwards", with([](Attr& a) { a.write_backward = 1; }), "- write_backward"},
      {"two clocks in one ring",
       sampled(Request{.events = {kFaults, kFaults.adjust([](Attr& a) { a.use_clockid = 0; })},
                       .target = this_thread()}),
       "EINVAL clockid"},
      {"a size of 63", opened_with([](OpenArgs& args) { args.attr.size = 63; }), "E2BIG size"},
      {"a size of 4097", opened_with([](OpenArgs& args) { args.attr.size = 4097; }), "E2BIG size"},
#if defined(__x86_64__)
      {"DS", with([](Attr& a) {
         a.sample_type |= PERF_SAMPLE_REGS_USER;
         a.sample_regs_user = kOne << 12;
       }),
       "EINVAL sample_regs_user"},
      {"XMM", with([](Attr& a) {
         a.sample_type |= PERF_SAMPLE_REGS_INTR;
         a.sample_regs_intr = kOne << 32;
       }),
       "EOPNOTSUPP sample_regs_intr"},
#endif
  });
}

TEST_F(LiveEventCallersTest, WrongTargetOrLeaderIsNamed) {
  if (!has_rows()) GTEST_SKIP() << kNoRows;
  const ForkedChild roots{::pause};
  const os::Fd folder{::open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
  const int no_event = folder.get();
  expect({
      {"all tasks on no CPU", opened_with([](OpenArgs& args) { args.pid = -1; }), "EINVAL cpu"},
      {"a task below -1", opened_with([](OpenArgs& args) { args.pid = -2; }), "ESRCH pid"},
      {"another user's task", sampled(Request{.events = {kFaults}, .target = thread(roots.id())}),
       "opens", "EACCES pid", "opens"},
      {"no cgroup", opened_with([no_event](OpenArgs& args) {
         args.pid = no_event, args.cpu = 0, args.flags = PERF_FLAG_PID_CGROUP;
       }),
       "EBADF cgroup"},
      {"a cgroup on no CPU", opened_with([no_event](OpenArgs& args) {
         args.pid = no_event, args.flags = PERF_FLAG_PID_CGROUP;
       }),
       "EINVAL cpu"},
      {"a group of no event", opened_with([no_event](OpenArgs& args) { args.group_fd = no_event; }),
       "EBADF group_fd"},
      {"a group below -1", opened_with([](OpenArgs& args) { args.group_fd = -2; }),
       "EBADF group_fd"},
  });
}

TEST_F(LiveEventCallersTest, CgroupWithoutPerfEventIsRefused) {
  if (!has_rows()) GTEST_SKIP() << kNoRows;
  std::ifstream mounts{"/proc/self/mounts"};
  std::string folder;
  for (std::string line; folder.empty() && std::getline(mounts, line);) {
    std::istringstream words{line};
    std::string device, at, type, options;
    words >> device >> at >> type >> options;
    if (type == "cgroup" && options.find("perf_event") == std::string::npos) folder = at;
  }
  if (folder.empty()) GTEST_SKIP() << "no cgroup v1 hierarchy without perf_event is mounted";
  const Request request{.events = {kFaults}, .target = cgroup(folder)};
  expect({{"cgroup v1", sampled(request), "ENOENT cgroup"}});
  EXPECT_EQ(check(request).front().says, Sampler::open(request).error().causes.front().says);
}

TEST_F(LiveEventCallersTest, AMemberUnlikeItsLeaderIsRefusedWithTheReason) {
  if (!has_rows()) GTEST_SKIP() << kNoRows;
  const auto self = this_thread();
  const auto all = event::system().on({0});
  const auto inherit = [](Attr& a) { a.inherit = 1; };
  constexpr const char* kClock = "EINVAL clockid: the group's leader has another clock";
  constexpr const char* kInherit =
      "EINVAL inherit: the group's leader is inherited and the member is not, or the reverse";
  constexpr const char* kTasks =
      "EACCES pid: this user may not watch all tasks: kernel.perf_event_paranoid is 2";
  expect({
      {"a member that is like its leader", counted([](Attr&) {}, self), "opens"},
      {"pinned", counted([](Attr& a) { a.pinned = 1; }, self),
       "EINVAL pinned: only a group's leader may be pinned"},
      {"exclusive", counted([](Attr& a) { a.exclusive = 1; }, self),
       "EINVAL exclusive: only a group's leader may be exclusive"},
      {"a clock", counted([](Attr& a) { a.clockid = CLOCK_REALTIME; }, self), kClock},
      {"no clock", counted([](Attr& a) { a.use_clockid = 0; }, self), kClock},
      {"no such clock", counted([](Attr& a) { a.clockid = 2; }, self),
       "EINVAL clockid: perf has no clock 2"},
      {"sigtrap", counted([](Attr& a) { a.sigtrap = 1; }, self),
       "EINVAL sigtrap: sigtrap needs remove_on_exec"},
      {"inherited", counted(inherit, self), kInherit},
      {"of an inherited leader", counted([](Attr&) {}, self, kFaults.adjust(inherit)), kInherit},
      {"inherited, of a CPU", counted(inherit, all), "opens", kTasks, "opens"},
  });
}

// The rows of the table of refusals that this machine can have: the cause that is named as root, as
// a user, and with CAP_PERFMON.
TEST_F(LiveEventCallersTest, EachCallersRefusalsAreNamed) {
  if (!is_paranoid_2()) GTEST_SKIP() << "kernel.perf_event_paranoid is not 2";
  const auto self = this_thread();
  const auto all = event::system();
  const Event clock = software(PERF_COUNT_SW_CPU_CLOCK);
  const auto wrong = [](auto change) { return kFaults.adjust(change); };
  struct RefusalRow {
    const char* what;
    Request request;
    const char* root;
    const char* user;
    const char* perfmon;
  };
  const std::vector<RefusalRow> rows{
      {"faults of oneself", {{kFaults}, self}, "opens", "opens without the kernel", "opens"},
      {"faults of all", {{kFaults}, all}, "opens", "pid", "opens"},
      {"switches",
       {{changes({.switches = true})}, self},
       "opens",
       "opens without the kernel",
       "opens"},
      {"context-switches",
       {{software(PERF_COUNT_SW_CONTEXT_SWITCHES)}, self},
       "opens",
       "exclude_kernel",
       "opens"},
      {"namespaces", {{changes({.namespaces = true})}, self}, "opens", "namespaces", "opens"},
      {"faults of all, and the kernel",
       {{kFaults.kernel(Kernel::Included)}, all},
       "opens",
       "pid, exclude_kernel",
       "opens"},
      {"namespaces, and the kernel",
       {{changes({.namespaces = true}).kernel(Kernel::Included)}, self},
       "opens",
       "exclude_kernel, namespaces",
       "opens"},
      {"physical addresses",
       {{kFaults.sample(PERF_SAMPLE_PHYS_ADDR)}, self},
       "opens",
       "PERF_SAMPLE_PHYS_ADDR",
       "opens"},
      {"frequency",
       {{clock.frequency(10'000'000)}, self},
       "sample_freq",
       "sample_freq",
       "sample_freq"},
      {"period",
       {{wrong([](Attr& a) { a.sample_period = ~0ULL; })}, self},
       "sample_period",
       "sample_period",
       "sample_period"},
      {"a new bit",
       {{kFaults.sample(1ULL << 45)}, self},
       "PERF_SAMPLE_(bit 45)",
       "PERF_SAMPLE_(bit 45)",
       "PERF_SAMPLE_(bit 45)"},
      {"no such CPU", {{kFaults}, all.on({60000})}, "cpu", "cpu", "cpu"},
      {"a software event",
       {{wrong([](Attr& a) { a.config = 12; })}, self},
       "config",
       "config",
       "config"},
      {"msr of oneself", {{pmu("msr/tsc/")}, self}, "opens", "exclude_kernel", "opens"},
      {"msr of all", {{pmu("msr/tsc/")}, all}, "opens", "exclude_kernel", "opens"},
      {"msr of oneself with a period",
       {{pmu("msr/tsc/").period(1000)}, self},
       "sample_period",
       "exclude_kernel",
       "sample_period"},
      {"msr of all with a frequency",
       {{pmu("msr/tsc/").frequency(99)}, all},
       "sample_period",
       "exclude_kernel",
       "sample_period"},
      {"msr without the kernel",
       {{pmu("msr/tsc/").kernel(Kernel::Excluded)}, self},
       "exclude_kernel",
       "exclude_kernel",
       "exclude_kernel"},
      {"a clock",
       {{wrong([](Attr& a) { a.clockid = 2; })}, self},
       "clockid, use_clockid",
       "clockid, use_clockid",
       "clockid, use_clockid"},
  };
  for (const RefusalRow& row : rows) {
    if (row.request.events[0].kind() == EventKind::Pmu && !has_pmu("msr")) continue;
    const auto args = [&row] { return fields_of(row.request); };
    EXPECT_EQ(in_child(args), row.root) << row.what;
    EXPECT_EQ(as_nobody({}, args), row.user) << row.what;
    EXPECT_EQ(as_nobody({kPerfmon}, args), row.perfmon) << row.what;
  }
}

}  // namespace
}  // namespace perfring::event
