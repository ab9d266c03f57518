#ifndef HARNESS_SIMULATOR_SETTINGS_H_
#define HARNESS_SIMULATOR_SETTINGS_H_

// The settings of a run: as lines of text, or of a scenario, by its name.

#include <cstdint>
#include <expected>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "harness/script/script.h"

namespace perfring::simulator {

inline constexpr std::uint64_t kPageSize = 4096;
inline constexpr std::uint64_t kIntactMax = 65516;  // bytes of payload that a record holds (K3)

// Values of rings.
inline constexpr std::uint64_t kOwnConsumers = 0, kInTurns = 1, kFullestFirst = 2, kMerged = 3;
// Values of drain_with: the function of lib that drains. fold() and for_each() never break off.
inline constexpr std::uint64_t kTryFold = 0, kFold = 1, kForEach = 2, kCursor = 3;

// Pages are of 4096 bytes. "One in n": with a probability of 1/n; 0: never.
struct RunSettings {
  std::uint64_t cpus = 2;
  script::Settings ring{.pages = 16};  // each CPU's: up to 4096 pages, of raw data alone
  std::uint64_t payload_min = 8;       // bytes
  std::uint64_t payload_max = 64;      // above 65516: as kernels mishandle them; multiples of 4
  std::uint64_t burst_max = 1;         // outputs in a row, at least 1
  std::uint64_t idle_max = 0;          // steps between bursts
  std::uint64_t interrupts = 10;       // percent of what happens to a writer
  std::uint64_t interval_log2 = 8;  // log2 of the longest gap between scheduling points, in steps
  std::uint64_t timeout = 20000;    // steps that the consumer waits at the most; 0: for ever
  std::uint64_t callback_max = 0;   // steps that a callback takes
  std::uint64_t break_one_in = 0;   // callbacks
  std::uint64_t throw_one_in = 0;   // callbacks
  std::uint64_t pause_one_in = 0;   // of the consumer's waits: pauses the ring
  std::uint64_t drain_with = kTryFold;
  std::uint64_t hostile = 0;  // 1: an adversary writes the ring instead of the kernel

  // 0: each CPU has a consumer of its own. Otherwise one has all rings; 1: in turns, 2: the fullest
  // first, 3: merged by the clock that each writer has read.
  std::uint64_t rings = kOwnConsumers;
  std::uint64_t limit = 0;         // events of one of its rounds; 0: none
  std::uint64_t delay_max = 0;     // steps from a writer's clock to its output
  std::uint64_t stall_one_in = 0;  // outputs: their CPU stands still for 8 such delays in between
  std::uint64_t skew_max = 0;      // ticks by which a CPU's clock may be slow
  std::uint64_t clock_tick = 1;    // steps
  std::uint64_t slack = 0;         // of the merge, in ticks
  std::uint64_t latency = 0;  // steps: wakeups are chosen by it (WakeupChoice); 0: one for each
  std::uint64_t hotplug = 0;  // steps, about, between two CPUs that go or come back; 0: none
  std::uint64_t flush_one_in = 0;  // rounds in turns: a complete flush follows; 0: none

  friend bool operator==(const RunSettings&, const RunSettings&) = default;
};

// Whether the kernel announces each record.
inline bool announces_each(const RunSettings& settings) {
  return settings.ring.wakeup == 1 && !settings.ring.watermark;
}

// A setting as a number: its name, which is the script's if it is the ring's, and its range.
struct SettingName {
  const char* name;
  // nullopt for wakeup_events or wakeup_watermark, if the other one is in force.
  std::optional<std::uint64_t> (*get)(const RunSettings& settings);
  void (*set)(RunSettings& settings, std::uint64_t value);
  std::uint64_t min;
  std::uint64_t max;
  // Why a value in this range is impossible; empty if it is possible.
  std::string (*impossible)(std::uint64_t value) = nullptr;
};
std::span<const SettingName> setting_names();

struct Scenario {
  const char* name;
  const char* description;
  const char* lines;  // the settings that are not the default
};
std::span<const Scenario> scenarios();
// nullptr if no scenario has this name.
const Scenario* find_scenario(std::string_view name);

// Lines of "name value"; later lines override earlier ones, # begins a comment. An error names the
// line and the reason. `source` is the text's name in errors.
std::expected<RunSettings, std::string> parse_settings(std::string_view text,
                                                       std::string_view source,
                                                       RunSettings base = {});

// Why these settings are impossible together; empty if they are possible.
std::string impossible(const RunSettings& settings);

// "name=value" for each setting that counts, or for each of them that is not so in `base`, with a
// space between.
std::string to_string(const RunSettings& settings, const RunSettings* base = nullptr);
inline std::string difference(const RunSettings& settings, const RunSettings& base) {
  return to_string(settings, &base);
}

}  // namespace perfring::simulator

#endif  // HARNESS_SIMULATOR_SETTINGS_H_
