// Events by their names on the command line, in tracefs and in sysfs.

#include <linux/perf_event.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "perfring/event/event.h"
#include "perfring/event/system.h"

namespace perfring::event {
namespace {

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

// Returns the text before the first `separator`, and removes both from `rest`.
std::string_view cut(std::string_view& rest, char separator) {
  const std::string_view first = rest.substr(0, rest.find(separator));
  rest.remove_prefix(std::min(first.size() + 1, rest.size()));
  return first;
}

std::optional<std::uint64_t> number_of(std::string_view text) {
  const bool is_hex = text.starts_with("0x") || text.starts_with("0X");
  if (is_hex) text.remove_prefix(2);
  std::uint64_t value = 0;
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), value, is_hex ? 16 : 10);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::string in_quotes(std::string_view text) {
  // (Not with +: GCC bug 105651, at -O3.)
  std::string all{"'"};
  all.append(text.substr(0, 200)).append(text.size() > 200 ? "...'" : "'");
  return all;
}

Finding wrong(const char* field, std::string says, std::string advice) {
  return {.field = field, .says = std::move(says), .advice = std::move(advice)};
}

constexpr char small(char letter) {
  return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter;
}

// Returns the number of characters to change (Levenshtein distance), ignoring case.
std::size_t distance(std::string_view a, std::string_view b) {
  constexpr std::size_t kLongest = 64;
  a = a.substr(0, kLongest);
  b = b.substr(0, kLongest);
  std::array<std::size_t, kLongest + 1> row{};
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t change = diagonal + (small(a[i - 1]) == small(b[j - 1]) ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, change});
    }
  }
  return row[b.size()];
}

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

std::string nearest(std::string_view name, const std::vector<std::string>& names) {
  constexpr std::size_t kMost = 3;
  std::vector<std::pair<std::size_t, const std::string*>> ranked;
  ranked.reserve(names.size());
  for (const std::string& each : names) ranked.emplace_back(distance(name, each), &each);
  const std::size_t count = std::min(kMost, ranked.size());
  std::ranges::partial_sort(ranked, ranked.begin() + static_cast<std::ptrdiff_t>(count), {},
                            [](const auto& each) { return std::pair{each.first, *each.second}; });
  std::string text;
  for (std::size_t i = 0; i < count; ++i) {
    text += std::string{i == 0 ? "" : ", "} + *ranked[i].second;
  }
  return text;
}

std::expected<std::uint64_t, Finding> tracepoint_id(const std::string& name, System& system) {
  const auto refused = [](std::string says, std::string advice) {
    return std::unexpected(wrong("config", std::move(says), std::move(advice)));
  };
  std::string_view part = name;
  const std::string group{cut(part, ':')};
  const bool is_path = name.find('/') != std::string::npos || name.find('\0') != std::string::npos;
  if (group.empty() || part.empty() || is_path || name.find("..") != std::string::npos) {
    return refused(in_quotes(name) + " is not the name of a tracepoint",
                   "give SYSTEM:NAME, as sched:sched_switch");
  }
  const auto folder = tracing_events(system);
  if (!folder) {
    if (folder.error().value() == EACCES || folder.error().value() == EPERM) {
      return refused(
          "tracefs, where tracepoints have their ids, may not be read: " + folder.error().message(),
          "run as root, or let this user read /sys/kernel/tracing");
    }
    return refused("tracefs, where tracepoints have their ids, is not mounted",
                   "mount -t tracefs tracefs /sys/kernel/tracing");
  }
  const auto text = system.read(*folder + "/" + group + "/" + std::string{part} + "/id");
  if (!text) {
    if (text.error().value() != ENOENT) {
      return refused("the id of " + in_quotes(name) + " may not be read: " + text.error().message(),
                     "run as root, or let this user read /sys/kernel/tracing");
    }
    // A group has files as well as the folders of its tracepoints: enable, filter, header_page.
    const auto folders = [&system](const std::string& in) {
      auto names = system.list(in).value_or(std::vector<std::string>{});
      std::erase_if(names, [&](const std::string& each) {
        const auto found = system.look_at(in + "/" + each);
        return !found || found->type != FileKind::Type::Folder;
      });
      return names;
    };
    if (const auto names = folders(*folder + "/" + group); !names.empty()) {
      return refused("there is no tracepoint " + in_quotes(name),
                     "the most similar of " + group + " are " + nearest(part, names));
    }
    return refused("there is no group of tracepoints " + in_quotes(group),
                   "the most similar are " + nearest(group, folders(*folder)));
  }
  const auto id = number_of(std::string_view{*text}.substr(0, text->find('\n')));
  if (!id || *id == 0)
    return refused("the id of " + in_quotes(name) + " is not a number", "look at " + *folder);
  return *id;
}

namespace {

// Returns the word of the attributes that sysfs calls by this name, such as "config3"; null if
// there is none.
__u64* word_of(std::string_view name, OpenArgs& args) {
  if (name == "config") return &args.attr.config;
  if (name == "config1") return &args.attr.config1;
  if (name == "config2") return &args.attr.config2;
  if (name == "config3") return &args.config3;
  return name == "config4" ? &args.config4 : nullptr;
}

// Puts a value into the bits that a sysfs format lists: "config:0-7,32-35".
std::optional<std::string> put(std::uint64_t value, std::string_view format, OpenArgs& args) {
  format = format.substr(0, format.find('\n'));
  const std::string_view word = cut(format, ':');
  __u64* const place = word_of(word, args);
  if (place == nullptr) return "has an unknown format: " + in_quotes(word);
  while (!format.empty()) {
    std::string_view range = cut(format, ',');
    const auto first = number_of(cut(range, '-'));
    const auto last = range.empty() ? first : number_of(range);
    if (!first || !last || *first > *last || *last > 63) return "has a format without bits";
    const std::uint64_t width = *last - *first + 1;
    const std::uint64_t mask = width == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << width) - 1;
    *place = (*place & ~(mask << *first)) | (value & mask) << *first;
    value = width == 64 ? 0 : value >> width;
  }
  if (value != 0) return "cannot hold a value this large";
  return std::nullopt;
}

class Terms {
 public:
  Terms(std::string pmu, System& system, OpenArgs& args)
      : pmu_{std::move(pmu)}, folder_{kDevices + pmu_}, system_{system}, ask_{args} {}

  std::optional<Finding> apply(std::string_view terms, bool may_name_an_event) {
    terms = terms.substr(0, terms.find('\n'));
    while (!terms.empty()) {
      std::string_view value = cut(terms, ',');
      const std::string_view name = cut(value, '=');
      if (auto refused = apply(name, value, may_name_an_event)) return refused;
    }
    return std::nullopt;
  }

 private:
  std::optional<Finding> apply(std::string_view name, std::string_view value,
                               bool may_name_an_event) {
    const std::string file{name};
    const bool is_name =
        !name.empty() && name.find('/') == std::string_view::npos && !name.starts_with('.');
    if (may_name_an_event && is_name && value.empty()) {
      if (const auto terms = system_.read(folder_ + "/events/" + file)) {
        return apply(*terms, false);
      }
    }
    const auto number = value.empty() ? std::optional<std::uint64_t>{1} : number_of(value);
    if (!number)
      return wrong("config", in_quotes(value) + " is not a number", "give one such as 17 or 0x11");
    if (__u64* const place = word_of(name, ask_)) {
      *place = *number;
      return std::nullopt;
    }
    const auto format = is_name ? system_.read(folder_ + "/format/" + file)
                                : std::expected<std::string, std::error_code>{std::unexpect};
    if (!format) {
      return wrong("config", "the PMU " + pmu_ + " has no event or term " + in_quotes(name),
                   "the most similar are " + nearest(name, known()));
    }
    if (const auto bad = put(*number, *format, ask_)) {
      return wrong("config", "the term " + file + " of " + pmu_ + " " + *bad,
                   "look at " + folder_ + "/format/" + file);
    }
    return std::nullopt;
  }

  std::vector<std::string> known() const {
    auto names = system_.list(folder_ + "/events").value_or(std::vector<std::string>{});
    const auto terms = system_.list(folder_ + "/format").value_or(std::vector<std::string>{});
    names.insert(names.end(), terms.begin(), terms.end());
    return names;
  }

  std::string pmu_;
  std::string folder_;
  System& system_;
  OpenArgs& ask_;
};

}  // namespace

std::optional<Finding> apply_pmu(std::string_view description, OpenArgs& args, System& system) {
  std::string_view terms = description;
  std::string name{cut(terms, '/')};
  const bool is_whole = name.size() < description.size();
  if (!is_whole || name.empty() || name.starts_with('.')) {
    return wrong("type", in_quotes(description) + " is not an event of a PMU",
                 "give PMU/TERM,.../");
  }
  const auto type = Facts{system}.pmu_type(name);
  if (!type) {
    const auto names = system.list(kDevices).value_or(std::vector<std::string>{});
    return wrong("type", "this machine has no PMU " + in_quotes(name),
                 "the most similar are " + nearest(name, names));
  }
  args.attr.type = *type;
  if (terms.ends_with('/')) terms.remove_suffix(1);
  return Terms{std::move(name), system, args}.apply(terms, true);
}

}  // namespace internal
}  // namespace perfring::event
