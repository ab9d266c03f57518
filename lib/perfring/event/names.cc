// Events by their names on the command line.

#include <linux/perf_event.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "perfring/event/event.h"
#include "perfring/event/text.h"

namespace perfring::event {
namespace {

using internal::cut;
using internal::in_quotes;
using internal::number_of;
using internal::wrong;

struct Named {
  const char* name;
  const char* alias;  // or null
  EventKind kind;
  std::uint32_t config;
};

constexpr std::array kNamed{
    Named{"cpu-clock", nullptr, EventKind::Software, PERF_COUNT_SW_CPU_CLOCK},
    Named{"task-clock", nullptr, EventKind::Software, PERF_COUNT_SW_TASK_CLOCK},
    Named{"page-faults", "faults", EventKind::Software, PERF_COUNT_SW_PAGE_FAULTS},
    Named{"minor-faults", nullptr, EventKind::Software, PERF_COUNT_SW_PAGE_FAULTS_MIN},
    Named{"major-faults", nullptr, EventKind::Software, PERF_COUNT_SW_PAGE_FAULTS_MAJ},
    Named{"context-switches", "cs", EventKind::Software, PERF_COUNT_SW_CONTEXT_SWITCHES},
    Named{"cpu-migrations", "migrations", EventKind::Software, PERF_COUNT_SW_CPU_MIGRATIONS},
    Named{"cgroup-switches", nullptr, EventKind::Software, PERF_COUNT_SW_CGROUP_SWITCHES},
    Named{"alignment-faults", nullptr, EventKind::Software, PERF_COUNT_SW_ALIGNMENT_FAULTS},
    Named{"emulation-faults", nullptr, EventKind::Software, PERF_COUNT_SW_EMULATION_FAULTS},
    Named{"bpf-output", nullptr, EventKind::Software, PERF_COUNT_SW_BPF_OUTPUT},
    Named{"dummy", nullptr, EventKind::Software, PERF_COUNT_SW_DUMMY},
    Named{"cpu-cycles", "cycles", EventKind::Hardware, PERF_COUNT_HW_CPU_CYCLES},
    Named{"instructions", nullptr, EventKind::Hardware, PERF_COUNT_HW_INSTRUCTIONS},
    Named{"cache-references", nullptr, EventKind::Hardware, PERF_COUNT_HW_CACHE_REFERENCES},
    Named{"cache-misses", nullptr, EventKind::Hardware, PERF_COUNT_HW_CACHE_MISSES},
    Named{"branch-instructions", "branches", EventKind::Hardware,
          PERF_COUNT_HW_BRANCH_INSTRUCTIONS},
    Named{"branch-misses", nullptr, EventKind::Hardware, PERF_COUNT_HW_BRANCH_MISSES},
    Named{"bus-cycles", nullptr, EventKind::Hardware, PERF_COUNT_HW_BUS_CYCLES},
    Named{"stalled-cycles-frontend", nullptr, EventKind::Hardware,
          PERF_COUNT_HW_STALLED_CYCLES_FRONTEND},
    Named{"stalled-cycles-backend", nullptr, EventKind::Hardware,
          PERF_COUNT_HW_STALLED_CYCLES_BACKEND},
    Named{"ref-cycles", nullptr, EventKind::Hardware, PERF_COUNT_HW_REF_CPU_CYCLES}};

constexpr std::array kCaches{"L1-dcache", "L1-icache", "LLC", "dTLB", "iTLB", "branch", "node"};
constexpr std::array<std::array<const char*, 2>, 3> kOperations{
    {{"loads", "load-misses"}, {"stores", "store-misses"}, {"prefetches", "prefetch-misses"}}};

using Change = bool Changes::*;
constexpr std::array<std::pair<const char*, Change>, 11> kChanges{
    {{"switches", &Changes::switches},
     {"names", &Changes::names},
     {"execs", &Changes::execs},
     {"forks", &Changes::forks},
     {"maps", &Changes::maps},
     {"data-maps", &Changes::data_maps},
     {"cgroups", &Changes::cgroups},
     {"namespaces", &Changes::namespaces},
     {"symbols", &Changes::symbols},
     {"programs", &Changes::programs},
     {"text", &Changes::text}}};

std::string cache_name(std::size_t which, std::size_t op, std::size_t result) {
  return std::string{kCaches[which]} + "-" + kOperations[op][result];
}

std::optional<Event> cache_event(std::string_view name) {
  for (std::size_t i = 0; i < kCaches.size(); ++i) {
    for (std::size_t op = 0; op < kOperations.size(); ++op) {
      for (std::size_t result = 0; result < kOperations[op].size(); ++result) {
        if (name == cache_name(i, op, result)) {
          return cache(static_cast<perf_hw_cache_id>(i), static_cast<perf_hw_cache_op_id>(op),
                       static_cast<perf_hw_cache_op_result_id>(result));
        }
      }
    }
  }
  return std::nullopt;
}

std::expected<Event, Finding> changes_by_name(std::string_view list) {
  Changes which;
  do {
    const std::string_view name = cut(list, ',');
    const auto found = std::ranges::find(
        kChanges, name, [](const auto& each) { return std::string_view{each.first}; });
    if (found == kChanges.end()) {
      std::string known;
      for (const auto& each : kChanges)
        known += std::string{known.empty() ? "" : ", "} + each.first;
      return std::unexpected(
          wrong("name", in_quotes(name) + " is not a change", "give some of " + known));
    }
    which.*found->second = true;
  } while (!list.empty());
  return changes(which);
}

// ADDRESS[:ACCESS[:LENGTH]]
std::expected<Event, Finding> breakpoint_by_name(std::string_view rest) {
  const auto refused = [](std::string says) {
    return std::unexpected(wrong("name", std::move(says),
                                 "give mem:0xADDRESS:ACCESS:LENGTH, where "
                                 "ACCESS is w, rw or x"));
  };
  const std::string_view place = cut(rest, ':');
  const auto address = number_of(place);
  if (!address) return refused(in_quotes(place) + " is not an address");
  const std::string_view how = rest.empty() ? "rw" : cut(rest, ':');
  const auto length = rest.empty() ? std::optional<std::uint64_t>{4} : number_of(rest);
  if (!length) return refused(in_quotes(rest) + " is not a length");
  if (how == "r") return breakpoint(*address, Access::Read, *length);
  if (how == "w") return breakpoint(*address, Access::Write, *length);
  if (how == "rw") return breakpoint(*address, Access::ReadWrite, *length);
  if (how == "x") return breakpoint(*address, Access::Execute, *length);
  return refused(in_quotes(how) + " is not a kind of access");
}

// FUNCTION[+OFFSET]
std::expected<Event, Finding> kprobe_by_name(std::string_view rest, bool is_return) {
  const std::size_t plus = is_return ? std::string_view::npos : rest.rfind('+');
  const auto offset =
      plus == std::string_view::npos ? std::nullopt : number_of(rest.substr(plus + 1));
  std::string function{offset ? rest.substr(0, plus) : rest};
  if (function.empty()) {
    return std::unexpected(wrong("name", "the probe has no function", "give kprobe:FUNCTION"));
  }
  return is_return ? kretprobe(std::move(function))
                   : kprobe(std::move(function), offset.value_or(0));
}

// PATH:SYMBOL, or PATH:OFFSET
std::expected<Event, Finding> uprobe_by_name(std::string_view rest, bool is_return) {
  const std::size_t colon = rest.rfind(':');
  std::string path{rest.substr(0, colon)};
  const std::string_view place = colon == std::string_view::npos ? "" : rest.substr(colon + 1);
  // (Without a place the probe would be at the file's first byte, which is never executed.)
  if (path.empty() || place.empty()) {
    return std::unexpected(wrong("name",
                                 in_quotes(rest) + " does not name a file and a place in it",
                                 "give PATH:SYMBOL or PATH:OFFSET, as in uprobe:/bin/sh:main"));
  }
  if (const auto offset = number_of(place)) {
    return is_return ? uretprobe(std::move(path), *offset) : uprobe(std::move(path), *offset);
  }
  return is_return ? uretprobe(std::move(path), std::string{place})
                   : uprobe(std::move(path), std::string{place});
}

std::optional<Event> plain(std::string_view name) {
  for (const Named& each : kNamed) {
    if (name != each.name && (each.alias == nullptr || name != each.alias)) continue;
    return each.kind == EventKind::Software ? software(static_cast<perf_sw_ids>(each.config))
                                            : hardware(static_cast<perf_hw_id>(each.config));
  }
  if (auto found = cache_event(name)) return found;
  if (name.size() > 1 && name.front() == 'r') {
    if (const auto config = number_of(std::string{"0x"}.append(name.substr(1))))
      return raw(*config);
  }
  return std::nullopt;
}

}  // namespace

std::vector<std::string> known_names() {
  std::vector<std::string> names;
  for (const Named& each : kNamed) names.emplace_back(each.name);
  for (const char* const cache : kCaches) {
    for (const auto& operation : kOperations) {
      for (const char* const result : operation) names.push_back(std::string{cache} + "-" + result);
    }
  }
  return names;
}

std::expected<Event, Finding> by_name(std::string_view name) {
  if (auto found = plain(name)) return *std::move(found);
  std::string_view rest = name;
  const std::string_view prefix = cut(rest, ':');
  if (prefix.size() < name.size()) {
    if (prefix == "changes") return changes_by_name(rest);
    if (prefix == "mem") return breakpoint_by_name(rest);
    if (prefix == "kprobe" || prefix == "kretprobe") {
      return kprobe_by_name(rest, prefix == "kretprobe");
    }
    if (prefix == "uprobe" || prefix == "uretprobe") {
      return uprobe_by_name(rest, prefix == "uretprobe");
    }
    if (plain(prefix)) {
      return std::unexpected(wrong("name",
                                   in_quotes(rest) + " after an event's name is not understood",
                                   "leave it out: the kernel is excluded where this user may not "
                                   "observe it"));
    }
    if (name.find('/') == std::string_view::npos) return tracepoint(std::string{name});
  }
  if (name.find('/') != std::string_view::npos) return pmu(std::string{name});
  return std::unexpected(wrong("name", in_quotes(name) + " is not the name of an event",
                               "give one such as " + internal::nearest(name, known_names()) +
                                   ", or a tracepoint as SYSTEM:NAME"));
}

namespace internal {

std::string hardware_name(std::uint64_t config) {
  const auto found = std::ranges::find_if(kNamed, [config](const Named& each) {
    return each.kind == EventKind::Hardware && each.config == config;
  });
  return found == kNamed.end() ? std::to_string(config) : found->name;
}

std::string cache_name(std::uint64_t config) {
  const std::uint64_t which = config & 0xff, op = config >> 8 & 0xff, result = config >> 16;
  const bool is_known = which < kCaches.size() && op < kOperations.size() && result < 2;
  return is_known ? event::cache_name(std::size_t(which), std::size_t(op), std::size_t(result))
                  : std::to_string(config);
}

}  // namespace internal
}  // namespace perfring::event
