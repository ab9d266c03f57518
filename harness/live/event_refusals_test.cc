// Events that are not opened, and why, on the machine's own kernel: as root, as a user and with
// CAP_PERFMON.

#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "harness/live/testing.h"
#include "perfring/event/sampler.h"

namespace perfring::event {
namespace {

using namespace std::chrono_literals;
using live::in_child;
using live::open_files;

const Event kFaults = software(PERF_COUNT_SW_PAGE_FAULTS);

class LiveEventRefusalTest : public live::RootTest {};

// In a child that is nobody, with these capabilities.
std::string as_nobody(std::vector<int> capabilities, const std::function<std::string()>& body) {
  return in_child([&] {
    live::become(live::kNobody, capabilities);
    ::prctl(PR_SET_DUMPABLE, 1);  // or one's own /proc is root's
    return body();
  });
}

std::string fields_of(const Request& request) {
  const auto sampler = Sampler::open(request, false);
  if (sampler) return sampler->notes().empty() ? "opens" : "opens without the kernel";
  std::string fields;
  for (const Cause& each : sampler.error().causes)
    fields += (fields.empty() ? "" : ", ") + each.field;
  return fields;
}

TEST_F(LiveEventRefusalTest, TooFewDescriptorsLeaveNothingOpen) {
  const std::string said = in_child([]() -> std::string {
    const std::size_t before = open_files();
    rlimit few{static_cast<rlim_t>(before) + 3, static_cast<rlim_t>(before) + 3};
    ::setrlimit(RLIMIT_NOFILE, &few);
    const auto none =
        Sampler::open({.events = {kFaults, kFaults, kFaults, kFaults}, .target = event::system()});
    if (none) return "it opened";
    if (none.error().io_error != std::errc::too_many_files_open) return none.error().explain();
    if (open_files() != before) return "left open";
    return none.error().causes.front().field;
  });
  EXPECT_EQ(said, "fd");
}

// Requests that the types allow and no kernel opens: an error that names it, or a request that is
// as good.
TEST_F(LiveEventRefusalTest, WrongArgumentsAreNamed) {
  const auto self = this_thread();
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  struct Row {
    const char* what;
    Request request;
    const char* said;
  };
  const std::vector<Row> rows{
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
  for (const Row& row : rows) EXPECT_EQ(fields_of(row.request), row.said) << row.what;
  const auto none = Sampler::open({.events = {}, .target = self});
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().step, EventError::Step::Check);
}

// The rows of the table of refusals that this machine can have, as root, as a user, with
// CAP_PERFMON: what is named as the cause.
TEST_F(LiveEventRefusalTest, EachCallersRefusalsAreNamed) {
  if (real_system().read("/proc/sys/kernel/perf_event_paranoid") != "2\n") {
    GTEST_SKIP() << "kernel.perf_event_paranoid is not 2";
  }
  const auto self = this_thread();
  const auto all = event::system();
  const Event clock = software(PERF_COUNT_SW_CPU_CLOCK);
  const auto wrong = [](auto change) { return kFaults.adjust(change); };
  using Attr = perf_event_attr;
  struct Row {
    const char* what;
    Request request;
    const char* root;
    const char* user;
    const char* perfmon;
  };
  const std::vector<Row> rows{
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
      {"no such CPU", {{kFaults}, all.on({60000})}, "cpu", "pid", "cpu"},
      {"a software event", {{wrong([](Attr& a) { a.config = 12; })}, self}, "type", "type", "type"},
      {"a clock",
       {{wrong([](Attr& a) { a.clockid = 2; })}, self},
       "clockid, use_clockid",
       "clockid, use_clockid",
       "clockid, use_clockid"},
  };
  constexpr int kPerfmon = 38;  // CAP_PERFMON
  for (const Row& row : rows) {
    const auto ask = [&row] { return fields_of(row.request); };
    EXPECT_EQ(in_child(ask), row.root) << row.what;
    EXPECT_EQ(as_nobody({}, ask), row.user) << row.what;
    EXPECT_EQ(as_nobody({kPerfmon}, ask), row.perfmon) << row.what;
  }
}

}  // namespace
}  // namespace perfring::event
