// Prints and parses scripts.

#include <fmt/format.h>
#include <linux/perf_event.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "harness/kernel/perf_event.h"
#include "harness/script/script.h"

namespace perfring::script {
namespace {

template <class T>
using Names = std::pair<std::string_view, T>;

constexpr std::array kSampleTypeNames{
    Names<std::uint64_t>{"TID", PERF_SAMPLE_TID},
    Names<std::uint64_t>{"TIME", PERF_SAMPLE_TIME},
    Names<std::uint64_t>{"ADDR", PERF_SAMPLE_ADDR},
    Names<std::uint64_t>{"ID", PERF_SAMPLE_ID},
    Names<std::uint64_t>{"CPU", PERF_SAMPLE_CPU},
    Names<std::uint64_t>{"PERIOD", PERF_SAMPLE_PERIOD},
    Names<std::uint64_t>{"STREAM_ID", PERF_SAMPLE_STREAM_ID},
    Names<std::uint64_t>{"RAW", PERF_SAMPLE_RAW},
    Names<std::uint64_t>{"IDENTIFIER", PERF_SAMPLE_IDENTIFIER},
};
constexpr std::array kActionNames{
    Names<Action>{"output", Action::Output}, Names<Action>{"drain", Action::Drain},
    Names<Action>{"throw", Action::Throw},   Names<Action>{"tail", Action::Tail},
    Names<Action>{"poll", Action::Poll},     Names<Action>{"epoll_wait", Action::Epoll},
    Names<Action>{"rearm", Action::Rearm},   Names<Action>{"pause", Action::Pause},
    Names<Action>{"resume", Action::Resume}, Names<Action>{"disable", Action::Disable},
    Names<Action>{"enable", Action::Enable}, Names<Action>{"die", Action::Die},
};
constexpr std::array kEpollNames{
    Names<Epoll>{"level", Epoll::Level},
    Names<Epoll>{"edge", Epoll::Edge},
    Names<Epoll>{"oneshot", Epoll::Oneshot},
};

template <class Table, class T>
std::string_view name_of(const Table& table, T value) {
  for (const auto& [name, named] : table) {
    if (named == value) return name;
  }
  return "?";
}

template <class Table>
auto value_of(const Table& table, std::string_view text)
    -> std::optional<decltype(table.front().second)> {
  for (const auto& [name, value] : table) {
    if (name == text) return value;
  }
  return std::nullopt;
}

std::string sample_type_text(std::uint64_t type) {
  std::string text;
  for (const auto& [name, bit] : kSampleTypeNames) {
    if ((type & bit) != 0) text += fmt::format("{}{}", text.empty() ? "" : "|", name);
  }
  return text.empty() ? "0" : text;
}

std::unexpected<std::string> wrong(std::string_view text, std::string_view wanted) {
  return std::unexpected(fmt::format("'{}': {}", text, wanted));
}

// Removes the first word from the line, and returns it.
std::string_view take_word(std::string_view& line) {
  const std::size_t end = std::min(line.find_first_of(" \t"), line.size());
  const std::string_view word = line.substr(0, end);
  line.remove_prefix(std::min(line.find_first_not_of(" \t", end), line.size()));
  return word;
}

using Parsed = std::expected<void, std::string>;

Parsed parse_number(std::string_view text, std::uint64_t& into) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc::result_out_of_range) return wrong(text, "a number of 64 bits");
  if (error != std::errc{} || end != text.data() + text.size()) {
    return wrong(text, "a decimal number is expected");
  }
  into = value;
  return {};
}

Parsed parse_bool(std::string_view text, bool& into) {
  if (text != "0" && text != "1") return wrong(text, "0 or 1");
  into = text == "1";
  return {};
}

Parsed parse_word(std::string_view text, kernel::Word& into) {
  if (text != "32" && text != "64") return wrong(text, "32 or 64");
  into = text == "32" ? kernel::Word::k32 : kernel::Word::k64;
  return {};
}

Parsed parse_epoll(std::string_view text, Epoll& into) {
  const auto value = value_of(kEpollNames, text);
  if (!value) return wrong(text, "level, edge or oneshot");
  into = *value;
  return {};
}

Parsed parse_sample_type(std::string_view text, std::uint64_t& into) {
  std::uint64_t type = 0;
  for (std::string_view rest = text == "0" ? "" : text; !rest.empty();) {
    const std::size_t bar = std::min(rest.find('|'), rest.size());
    const auto bit = value_of(kSampleTypeNames, rest.substr(0, bar));
    if (!bit) return wrong(rest.substr(0, bar), "not a sample_type that is simulated");
    type |= *bit;
    rest.remove_prefix(std::min(bar + 1, rest.size()));
  }
  into = type;
  return {};
}

// Parses the ">> at 5" in front of a step.
Parsed take_nesting(std::string_view& line, Step& step) {
  const std::size_t depth = std::min(line.find_first_not_of('>'), line.size());
  if (depth == 0) return {};
  step.depth = depth;
  line.remove_prefix(depth);
  line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
  if (const std::string_view word = take_word(line); word != "at") {
    return wrong(word, "a nested step begins with 'at' and a number");
  }
  return parse_number(take_word(line), step.at);
}

// Returns nullopt if `name` is not a setting.
std::optional<Parsed> parse_value(std::string_view name, std::string_view value, Settings& s) {
  if (name == "word") return parse_word(value, s.word);
  if (name == "pages") return parse_number(value, s.pages);
  if (name == "sample_type") return parse_sample_type(value, s.sample_type);
  if (name == "sample_id_all") return parse_bool(value, s.sample_id_all);
  if (name == "wakeup_events" || name == "wakeup_watermark") {
    s.watermark = name == "wakeup_watermark";
    return parse_number(value, s.wakeup);
  }
  if (name == "write_backward") return parse_bool(value, s.write_backward);
  if (name == "overwrite") return parse_bool(value, s.overwrite);
  if (name == "start") return parse_number(value, s.start);
  if (name == "events") return parse_number(value, s.events);
  if (name == "epoll") return parse_epoll(value, s.epoll);
  if (name == "before_5_2") return parse_bool(value, s.before_5_2);
  return std::nullopt;
}

}  // namespace

std::string to_text(const Settings& s) {
  const Settings usual;
  std::string text;
  const auto line = [&](std::string_view name, const std::string& value) {
    text += fmt::format("{} {}\n", name, value);
  };
  if (s.word != usual.word) line("word", s.word == kernel::Word::k32 ? "32" : "64");
  if (s.pages != usual.pages) line("pages", std::to_string(s.pages));
  if (s.sample_type != usual.sample_type) line("sample_type", sample_type_text(s.sample_type));
  if (s.sample_id_all) line("sample_id_all", "1");
  if (s.watermark || s.wakeup != usual.wakeup) {
    line(s.watermark ? "wakeup_watermark" : "wakeup_events", std::to_string(s.wakeup));
  }
  if (s.write_backward) line("write_backward", "1");
  if (s.overwrite) line("overwrite", "1");
  if (s.start != usual.start) line("start", std::to_string(s.start));
  if (s.events != usual.events) line("events", std::to_string(s.events));
  if (s.epoll != usual.epoll) line("epoll", std::string{name_of(kEpollNames, s.epoll)});
  if (s.before_5_2) line("before_5_2", "1");
  return text;
}

std::string to_text(const Step& step) {
  std::string text;
  for (std::uint64_t i = 0; i < step.depth; ++i) text += '>';
  if (step.depth != 0) text += fmt::format(" at {} ", step.at);
  text += name_of(kActionNames, step.action);
  if (has_number(step.action)) text += fmt::format(" {}", step.number);
  if (step.second) text += " second";
  return text;
}

std::string to_text(const Script& script) {
  std::string text = to_text(script.settings);
  for (auto step = script.steps.begin(); step != script.steps.end();) {
    const auto next =
        std::find_if_not(step, script.steps.end(), [&](const Step& each) { return each == *step; });
    if (next - step > 1) text += fmt::format("{} times ", next - step);
    text += to_text(*step) + "\n";
    step = next;
  }
  return text;
}

std::string_view without_comment(std::string_view line) {
  line = line.substr(0, line.find('#'));
  const std::size_t first = line.find_first_not_of(" \t\r");
  if (first == std::string_view::npos) return {};
  return line.substr(first, line.find_last_not_of(" \t\r") - first + 1);
}

std::expected<bool, std::string> parse_setting(std::string_view line, Settings& settings) {
  std::string_view value = line;
  const std::string_view name = take_word(value);
  Settings changed = settings;
  const auto parsed = parse_value(name, value, changed);
  if (!parsed) return false;
  if (!*parsed) return std::unexpected(fmt::format("{}: {}", name, parsed->error()));
  if (const auto why = why_impossible(changed)) return std::unexpected(*why);
  settings = changed;
  return true;
}

std::expected<Step, std::string> parse_step(std::string_view line) {
  Step step;
  if (const auto parsed = take_nesting(line, step); !parsed) {
    return std::unexpected(parsed.error());
  }
  const std::string_view name = take_word(line);
  const auto action = value_of(kActionNames, name);
  if (!action) return wrong(name, "not a step or a setting");
  step.action = *action;
  if (has_number(step.action)) {
    if (const auto parsed = parse_number(take_word(line), step.number); !parsed) {
      return std::unexpected(fmt::format("{}: {}", name, parsed.error()));
    }
  }
  if (has_second(step.action) && line == "second") {
    step.second = true;
    line = {};
  }
  if (!line.empty()) return wrong(line, fmt::format("unexpected after a complete {}", name));
  return step;
}

namespace {

// Parses the "30 times " in front of a step. Returns 1 if there is none.
std::expected<std::uint64_t, std::string> take_times(std::string_view& line) {
  std::string_view rest = line;
  const std::string_view number = take_word(rest);
  if (take_word(rest) != "times") return 1;
  std::uint64_t times = 0;
  if (const auto parsed = parse_number(number, times); !parsed) {
    return std::unexpected(parsed.error());
  }
  if (times == 0) return wrong(number, "at least 1 time");
  line = rest;
  return times;
}

// Adds the setting or the step of the line. An error has only the reason.
std::expected<void, std::string> take_line(std::string_view line, Script& script) {
  const auto setting = parse_setting(line, script.settings);
  if (!setting) return std::unexpected(setting.error());
  if (*setting) {
    if (!script.steps.empty()) return std::unexpected("a setting after the first step");
    return {};
  }
  const auto times = take_times(line);
  if (!times) return std::unexpected(times.error());
  const auto step = parse_step(line);
  if (!step) return std::unexpected(step.error());
  if (const auto why = why_impossible(script.settings, *step)) return std::unexpected(*why);
  if (const auto why = why_misplaced(script.steps, *step)) return std::unexpected(*why);
  if (*times > kStepsMax - script.steps.size()) return std::unexpected("too many steps");
  script.steps.insert(script.steps.end(), static_cast<std::size_t>(*times), *step);
  return {};
}

}  // namespace

std::expected<Script, std::string> parse_script(std::string_view text, const Refusal& refuse) {
  Script script;
  for (std::size_t number = 1; !text.empty(); ++number) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = without_comment(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.empty()) continue;
    const auto error = [number](const std::string& why) {
      return std::unexpected(fmt::format("line {}: {}", number, why));
    };
    if (const auto taken = take_line(line, script); !taken) return error(taken.error());
    if (!refuse) continue;
    if (const auto why = refuse(script)) return error(*why);
  }
  return script;
}

}  // namespace perfring::script
