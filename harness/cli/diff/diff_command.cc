// `perfring diff`.

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cctype>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <expected>
#include <filesystem>
#include <optional>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "harness/cli/demo/producer_thread.h"
#include "harness/cli/diff/diff.h"
#include "harness/differential/campaign.h"
#include "harness/differential/live_reference.h"
#include "harness/differential/reference_kernel.h"
#include "harness/differential/trace.h"
#include "harness/live/emitter.h"
#include "harness/live/live_kernel.h"
#include "harness/program/console.h"
#include "harness/program/json.h"
#include "harness/program/numbers.h"
#include "harness/program/output_file.h"
#include "harness/program/run_program.h"
#include "harness/program/verdict.h"
#include "harness/script/script.h"
#include "perfring/os/cpus.h"

namespace perfring::cli {
namespace {

struct DiffReport {
  const differential::CampaignOutcome& outcome;
  std::string kernel;  // the reference for the simulated kernel, such as "live kernel"
  std::string replay;  // the command that reproduces a difference
  double seconds;
  bool interrupted;
};

Conclusion conclusion_of(const DiffReport& report) {
  const differential::CampaignOutcome& outcome = report.outcome;
  return conclude(outcome.finding.has_value(), report.interrupted,
                  outcome.compared.steps == 0 ? "no step was compared" : "");
}

std::string diff_text(const DiffReport& report) {
  const differential::Compared& compared = report.outcome.compared;
  const std::string equal = fmt::format(
      "The simulated kernel equals the {} in everything that was compared", report.kernel);
  const bool differs = report.outcome.finding.has_value();
  return (differs ? differential::explain(*report.outcome.finding, report.kernel) +
                        "  replay: " + report.replay + "\n"
                  : "") +
         fmt::format(
             "{}, {}, {:.1f} s: {} accepted ({} of them too long for header.size), {} refused; {}, "
             "of which {} found an event ready\n"
             "{}\n",
             counted(compared.scripts, "script"), counted(compared.steps, "step"), report.seconds,
             counted(compared.accepted, "output"), grouped(compared.truncated),
             grouped(compared.refused), counted(compared.waits, "wait"), grouped(compared.ready),
             differs ? "VIOLATED: the kernels differ" : sentence(conclusion_of(report), equal));
}

std::string diff_json(const DiffReport& report) {
  const differential::Compared& compared = report.outcome.compared;
  Json json = to_json(conclusion_of(report));
  json["kernel"] = report.kernel;
  json["seconds"] = report.seconds;
  json["scripts"] = compared.scripts;
  json["steps"] = compared.steps;
  json["accepted"] = compared.accepted;
  json["refused"] = compared.refused;
  json["truncated"] = compared.truncated;
  json["waits"] = compared.waits;
  json["ready"] = compared.ready;
  if (report.outcome.finding) {
    const differential::FoundDifference& finding = *report.outcome.finding;
    json["violation"] = {{"step", finding.difference.step},
                         {"message", finding.difference.what},
                         {"script", script::to_text(finding.script)}};
    if (finding.seed) json["violation"]["seed"] = *finding.seed;
  }
  return dump(json);
}

using differential::CampaignOutcome;
using differential::Compared;
using differential::KernelTrace;
using differential::LiveReference;
using differential::RecordedReference;

constexpr std::size_t kTraceMax = 64 * kMiB;  // scripts, and what each of their steps showed
constexpr auto kReportInterval = std::chrono::milliseconds{500};

using Clock = std::chrono::steady_clock;

// An error that the user can correct. Every other exception comes from the system.
struct Refused : std::runtime_error {
  using runtime_error::runtime_error;
};

template <class T>
T or_refuse(std::expected<T, std::string> result) {
  if (!result) throw Refused{result.error()};
  if constexpr (!std::is_void_v<T>) return *std::move(result);
}

script::Script read_script(const std::string& path) {
  const std::string text = or_refuse(read_input("--script", path, script::kFileMax));
  auto script = script::parse_script(
      text, [](const script::Script& so_far) { return differential::why_not_live(so_far); });
  if (!script) throw Refused{fmt::format("--script: {}: {}", in_quotes(path), script.error())};
  if (script->steps.empty()) {
    throw Refused{fmt::format("--script: {} has no step: give at least one", in_quotes(path))};
  }
  return *std::move(script);
}

std::vector<KernelTrace> read_traces(const std::string& path) {
  const std::string text = or_refuse(read_input("--replay", path, kTraceMax));
  auto traces = differential::parse_traces(text);
  if (!traces) throw Refused{fmt::format("--replay: {}: {}", in_quotes(path), traces.error())};
  for (const KernelTrace& trace : *traces) {
    if (trace.little_endian == (std::endian::native == std::endian::little)) continue;
    throw Refused{
        fmt::format("--replay: {} was recorded on a machine with the other byte order: replay it "
                    "on such a machine",
                    in_quotes(path))};
  }
  return *std::move(traces);
}

// Returns the name of a trace, derived from its script's file: one word, without '#'.
std::string trace_name(std::string name) {
  std::ranges::replace_if(
      name, [](unsigned char c) { return std::isspace(c) != 0 || c == '#'; }, '_');
  return name;
}

int cpu_of(const DiffOptions& options) {
  const std::vector<std::uint32_t> cpus = usable_cpus();
  if (!options.cpu) return static_cast<int>(cpus.front());
  if (std::ranges::find(cpus, static_cast<std::uint32_t>(*options.cpu)) == cpus.end()) {
    throw Refused{fmt::format("--cpu: this process may not run on CPU {}: choose from {}",
                              *options.cpu, os::to_cpu_list(cpus))};
  }
  return *options.cpu;
}

// Creates the folder, but not its parents: a mistyped path must not create them.
void make_folder(const std::string& path) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) return;
  if (std::filesystem::exists(path, error)) {
    error = std::make_error_code(std::errc::not_a_directory);
  } else if (std::filesystem::create_directory(path, error)) {
    return;
  }
  throw Refused{
      fmt::format("--record: the folder {} cannot be created: {}: give one whose parent exists",
                  in_quotes(path), error.message())};
}

// The contents of the user's files, read first, while signals still end the program.
struct Inputs {
  explicit Inputs(const DiffOptions& options) {
    if (!options.script.empty()) script = read_script(options.script);
    for (const std::string& path : options.traces) {
      for (KernelTrace& trace : read_traces(path)) traces.emplace_back(path, std::move(trace));
    }
  }
  script::Script script;
  std::vector<std::pair<std::string, KernelTrace>> traces;  // each with its file's path
};

class DiffCommand {
 public:
  DiffCommand(const DiffOptions& options, const Inputs& inputs)
      : options_{options}, inputs_{inputs} {}

  int run() {
    if (!inputs_.traces.empty()) return replay();
    if (const auto why = live::why_no_live_kernel()) {
      return fail("the live kernel cannot be used.\n" + *why +
                  "\n"
                  "--replay FILE compares the simulated kernel with recorded traces instead");
    }
    campaign_ = options_.campaign;
    if (options_.script.empty()) all_ = campaign_.scripts;
    campaign_.cpu = cpu_of(options_);
    const live::OnCpu on_cpu{static_cast<std::uint32_t>(campaign_.cpu)};
    live::Emitter emitter = or_refuse(differential::make_emitter());
    if (!options_.record.empty()) return record_all(emitter);
    const auto stop = [this](const Compared& compared) { return stopped(compared); };
    if (!options_.script.empty()) {
      return report(differential::run_script(emitter, inputs_.script, campaign_.cpu, stop),
                    "live kernel");
    }
    return report(differential::run_campaign(emitter, campaign_, stop), "live kernel");
  }

 private:
  bool stopped(const Compared& compared) {
    if (Clock::now() - reported_ >= kReportInterval) {
      reported_ = Clock::now();
      line_.show(fmt::format("script {} of {}, {}, {:.0f} s", grouped(compared.scripts),
                             grouped(all_), counted(compared.steps, "step"), seconds()));
    }
    return stop_.requested();
  }

  double seconds() const { return std::chrono::duration<double>(Clock::now() - started_).count(); }

  int report(const CampaignOutcome& outcome, const std::string& kernel) {
    line_.clear();
    const DiffReport report{outcome, kernel, replay_, seconds(), stop_.requested()};
    return deliver(options_.json ? diff_json(report) : diff_text(report),
                   exit_code(conclusion_of(report).verdict));
  }

  // Compares the simulated kernel with recordings of real kernels.
  int replay() {
    CampaignOutcome outcome;
    all_ = inputs_.traces.size();
    for (std::size_t i = 0; i < all_ && !stop_.requested() && !outcome.finding; ++i) {
      const auto& [path, trace] = inputs_.traces[i];
      RecordedReference recorded{trace};
      auto difference = compare(trace.script, recorded, outcome.compared,
                                [&] { return stopped(outcome.compared); });
      if (!difference) continue;
      outcome.finding = {
          .seed = std::nullopt, .script = trace.script, .difference = *std::move(difference)};
      replay_ = replay_command("diff --replay " + shell_word(path),
                               trace.name.empty() ? "" : "its trace " + in_quotes(trace.name));
    }
    return report(outcome, "recorded kernel");
  }

  std::string recorded(live::Emitter& emitter, const std::string& name,
                       const script::Script& script) const {
    LiveReference kernel{emitter, script.settings, campaign_.cpu};
    const KernelTrace trace = differential::record(trace_name(name), script, kernel, kernel.ring());
    const std::string release = os::read_line("/proc/sys/kernel/osrelease").value_or("?");
    return "# Recorded on Linux " + release + ".\n" + to_text(trace);
  }

  int record_all(live::Emitter& emitter) {
    const bool one = !options_.script.empty();
    const std::string named =
        options_.script == "-" ? "stdin" : std::filesystem::path{options_.script}.stem().string();
    if (options_.record == "-") {
      return deliver(recorded(emitter, named, inputs_.script), kHolds, "the trace");
    }
    make_folder(options_.record);
    std::uint64_t written = 0;
    std::string last;
    const auto write = [&](const std::string& name, const script::Script& of) {
      last = options_.record + "/" + name + ".trace";
      or_refuse(write_output("--record", last, recorded(emitter, name, of)));
      ++written;
    };
    if (one) write(named, inputs_.script);
    for (std::uint64_t i = 0; !one && i < campaign_.scripts && !stop_.requested(); ++i) {
      const std::uint64_t seed = campaign_.seed + i;
      write(fmt::format("seed-{}", seed), differential::script_of(seed, campaign_.steps_max));
    }
    const bool cut_short = !one && written < campaign_.scripts;
    return deliver(fmt::format("{} recorded in {}{}\nTo replay the last: {} diff --replay {}\n",
                               counted(written, "trace"), shell_word(options_.record),
                               cut_short ? " (interrupted before the rest)" : "", invocation(),
                               shell_word(last)),
                   cut_short ? kNotShown : kHolds);
  }

  const DiffOptions& options_;
  const Inputs& inputs_;
  const StopOnSignals stop_;
  differential::CampaignOptions campaign_;
  std::uint64_t all_ = 1;  // number of scripts or traces
  std::string replay_ = replay_command("diff --script FILE", "the script above, saved");
  const ProgressLine line_;
  const Clock::time_point started_ = Clock::now();
  Clock::time_point reported_ = started_;
};

}  // namespace

int run_command(const DiffOptions& options) {
  try {
    const Inputs inputs{options};
    return DiffCommand{options, inputs}.run();
  } catch (const Refused& refused) {
    return fail(refused.what());
  }
}

}  // namespace perfring::cli
