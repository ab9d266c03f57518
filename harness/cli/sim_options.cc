#include "harness/cli/sim_options.h"

#include <fmt/format.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <system_error>

namespace perfring::cli {
namespace {

using simulator::Settings;

template <class Named>
std::string names(std::span<const Named> all) {
  std::string text;
  for (const Named& named : all) text += fmt::format("{}{}", text.empty() ? "" : ", ", named.name);
  return text;
}

std::expected<Settings, std::string> read_scenario(const std::string& name) {
  if (const auto* const scenario = simulator::find_scenario(name)) {
    return simulator::parse_settings(scenario->lines, name);
  }
  std::error_code none;  // of a name too long for a file's, say
  if (!std::filesystem::exists(name, none)) {
    return std::unexpected(
        fmt::format("--scenario: '{}' is neither a file nor a scenario; there are {}", name,
                    names(simulator::scenarios())));
  }
  errno = 0;
  std::ifstream file{name};
  std::stringstream text;
  const bool folder = std::filesystem::is_directory(name);
  if (file && !folder && file.peek() != std::ifstream::traits_type::eof()) text << file.rdbuf();
  if (folder) errno = EISDIR;
  if (folder || !file.is_open() || file.bad() || text.fail()) {
    return std::unexpected(fmt::format("--scenario: {} cannot be read: {}", name,
                                       std::generic_category().message(errno)));
  }
  return simulator::parse_settings(text.str(), name);
}

// As one word of a shell's.
std::string quoted(const std::string& text) {
  constexpr const char* kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./=+:,@%";
  if (!text.empty() && text.find_first_not_of(kPlain) == std::string::npos) return text;
  std::string word = "'";
  for (const char each : text) {
    word += each == '\'' ? std::string{"'\\''"} : std::string(1, each);
  }
  return word + "'";
}

// "name=value" as a line of a scenario.
std::expected<Settings, std::string> with_setting(const std::string& set,
                                                  const Settings& settings) {
  const std::size_t equals = set.find('=');
  // One line, and all of it: a comment would be passed over.
  if (equals == std::string::npos || set.find_first_of("#\n") != std::string::npos) {
    return std::unexpected(fmt::format("--set: '{}' is not accepted: give NAME=VALUE", set));
  }
  std::string line = set;
  line[equals] = ' ';
  return simulator::parse_settings(line, "--set", settings);
}

}  // namespace

std::expected<SimPlan, std::string> plan_of(const SimOptions& options) {
  SimPlan sim{.plan = {.seed = options.seed, .steps = options.steps, .settings = {}},
              .scenario = options.scenario};
  if (!options.canary.empty()) {
    sim.canary = simulator::find_canary(options.canary);
    if (sim.canary == nullptr) {
      return std::unexpected(fmt::format("--canary: '{}' is none; there are {}", options.canary,
                                         names(simulator::canaries())));
    }
  }
  if (sim.scenario.empty()) sim.scenario = sim.canary != nullptr ? sim.canary->scenario : "steady";
  auto settings = read_scenario(sim.scenario);
  if (settings && sim.canary != nullptr && options.scenario.empty()) {
    settings = simulator::settings_of(*sim.canary);
  }
  if (!settings) return std::unexpected(settings.error());
  for (const std::string& set : options.sets) {
    settings = with_setting(set, *settings);
    if (!settings) return std::unexpected(settings.error());
  }
  if (options.cpus != 0) settings = with_setting(fmt::format("cpus={}", options.cpus), *settings);
  if (!settings) return std::unexpected("--cpus: " + settings.error());
  if (const std::string why = simulator::impossible(*settings); !why.empty()) {
    return std::unexpected(why);
  }
  sim.plan.settings = *settings;
  return sim;
}

std::string replay_line(const SimPlan& sim, const simulator::Plan& plan) {
  std::string line = fmt::format("perfring sim --seed {} --scenario {} --steps {}", plan.seed,
                                 quoted(sim.scenario), plan.steps);
  if (sim.canary != nullptr) line += fmt::format(" --canary {}", sim.canary->name);
  const std::string changed =
      simulator::difference(plan.settings, read_scenario(sim.scenario).value_or(Settings{}));
  for (std::size_t at = 0; at < changed.size();) {
    const std::size_t end = std::min(changed.find(' ', at), changed.size());
    line += " --set " + changed.substr(at, end - at);
    at = end + 1;
  }
  return line;
}

}  // namespace perfring::cli
