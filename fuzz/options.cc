// Every parser of text: the command lines of perfring and stress, scenarios, scripts and traces.
// None crashes; what is taken is within its limits, and is read back from what is printed of it;
// what is refused is refused with a reason. The first byte says which parser.

#include <array>
#include <vector>

#include "fuzz/input.h"
#include "harness/cli/command_line.h"
#include "harness/differential/trace.h"
#include "harness/script/script.h"
#include "harness/simulator/settings.h"
#include "harness/stress/options.h"
#include "perfring/os/cpus.h"

namespace perfring::fuzz {
namespace {

// What each line of the text is: an argument.
class Arguments {
 public:
  explicit Arguments(std::string_view text) {
    words_.emplace_back("program");
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
  if (const auto pages = cli::parse_pages(text); taken(pages)) {
    expect((*pages & (*pages - 1)) == 0 && *pages != 0, "pages that are no power of two");
  }
  if (const auto seconds = cli::parse_seconds(text); taken(seconds)) {
    expect(*seconds > 0 && *seconds <= 86400, "seconds outside their limits");
  }
  if (const auto watermark = cli::parse_watermark(text); taken(watermark)) {
    expect(*watermark >= 0, "a watermark below 0");
  }
  if (const auto cpus = os::parse_cpu_list(text)) {
    expect(cpus->size() <= 65536, "more CPUs than are taken");
  }
  taken(cli::parse_cpus(text));
}

void command_line(std::string_view text) {
  const Arguments arguments{text};
  const auto parsed = cli::parse_command_line(arguments.count(), arguments.values());
  if (const auto* const answer = std::get_if<cli::Answer>(&parsed)) {
    expect(!answer->text.empty(), "an answer without words");
    return;
  }
  cli::CommandLine command = std::get<cli::CommandLine>(parsed);
  if (command.check) taken(cli::plan_of(*command.check));
  if (!command.sim) return;
  // No file of this machine's.
  std::string& scenario = command.sim->scenario;
  if (simulator::find_scenario(scenario) == nullptr) scenario.insert(0, "there is no file ");
  const auto plan = cli::plan_of(*command.sim);
  if (!taken(plan)) return;
  expect(simulator::impossible(plan->plan.settings).empty(), "a plan that cannot be");
  expect(!cli::replay_line(*plan, plan->plan).empty(), "a plan without a replay line");
}

void stress_line(std::string_view text) {
  const Arguments arguments{text};
  const auto parsed = stress::parse(arguments.count(), arguments.values());
  if (const auto* const answer = std::get_if<stress::Answer>(&parsed)) {
    expect(!answer->text.empty(), "an answer without words");
    return;
  }
  const auto& options = std::get<stress::Options>(parsed);
  expect(options.run.seconds > 0, "no time to run in");
  expect(options.threads || options.sleepers || options.processes, "nothing to run");
}

constexpr std::array kParsers{settings, script, trace, live_options, command_line, stress_line};

}  // namespace
}  // namespace perfring::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace perfring::fuzz;
  Input input{data, size};
  const auto which = input.take<std::uint8_t>();
  kParsers[which % kParsers.size()](input.text());
  return 0;
}
