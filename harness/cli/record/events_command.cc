// `perfring events`.

#include <fmt/format.h>
#include <fnmatch.h>
#include <linux/perf_event.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <expected>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "harness/cli/record/record.h"
#include "harness/program/console.h"
#include "harness/program/json.h"
#include "harness/program/verdict.h"
#include "harness/record/vectors.h"
#include "perfring/event/diagnosis/check.h"
#include "perfring/event/diagnosis/event_error.h"
#include "perfring/event/event.h"
#include "perfring/event/request.h"
#include "perfring/event/system.h"

namespace perfring::cli {
namespace {

using event::Event;

struct Listed {
  std::string name;
  std::string why_not;  // empty: the event can be opened
};

std::vector<std::string> in(const std::expected<std::vector<std::string>, std::error_code>& names) {
  return names.value_or(std::vector<std::string>{});
}

std::vector<std::string> tracepoints() {
  std::vector<std::string> names;
  const auto folder = event::internal::tracing_events(event::real_system());
  if (!folder) return names;
  const auto groups = event::real_system().list(*folder);
  for (const std::string& group : in(groups)) {
    const auto each = event::real_system().list(*folder + "/" + group);
    for (const std::string& name : in(each)) {
      if (event::real_system().look_at(*folder + "/" + group + "/" + name + "/id")) {
        names.push_back(group + ":" + name);
      }
    }
  }
  return names;
}

std::vector<std::string> pmu_events() {
  std::vector<std::string> names;
  const std::string devices = event::internal::kDevices;
  const auto pmus = event::real_system().list(devices);
  for (const std::string& pmu : in(pmus)) {
    const auto events = event::real_system().list(devices + pmu + "/events");
    for (const std::string& name : in(events)) {
      // NAME.unit and NAME.scale are in the same folder.
      if (name.find('.') == std::string::npos) names.push_back(pmu + "/" + name + "/");
    }
  }
  return names;
}

// Returns all events to list. The row of a probe uses a function that exists everywhere, because
// the user's place is unknown; why_not() does not open it.
std::vector<std::pair<std::string, Event>> all() {
  std::vector<std::pair<std::string, Event>> events;
  std::vector<std::string> names = event::known_names();
  for (const auto& more : {pmu_events(), tracepoints()}) {
    names.insert(names.end(), more.begin(), more.end());
  }
  for (const char* const change : {"switches", "names", "execs", "forks", "maps", "data-maps",
                                   "cgroups", "namespaces", "symbols", "programs", "text"}) {
    names.push_back(std::string{"changes:"} + change);
  }
  for (const std::string& name : names) {
    if (auto each = event::by_name(name)) events.emplace_back(name, *std::move(each));
  }
  static const int somewhere = 0;
  events.emplace_back("mem:ADDRESS", event::breakpoint(reinterpret_cast<std::uintptr_t>(&somewhere),
                                                       event::Access::ReadWrite));
  events.emplace_back("kprobe:FUNCTION", event::kprobe("schedule"));
  events.emplace_back("kretprobe:FUNCTION", event::kretprobe("schedule"));
  const std::string self = event::real_system().look_at("/bin/sh") ? "/bin/sh" : "/proc/self/exe";
  events.emplace_back("uprobe:PATH:SYMBOL", event::uprobe(self, std::uint64_t{4096}));
  events.emplace_back("uretprobe:PATH:SYMBOL", event::uretprobe(self, std::uint64_t{4096}));
  return events;
}

std::string why_not(const Event& each) {
  event::Request request{.events = {each}};
  if (!each.is_system_wide()) request.target = event::this_thread();
  const auto planned = event::plan(request);
  if (!planned) return planned.error().says;
  event::OpenArgs args = planned->steps.front().args;
  const bool may_exclude = each.kernel() == event::Kernel::IfAllowed;
  const bool is_cheap = args.attr.type != PERF_TYPE_TRACEPOINT &&
                        each.kind() != event::EventKind::Kprobe &&
                        each.kind() != event::EventKind::Kretprobe;
  if (is_cheap) {  // to open and close a tracepoint takes 35 ms (R1)
    int fd = event::real_system().open(args);
    if (fd < 0 && may_exclude) {
      args.attr.exclude_kernel = args.attr.exclude_hv = args.attr.exclude_callchain_kernel = 1;
      fd = event::real_system().open(args);
    }
    if (fd >= 0) {
      ::close(fd);
      return {};
    }
    const auto error = event::EventError::at_failure(event::EventError::Step::Open, -fd, args,
                                                     each.name(), event::real_system());
    return error.causes.empty() ? error.io_error.message() : error.causes.front().says;
  }
  for (const event::Finding& finding : event::check(request)) {
    if (finding.severity == event::Finding::Severity::Refused) return finding.says;
  }
  return {};
}

bool matches(const std::string& pattern, const std::string& name) {
  return pattern.empty() || name.find(pattern) != std::string::npos ||
         ::fnmatch(pattern.c_str(), name.c_str(), 0) == 0;
}

}  // namespace

int run_command(const EventsOptions& options) {
  std::string lines;
  std::size_t count = 0;
  for (const auto& [name, each] : all()) {
    if (!matches(options.pattern, name)) continue;
    ++count;
    const std::string why = why_not(each);
    if (options.json) {
      lines += record::line_of({{"event", name}, {"opens", why.empty()}, {"why_not", why}});
    } else {
      lines += fmt::format("{:36} {}\n", name, why.empty() ? "yes" : "no: " + one_line(why));
    }
  }
  if (const auto folder = event::internal::tracing_events(event::real_system()); !folder) {
    deliver_to_stderr(
        "perfring: no tracepoints are listed: tracefs is not mounted or may not be "
        "read (mount -t tracefs tracefs /sys/kernel/tracing)\n",
        kHolds);
  }
  if (count == 0)
    return fail("PATTERN: no event has " + in_quotes(options.pattern) + " in its name");
  return deliver(lines, kHolds, "the events");
}

}  // namespace perfring::cli
