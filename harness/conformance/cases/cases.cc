#include "harness/conformance/cases/cases.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <iterator>
#include <set>
#include <stdexcept>
#include <utility>

#include "harness/program/numbers.h"

namespace perfring::conformance {

extern const char* const kCasesText;  // generated from cases.txt

namespace {

struct Named {
  Accept accept;
  const char* name;
  const char* reason;
};
constexpr std::array kAccepts{
    Named{Accept::Silent, "silent",
          "the malformed record is skipped without a report, and no intact record is lost"},
    Named{Accept::Errors, "errors",
          "more than one error for one malformed record, but nothing wrong is delivered"},
    Named{Accept::Stops, "stops",
          "the tail stays where the record's end is unknown, so that nothing unread is freed"},
    Named{Accept::Guesses, "guesses", "intact records at or after a wrong header are delivered"},
};
constexpr std::array kAll{Accept::Silent, Accept::Errors, Accept::Stops, Accept::Guesses};

constexpr std::array<std::pair<std::string_view, Patch::Field>, 7> kFields{{
    {"type", Patch::Field::Type},
    {"misc", Patch::Field::Misc},
    {"size", Patch::Field::Size},
    {"raw", Patch::Field::Raw},
    {"lost.type", Patch::Field::LostType},
    {"lost.size", Patch::Field::LostSize},
    {"lost.count", Patch::Field::LostCount},
}};

constexpr std::array<std::pair<std::string_view, During::Place>, 3> kPlaces{{
    {"head-read", During::Place::HeadRead},
    {"tail-store", During::Place::TailStore},
    {"tail-stored", During::Place::TailStored},
}};

constexpr std::uint64_t kCpusMax = 64;

using Words = std::vector<std::string_view>;
using Done = std::expected<void, std::string>;

Words words_of(std::string_view line) {
  Words words;
  for (std::size_t at = 0; (at = line.find_first_not_of(" \t", at)) != std::string_view::npos;) {
    const std::size_t end = std::min(line.find_first_of(" \t", at), line.size());
    words.push_back(line.substr(at, end - at));
    at = end;
  }
  return words;
}

std::optional<std::uint64_t> number(std::string_view text) {
  const bool negative = text.starts_with('-');
  if (negative) text.remove_prefix(1);
  const auto value = parse_number(text);
  return negative && value ? -*value : value;
}

std::unexpected<std::string> wrong(std::string_view what) {
  return std::unexpected(fmt::format("'{}' is not understood", what));
}

// Builds the cases line by line. Collects the steps of harness/script, whose parser reads them.
class Reader {
 public:
  Done line(std::string_view line);
  Done end();
  Suite suite;

 private:
  Done begin(const Words& words);
  Done accept(const Words& words);
  Done cpu(const Words& words);
  Done during(std::string_view place);
  Done patch(const Words& words);
  Done expect(const Words& words);
  Done other(std::string_view line);
  Done flush();
  Done part(Part part);
  Done end_of_case();
  Case& now() { return suite.cases.back(); }

  std::string steps_;
  std::set<std::string> ids_;
};

Done Reader::line(std::string_view line) {
  const Words words = words_of(line);
  if (words[0] == "version" && words.size() == 2 && suite.cases.empty()) {
    suite.version = number(words[1]).value_or(0);
    return {};
  }
  if (words[0] == "case") return begin(words);
  if (suite.cases.empty()) return std::unexpected("a case begins with 'case'");
  now().text += std::string{line} + "\n";
  if (words[0] == "title") {
    now().title = line.substr(std::min(line.size(), std::size_t{6}));
    return {};
  }
  if (words[0] == "facts") {
    now().facts.assign(words.begin() + 1, words.end());
    return {};
  }
  if (words[0] == "exact") {
    now().exact = true;
    return {};
  }
  if (line == "long") {
    now().is_long = true;
    return {};
  }
  if (words[0] == "accept") return accept(words);
  if (words[0] == "expect") return expect(words);
  if (words[0] == "patch") return patch(words);
  if (line == "registered") return part(Registered{});
  if (line == "drain") return part(Drain{});
  if (words[0] == "during" && words.size() == 2) return during(words[1]);
  if (line == "offline" || line == "online") return part(Hotplug{line == "online"});
  if (words[0] == "laps" && words.size() == 3 && number(words[1]) && number(words[2])) {
    return part(Laps{*number(words[1]), *number(words[2])});
  }
  const bool is_number = words.size() == 2 && number(words[1]);
  if (words[0] == "fill" && is_number) return part(Fill{*number(words[1])});
  if (is_number && (words[0] == "cpus" || words[0] == "absent" || words[0] == "cpu")) {
    return cpu(words);
  }
  return other(line);
}

Done Reader::end() {
  if (Done done = end_of_case(); !done) return done;
  const auto is_long = [](const Case& of) { return of.is_long; };
  std::ranges::copy_if(suite.cases, std::back_inserter(suite.long_cases), is_long);
  std::erase_if(suite.cases, is_long);
  return {};
}

Done Reader::begin(const Words& words) {
  if (const Done done = end_of_case(); !done) return done;
  const bool known = words.size() == 4 && (words[3] == "reachable" || words[3] == "hostile");
  if (!known || !number(words[2])) return std::unexpected("case ID SINCE reachable|hostile");
  if (!ids_.emplace(words[1]).second) return std::unexpected("this id is used twice");
  suite.cases.push_back({.id = std::string{words[1]},
                         .title = {},
                         .since = *number(words[2]),
                         .reachable = words[3] == "reachable"});
  return {};
}

Done Reader::accept(const Words& words) {
  for (const std::string_view word : std::span{words}.subspan(1)) {
    const auto found = std::ranges::find_if(
        all_accepts(), [&](const Accept each) { return word == to_string(each); });
    if (found == all_accepts().end()) return wrong(word);
    now().accepts.push_back(*found);
  }
  return {};
}

Done Reader::cpu(const Words& words) {
  const std::uint64_t value = *number(words[1]);
  const bool begun = !steps_.empty() || !now().parts.empty();
  if (words[0] == "cpu") {
    if (value >= now().cpus || now().absent.contains(value)) return wrong(words[1]);
    return part(OnCpu{value});
  }
  if (begun) return std::unexpected("a setting after the first step");
  if (words[0] == "cpus") {
    if (value == 0 || value > kCpusMax) return wrong(words[1]);
    now().cpus = value;
  } else {
    if (value >= now().cpus || now().absent.size() + 1 >= now().cpus) return wrong(words[1]);
    now().absent.insert(value);
  }
  return {};
}

Done Reader::during(std::string_view place) {
  const auto found = std::ranges::find(kPlaces, place, [](const auto& each) { return each.first; });
  if (found == kPlaces.end()) return wrong(place);
  const auto is_drain = [](const Part& part) { return std::holds_alternative<Drain>(part); };
  if (std::ranges::none_of(now().parts, is_drain)) {
    return std::unexpected("'during' follows the drain that it is about");
  }
  if (now().cpus > 1) return wrong(place);  // ambiguous: which CPU's drain?
  return part(During{found->second});
}

Done Reader::patch(const Words& words) {
  if (words.size() == 3 && words[1] == "head" && number(words[2])) {
    return part(Patch{.field = Patch::Field::Head, .value = *number(words[2])});
  }
  if (words.size() != 4 || !number(words[1]) || !number(words[3])) {
    return std::unexpected("patch OUTPUT FIELD VALUE, or patch head VALUE");
  }
  const auto found =
      std::ranges::find(kFields, words[2], [](const auto& field) { return field.first; });
  if (found == kFields.end()) return wrong(words[2]);
  return part(Patch{found->second, *number(words[1]), *number(words[3])});
}

Done Reader::expect(const Words& words) {
  auto* const drain = now().parts.empty() ? nullptr : std::get_if<Drain>(&now().parts.back());
  if (drain == nullptr || !steps_.empty()) return std::unexpected("'expect' follows a drain");
  std::vector<Wanted> wanted;
  using Kind = Wanted::Kind;
  for (std::size_t i = 1; i < words.size(); ++i) {
    const std::string_view word = words[i];
    const auto argument = [&] { return ++i < words.size() ? number(words[i]) : std::nullopt; };
    if (word == "nothing" && words.size() == 2) break;
    if (word == "bad") {
      if (now().cpus > 1) return wrong(word);
      wanted.push_back({.kind = Kind::Bad});
    } else if (word == "lost" || word == "maybe") {
      const auto value = argument();
      if (!value || now().cpus > 1) return wrong(word);  // ambiguous: which CPU?
      wanted.push_back({word == "lost" ? Kind::Lost : Kind::Maybe, *value});
    } else if (word == "cut") {
      const auto output = argument();
      const auto bytes = argument();
      if (!output || !bytes) return wrong(word);
      wanted.push_back({Kind::Sample, *output, bytes});
    } else {
      const std::size_t dash = std::min(word.find('-'), word.size());
      const auto first = number(word.substr(0, dash));
      const auto last = dash < word.size() ? number(word.substr(dash + 1)) : first;
      if (!first || !last || *last < *first) return wrong(word);
      for (std::uint64_t n = *first; n <= *last; ++n) wanted.push_back({Kind::Sample, n});
    }
  }
  drain->stated = true;
  drain->wanted = std::move(wanted);
  return {};
}

Done Reader::other(std::string_view line) {
  const auto setting = script::parse_setting(line, now().settings);
  if (!setting) return std::unexpected(setting.error());
  if (*setting) {
    const bool late = !steps_.empty() || !now().parts.empty();
    return late ? Done{std::unexpected("a setting after the first step")} : Done{};
  }
  steps_ += std::string{line} + "\n";
  return {};
}

Done Reader::flush() {
  if (steps_.empty()) return {};
  auto script = script::parse_script(script::to_text(now().settings) + std::exchange(steps_, {}));
  if (!script) return std::unexpected("its steps: " + script.error());
  now().parts.emplace_back(std::move(script->steps));
  return {};
}

Done Reader::part(Part part) {
  if (Done done = flush(); !done) return done;
  now().parts.push_back(std::move(part));
  return {};
}

Done Reader::end_of_case() {
  if (suite.cases.empty()) return {};
  const Case& last = now();
  if (!steps_.empty() || last.parts.empty() || !std::holds_alternative<Drain>(last.parts.back())) {
    return std::unexpected(last.id + " does not end with a drain");
  }
  if (last.title.empty() || last.facts.empty()) {
    return std::unexpected(last.id + " has no title, or no facts");
  }
  return {};
}

}  // namespace

std::expected<Suite, std::string> parse_suite(std::string_view text) {
  Reader reader;
  std::size_t number = 0;
  const auto error = [&number](const Done& done) {
    return std::unexpected(fmt::format("line {}: {}", number, done.error()));
  };
  while (!text.empty()) {
    ++number;
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = script::without_comment(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.empty()) continue;
    if (const Done done = reader.line(line); !done) return error(done);
  }
  if (const Done done = reader.end(); !done) return error(done);
  return std::move(reader.suite);
}

const char* to_string(Accept accept) {
  return std::ranges::find(kAccepts, accept, &Named::accept)->name;
}

const char* reason(Accept accept) {
  return std::ranges::find(kAccepts, accept, &Named::accept)->reason;
}

std::span<const Accept> all_accepts() {
  return kAll;
}

bool Case::is_plain() const {
  return std::ranges::none_of(parts, [](const Part& part) {
    const auto* const steps = std::get_if<std::vector<script::Step>>(&part);
    const auto is_large = [](const script::Step& step) { return step.number > kNearlyOversize; };
    return std::holds_alternative<Patch>(part) ||
           (steps != nullptr && std::ranges::any_of(*steps, is_large));
  });
}

bool Case::accepts_outcome(Accept accept) const {
  return std::ranges::find(accepts, accept) != accepts.end();
}

const Suite& suite() {
  static const Suite all = [] {
    auto parsed = parse_suite(kCasesText);
    if (!parsed) throw std::logic_error{"cases.txt: " + parsed.error()};
    return *std::move(parsed);
  }();
  return all;
}

const Case* find_case(std::string_view id) {
  for (const auto* const cases : {&suite().cases, &suite().long_cases}) {
    const auto found = std::ranges::find(*cases, id, &Case::id);
    if (found != cases->end()) return &*found;
  }
  return nullptr;
}

}  // namespace perfring::conformance
