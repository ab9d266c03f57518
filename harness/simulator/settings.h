#ifndef HARNESS_SIMULATOR_SETTINGS_H_
#define HARNESS_SIMULATOR_SETTINGS_H_

// The settings of a run, as lines of text or as a named scenario.

#include <cstdint>
#include <expected>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "harness/script/script.h"

namespace perfring::simulator {

inline constexpr std::uint64_t kPageSize = 4096;
inline constexpr std::uint64_t kIntactMax = 65516;  // largest payload that fits a record (K3)

// Values of `rings`.
inline constexpr std::uint64_t kOwnConsumers = 0, kInTurns = 1, kFullestFirst = 2, kMerged = 3;
// Values of `drain_with`: the function of lib that drains. fold() and for_each() never break off.
inline constexpr std::uint64_t kTryFold = 0, kFold = 1, kForEach = 2, kCursor = 3;

// Pages have 4096 bytes. "One in n" means a probability of 1/n, or never if n is 0.
struct RunSettings {
  std::uint64_t cpus = 2;
  script::Settings ring{.pages = 16};  // of each CPU: up to 4096 pages, raw data only
  std::uint64_t payload_min = 8;       // bytes
  std::uint64_t payload_max = 64;      // above 65516: multiples of 4, which kernels mishandle
  std::uint64_t burst_max = 1;         // outputs in a row, at least 1
  std::uint64_t idle_max = 0;          // steps between bursts
  std::uint64_t interrupts = 10;       // percent of a writer's scheduling points that interrupt it
  std::uint64_t interval_log2 = 8;  // log2 of the longest gap between scheduling points, in steps
  std::uint64_t timeout = 20000;    // longest wait of the consumer, in steps; 0: forever
  std::uint64_t callback_max = 0;   // longest callback, in steps
  std::uint64_t break_one_in = 0;   // callbacks
  std::uint64_t throw_one_in = 0;   // callbacks
  std::uint64_t pause_one_in = 0;   // waits of the consumer: pauses the ring
  std::uint64_t drain_with = kTryFold;
  std::uint64_t hostile = 0;  // 1: an adversary writes the ring instead of the kernel

  // 0: each CPU has its own consumer. Otherwise one consumer has all rings: 1: in turns, 2: fullest
  // first, 3: merged by the clock that each writer has read.
  std::uint64_t rings = kOwnConsumers;
  std::uint64_t limit = 0;         // events in one of its rounds; 0: no limit
  std::uint64_t delay_max = 0;     // steps from a writer's read of the clock to its output
  std::uint64_t stall_one_in = 0;  // outputs: the CPU stalls for 8 such delays in between
  std::uint64_t skew_max = 0;      // ticks by which a CPU's clock may be slow
  std::uint64_t clock_tick = 1;    // steps per tick
  std::uint64_t slack = 0;         // of the merge, in ticks
  std::uint64_t latency = 0;  // steps: WakeupChoice switches wakeups by it; 0: wake for each record
  std::uint64_t hotplug = 0;  // approximate steps between two hotplug changes; 0: none
  std::uint64_t flush_one_in = 0;  // rounds in turns: a complete flush follows; 0: none

  friend bool operator==(const RunSettings&, const RunSettings&) = default;
};

// Returns true if the kernel announces each record.
inline bool announces_each(const RunSettings& settings) {
  return settings.ring.wakeup == 1 && !settings.ring.watermark;
}

// A setting as a number: its name (the script's name for a setting of the ring) and its range.
struct SettingName {
  const char* name;
  // nullopt for wakeup_events or wakeup_watermark if the other one applies.
  std::optional<std::uint64_t> (*get)(const RunSettings& settings);
  void (*set)(RunSettings& settings, std::uint64_t value);
  std::uint64_t min;
  std::uint64_t max;
  // Returns why a value in this range is impossible, or "".
  std::string (*impossible)(std::uint64_t value) = nullptr;
};
std::span<const SettingName> setting_names();

struct Scenario {
  const char* name;
  const char* description;
  const char* lines;  // settings that differ from the defaults
};
std::span<const Scenario> scenarios();
// Returns nullptr if no scenario has this name.
const Scenario* find_scenario(std::string_view name);

// Parses lines of "name value". Later lines override earlier ones, # begins a comment. An error
// names the line and the reason. `source` is the name of the text in errors.
std::expected<RunSettings, std::string> parse_settings(std::string_view text,
                                                       std::string_view source,
                                                       RunSettings base = {});

// Returns why these settings are impossible in combination, or "".
std::string impossible(const RunSettings& settings);

// Returns "name=value" for each setting that applies, or only for those that differ from `base`,
// separated by spaces.
std::string to_string(const RunSettings& settings, const RunSettings* base = nullptr);
inline std::string difference(const RunSettings& settings, const RunSettings& base) {
  return to_string(settings, &base);
}

}  // namespace perfring::simulator

#endif  // HARNESS_SIMULATOR_SETTINGS_H_
