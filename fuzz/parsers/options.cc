// Fuzz targets for the parsers of command lines: each function outside the anonymous namespace is a
// target. Each line of the input is one argument.

#include <algorithm>
#include <cstddef>
#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "fuzz/input.h"
#include "harness/bench/bench_options.h"
#include "harness/cli/check/check.h"
#include "harness/cli/command_line.h"
#include "harness/cli/demo/live.h"
#include "harness/cli/diff/diff.h"
#include "harness/cli/sim/sim.h"
#include "harness/cli/stress/stress.h"
#include "harness/program/numbers.h"
#include "harness/program/options.h"
#include "harness/script/script.h"
#include "harness/simulator/settings.h"
#include "perfring/event/event.h"
#include "perfring/os/cpus.h"

namespace perfring::fuzz {
namespace {

// A command line: a program's name, `before`, and each line of the text as one argument.
class Arguments {
 public:
  explicit Arguments(std::string_view text, std::vector<std::string> before = {})
      : words_{std::move(before)} {
    words_.insert(words_.begin(), "program");
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

// Returns the parsed options. Returns null if there is nothing to run; the parser then answers with
// a text.
template <class Options>
const Options* options_of(const std::variant<Options, Answer>& parsed) {
  if (const auto* const answer = std::get_if<Answer>(&parsed)) {
    expect(!answer->text.empty(), "a result without text");
  }
  return std::get_if<Options>(&parsed);
}

// Parses `perfring COMMAND` with the lines of the text as arguments. Returns the command's options;
// nullopt if the command line is refused, requests help, or names another command.
template <class Options>
std::optional<Options> parse_perfring(std::string_view text, std::vector<std::string> command) {
  const bool named = !command.empty();
  const Arguments arguments{text, std::move(command)};
  const auto parsed = cli::parse_command_line(arguments.count(), arguments.values());
  const cli::Command* const parsed_command = options_of(parsed);
  if (parsed_command == nullptr) return std::nullopt;
  const Options* const options = std::get_if<Options>(parsed_command);
  expect(options != nullptr || !named, "another command's options");
  return options == nullptr ? std::nullopt : std::optional{*options};
}

}  // namespace

// `perfring` without a command, or with one that the input names.
void live_options(std::string_view text) {
  const auto live = parse_perfring<cli::LiveOptions>(text, {});
  if (!live) return;
  expect((live->pages & (live->pages - 1)) == 0 && live->pages != 0,
         "a number of pages that is not a power of two");
  expect(live->seconds > 0 && live->seconds <= 86400, "seconds outside their limits");
}

// The values of the demonstration's options: payload, watermark, CPUs.
void live_values(std::string_view text) {
  if (const auto payload = cli::parse_payload(text); accepted(payload)) {
    expect(payload->min <= payload->max && payload->max <= 65516, "a payload outside its limits");
  }
  if (const auto watermark = cli::parse_watermark(text); accepted(watermark)) {
    expect(*watermark >= 0, "a watermark below 0");
  }
  if (const auto cpus = os::parse_cpu_list(text)) {
    expect(cpus->size() <= 65536, "too many CPUs");
  }
  accepted(cli::parse_cpus(text));
}

// The names of `perfring record -e`.
void event_name(std::string_view text) {
  const auto event = event::by_name(text);
  if (accepted(event)) expect(!event->name().empty(), "an event without a name");
}

// `perfring sim`: accepted options give a plan that can be run and replayed.
void sim_options(std::string_view text) {
  auto sim = parse_perfring<cli::SimOptions>(text, {"sim"});
  if (!sim) return;
  // Do not open a file of this machine.
  if (simulator::find_scenario(sim->scenario) == nullptr) {
    sim->scenario.insert(0, "there is no file ");
  }
  const auto plan = cli::plan_of(*sim);
  if (!accepted(plan)) return;
  expect(simulator::impossible(plan->plan.settings).empty(), "an impossible plan");
  expect(!cli::replay_line(*plan, plan->plan).empty(), "a plan without a replay line");
}

// `perfring check`.
void check_options(std::string_view text) {
  const auto check = parse_perfring<cli::CheckOptions>(text, {"check"});
  if (check) accepted(cli::plan_of(*check));
}

// `perfring stress`.
void stress_options(std::string_view text) {
  const auto stress = parse_perfring<cli::StressOptions>(text, {"stress"});
  if (!stress) return;
  expect(stress->run.seconds > 0, "no time to run in");
  expect(stress->run.rings >= 1, "no ring to run on");
}

// `perfring diff`.
void diff_options(std::string_view text) {
  const auto diff = parse_perfring<cli::DiffOptions>(text, {"diff"});
  if (!diff) return;
  const auto& campaign = diff->campaign;
  expect(campaign.scripts >= 1 && campaign.scripts <= 1'000'000'000, "too many scripts, or none");
  expect(campaign.steps_max >= 1 && campaign.steps_max <= script::kStepsMax, "too many steps");
  expect(!diff->cpu || *diff->cpu >= 0, "a negative CPU");
}

// The benchmark's command line.
void bench_options(std::string_view text) {
  const Arguments arguments{text};
  const auto parsed = bench::parse_drain(arguments.count(), arguments.values());
  const bench::DrainOptions* const options = options_of(parsed);
  if (options == nullptr) return;
  const auto seconds = parse_number<double>(options->min_time);
  expect(seconds && *seconds > 0 && *seconds <= 86400, "seconds outside their limits");
  expect(options->repetitions >= 1 && options->repetitions <= 1000,
         "too many repetitions, or none");
}

}  // namespace perfring::fuzz
