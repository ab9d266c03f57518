// `differential`: the simulated kernel beside the live one, for as long as one likes.

#include <fmt/format.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <system_error>
#include <variant>
#include <vector>

#include "harness/differential/campaign.h"
#include "harness/differential/live_reference.h"
#include "harness/differential/options.h"
#include "harness/differential/trace.h"
#include "harness/live/live_kernel.h"
#include "harness/user_folder.h"
#include "perfring/os/cpus.h"

namespace perfring::differential {
namespace {

std::atomic<bool> stop_requested{false};

void on_signal(int) {
  stop_requested = true;
}

int fail(const std::string& message) {
  fmt::print(stderr, "differential: {}\n", message);
  return kUsageOrEnvironment;
}

std::string read_file(const std::string& path) {
  std::ifstream in{path};
  std::ostringstream text;
  text << in.rdbuf();
  if (!in) throw std::runtime_error{path + ": cannot be read"};
  return text.str();
}

script::Script read_script(const std::string& path) {
  auto script = script::parse_script(
      read_file(path), [](const script::Script& so_far) { return why_not_live(so_far); });
  if (!script) throw std::runtime_error{path + ": " + script.error()};
  return *std::move(script);
}

void record_to(const std::string& path, live::Emitter& emitter, const script::Script& script,
               int cpu) {
  LiveReference kernel{emitter, script.settings, cpu};
  const Trace trace = record(script, kernel, kernel.ring());
  std::ofstream out{path};
  const std::string release = os::read_line("/proc/sys/kernel/osrelease").value_or("?");
  out << "# Recorded on Linux " << release << ".\n" << to_text(trace);
  if (!out.flush()) throw std::runtime_error{path + ": cannot be written"};
}

int record_all(const Options& options, live::Emitter& emitter) {
  std::filesystem::create_directories(options.record);
  if (!options.script.empty()) {
    const std::string name = std::filesystem::path{options.script}.stem();
    record_to(options.record + "/" + name + ".trace", emitter, read_script(options.script),
              options.campaign.cpu);
    return kEqual;
  }
  for (std::uint64_t i = 0; i < options.campaign.scripts && !stop_requested; ++i) {
    const std::uint64_t seed = options.campaign.seed + i;
    record_to(fmt::format("{}/seed-{}.trace", options.record, seed), emitter,
              script_of(seed, options.campaign.steps_max), options.campaign.cpu);
  }
  return kEqual;
}

void print(const Options& options, const Outcome& outcome, double seconds) {
  const Tally& tally = outcome.tally;
  if (options.json) {
    nlohmann::ordered_json json{{"scripts", tally.scripts},     {"steps", tally.steps},
                                {"written", tally.written},     {"refused", tally.refused},
                                {"truncated", tally.truncated}, {"waits", tally.waits},
                                {"reports", tally.reports},     {"seconds", seconds},
                                {"equal", !outcome.finding},    {"stopped", stop_requested.load()}};
    if (outcome.finding) {
      json["seed"] = outcome.finding->seed;
      json["step"] = outcome.finding->difference.step;
      json["difference"] = outcome.finding->difference.what;
      json["script"] = script::to_text(outcome.finding->script);
    }
    fmt::print("{}\n", json.dump(2));
    return;
  }
  if (outcome.finding) fmt::print("{}", explain(*outcome.finding));
  fmt::print(
      "{} scripts, {} steps, {:.1f} s: {} outputs written ({} of them longer than header.size "
      "can say), {} refused; {} waits, of which {} reported{}\n{}\n",
      tally.scripts, tally.steps, seconds, tally.written, tally.truncated, tally.refused,
      tally.waits, tally.reports, stop_requested ? "; stopped early" : "",
      outcome.finding ? "The kernels differ."
                      : "The simulated kernel equals the live one in all that was compared.");
}

int run(const Options& options) {
  run_on_cpu(options.campaign.cpu);
  live::Emitter emitter = make_emitter();
  if (!options.record.empty()) return record_all(options, emitter);
  const auto started = std::chrono::steady_clock::now();
  const auto seconds = [&] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
  };
  const auto stop = [&](const Tally& tally) {
    if (tally.scripts % 1000 == 0 && tally.scripts != 0) {
      fmt::print(stderr, "{} scripts, {:.0f} s\n", tally.scripts, seconds());
    }
    return stop_requested.load();
  };
  const Outcome outcome = options.script.empty() ? run_campaign(emitter, options.campaign, stop)
                                                 : run_script(emitter, read_script(options.script),
                                                              options.campaign.cpu);
  print(options, outcome, seconds());
  return outcome.finding ? kDifferent : kEqual;
}

int parse_and_run(int argc, char** argv) {
  const auto online = os::online_cpus();
  const auto parsed = parse(argc, argv, online.value_or(std::vector<std::uint32_t>{}));
  const auto* const answer = std::get_if<Answer>(&parsed);
  // --help needs no CPU; of anything else, this is the reason.
  if (!online && (answer == nullptr || answer->exit_code != kEqual)) {
    return fail("which CPUs are online is not known.\n" + online.error().explain());
  }
  if (answer != nullptr) {
    fmt::print(answer->exit_code == kEqual ? stdout : stderr, "{}", answer->text);
    return answer->exit_code;
  }
  if (const auto why = live::why_no_live_kernel()) {
    return fail("the live kernel cannot be used.\n" + *why);
  }
  std::signal(SIGINT, on_signal);
  std::signal(SIGTERM, on_signal);
  try {
    return run(std::get<Options>(parsed));
  } catch (const std::exception& error) {
    return fail(error.what());
  }
}

}  // namespace
}  // namespace perfring::differential

int main(int argc, char** argv) {
  using namespace perfring::differential;
  perfring::enter_user_folder();
  const int code = parse_and_run(argc, argv);
  if (std::fflush(stdout) == 0) return code;
  return fail("what was found cannot be written: " + std::generic_category().message(errno));
}
