// Every parser of text: the command lines of perfring and the benchmark, scenarios, scripts, traces
// and litmus tests. None crashes; what is taken is within its limits, and is read back from what is
// printed of it; what is refused is refused with a reason. The first byte says which parser.

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <sstream>
#include <vector>

#include "fuzz/input.h"
#include "harness/bench/options.h"
#include "harness/cli/command_line.h"
#include "harness/differential/trace.h"
#include "harness/model/litmus/litmus.h"
#include "harness/script/script.h"
#include "harness/simulator/settings.h"
#include "perfring/os/cpus.h"

namespace perfring::fuzz {
namespace {

// What each line of the text is: an argument.
class Arguments {
 public:
  explicit Arguments(std::string_view text, std::vector<std::string> before = {}) {
    words_.emplace_back("program");
    words_.insert(words_.end(), before.begin(), before.end());
    while (!text.empty()) {
      const std::size_t end = std::min(text.find('\n'), text.size());
      words_.emplace_back(text.substr(0, end));
      text.remove_prefix(std::min(end + 1, text.size()));
    }
    for (const std::string& word : words_) pointers_.push_back(word.c_str());
  }
  int count() const { return static_cast<int>(pointers_.size()); }
  const char* const* values() const { return pointers_.data(); }

 private:
  std::vector<std::string> words_;
  std::vector<const char*> pointers_;
};

template <class T>
bool taken(const std::expected<T, std::string>& parsed) {
  if (!parsed) expect(!parsed.error().empty(), "refused without a reason");
  return parsed.has_value();
}

void settings(std::string_view text) {
  const auto parsed = simulator::parse_settings(text, "text");
  if (!taken(parsed)) return;
  for (const simulator::SettingName& name : simulator::setting_names()) {
    const std::uint64_t value = *parsed.*name.field;
    expect(value >= name.min && value <= name.max, "a setting outside its limits");
  }
  // "a=1 b=2" as lines.
  std::string again = simulator::difference(*parsed, {});
  for (char& c : again) c = c == ' ' ? '\n' : c == '=' ? ' ' : c;
  expect(simulator::parse_settings(again, "again") == *parsed, "settings are not read back");
  static_cast<void>(simulator::impossible(*parsed));
}

void script(std::string_view text) {
  const auto parsed = script::parse_script(text);
  if (!taken(parsed)) return;
  expect(!why_impossible(*parsed), "a script was taken that cannot be run");
  expect(script::parse_script(to_text(*parsed)) == *parsed, "a script is not read back");
}

void trace(std::string_view text) {
  const auto parsed = differential::parse_trace(text);
  if (!taken(parsed)) return;
  expect(parsed->steps.size() == parsed->script.steps.size(), "a step that shows nothing");
  expect(!why_impossible(parsed->script) && !nests(parsed->script), "a trace of no real kernel");
  const std::string printed = to_text(*parsed);
  const auto again = differential::parse_trace(printed);
  expect(again && to_text(*again) == printed, "a trace is not read back");
  // It is as a kernel's ring would be, step for step.
  differential::RecordedReference recorded{*parsed};
  for (const script::Step& step : parsed->script.steps) recorded.run(step);
}

void live_options(std::string_view text) {
  if (const auto payload = cli::parse_payload(text); taken(payload)) {
    expect(payload->min <= payload->max && payload->max <= 65516, "a payload outside its limits");
  }
  if (const auto watermark = cli::parse_watermark(text); taken(watermark)) {
    expect(*watermark >= 0, "a watermark below 0");
  }
  if (const auto cpus = os::parse_cpu_list(text)) {
    expect(cpus->size() <= 65536, "more CPUs than are taken");
  }
  taken(cli::parse_cpus(text));
}

void expect_possible(const cli::LiveOptions& live) {
  expect((live.pages & (live.pages - 1)) == 0 && live.pages != 0, "pages that are no power of two");
  expect(live.seconds > 0 && live.seconds <= 86400, "seconds outside their limits");
}

void expect_possible(const cli::SimOptions& options) {
  cli::SimOptions sim = options;
  // No file of this machine's.
  if (simulator::find_scenario(sim.scenario) == nullptr) {
    sim.scenario.insert(0, "there is no file ");
  }
  const auto plan = cli::plan_of(sim);
  if (!taken(plan)) return;
  expect(simulator::impossible(plan->plan.settings).empty(), "a plan that cannot be");
  expect(!cli::replay_line(*plan, plan->plan).empty(), "a plan without a replay line");
}

void expect_possible(const cli::CheckOptions& check) {
  taken(cli::plan_of(check));
}

void expect_possible(const cli::StressOptions& options) {
  expect(options.run.seconds > 0, "no time to run in");
  expect(options.run.rings >= 1, "no ring to run on");
}

void expect_possible(const cli::DiffOptions& options) {
  const auto& campaign = options.campaign;
  expect(campaign.scripts >= 1 && campaign.scripts <= 1'000'000'000, "too many scripts, or none");
  expect(campaign.steps_max >= 1 && campaign.steps_max <= script::kStepsMax, "too many steps");
  expect(!options.cpu || *options.cpu >= 0, "a CPU that there is not");
}

void command_line_after(std::string_view text, const std::vector<std::string>& before) {
  const Arguments arguments{text, before};
  const auto parsed = cli::parse_command_line(arguments.count(), arguments.values());
  if (const auto* const answer = std::get_if<Answer>(&parsed)) {
    expect(!answer->text.empty(), "an answer without words");
    return;
  }
  std::visit([](const auto& options) { expect_possible(options); }, std::get<cli::Command>(parsed));
}

void command_line(std::string_view text) {
  command_line_after(text, {});
}
void stress_line(std::string_view text) {
  command_line_after(text, {"stress"});
}
void diff_line(std::string_view text) {
  command_line_after(text, {"diff"});
}

void drain_line(std::string_view text) {
  const Arguments arguments{text};
  const auto parsed = bench::parse_command_line(arguments.count(), arguments.values());
  if (const auto* const answer = std::get_if<Answer>(&parsed)) {
    expect(!answer->text.empty(), "an answer without words");
    return;
  }
  for (const std::string& argument : std::get<bench::Options>(parsed).benchmark) {
    expect(argument == "program" || argument.starts_with("--benchmark_"),
           "an option of ours, passed on");
  }
}

// A number is what the text says, as far as 64 bits go, and no other that it was converted to.
bool is(const nlohmann::json& entry, const char* field, auto value) {
  if (!entry.contains(field)) return true;
  const auto& said = entry.at(field);
  return said.is_number_integer() && said.get<std::uint64_t>() == static_cast<std::uint64_t>(value);
}

void litmus(std::string_view text) {
  std::istringstream file{std::string{text}};
  std::vector<model::Litmus> all;
  try {
    all = model::read_litmus(file);
  } catch (const model::UsageError& error) {
    expect(*error.what() != '\0', "refused without a reason");
    return;
  }
  const auto said = nlohmann::json::parse(text);
  expect(all.size() == said.size(), "a program is lost");
  for (std::size_t i = 0; i < all.size(); ++i) {
    const model::Litmus& each = all[i];
    const std::size_t threads = each.program.threads.size();
    expect(threads >= 1 && threads <= model::Program::kThreadsMax, "too many threads");
    expect(each.registers.size() == threads, "registers of no thread");
    expect(!each.race || each.allowed.empty(), "outcomes where there is a race");
    expect(is(said[i], "unset_register", each.unset_register), "an unset register's value");
    expect(!each.executions || is(said[i], "genmc_executions", *each.executions), "executions");
    for (const model::Location& location : each.program.locations) {
      expect(is(said[i], "initial", location.initial), "a location's initial value");
    }
  }
}

constexpr std::array kParsers{settings,    script,    trace,      live_options, command_line,
                              stress_line, diff_line, drain_line, litmus};
// What the corpus was made with: a larger byte was one of these, and is still.
constexpr std::size_t kFirstParsers = 6;

}  // namespace
}  // namespace perfring::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace perfring::fuzz;
  Input input{data, size};
  const auto which = input.take<std::uint8_t>();
  kParsers[which < kParsers.size() ? which : which % kFirstParsers](input.text());
  return 0;
}
