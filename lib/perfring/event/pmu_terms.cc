// The events and the terms of a PMU, by their names in sysfs.

#include <linux/perf_event.h>

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
#include "perfring/event/text.h"

namespace perfring::event::internal {
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

}  // namespace perfring::event::internal
