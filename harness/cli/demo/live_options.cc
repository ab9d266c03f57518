#include "harness/cli/demo/live.h"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <utility>

#include "harness/live/bpf/generator.h"
#include "harness/program/numbers.h"
#include "harness/program/options.h"
#include "perfring/os/cpus.h"
#include "perfring/os/syscalls.h"
#include "perfring/ring/ring.h"

namespace perfring::cli {
namespace {

std::unexpected<std::string> refused(std::string_view text, const std::string& accepted) {
  return std::unexpected(not_accepted(text, accepted));
}

// Adds an option. `parse` converts its text into `target` or refuses it.
template <class T>
void add_option(CLI::App& app, const std::string& name, T& target,
                Parsed<T> (*parse)(std::string_view), const std::string& help,
                const std::string& type) {
  app.add_option_function<std::string>(
         name,
         [&target, parse, name](const std::string& text) {
           Parsed<T> parsed = parse(text);
           if (!parsed) throw CLI::ValidationError(name, parsed.error());
           target = *std::move(parsed);
         },
         help)
      ->type_name(type);
}

Parsed<LiveOrder> parse_order(std::string_view text) {
  if (text == "each") return LiveOrder::Each;
  if (text == "time") return LiveOrder::Time;
  if (text == "fullest") return LiveOrder::Fullest;
  return refused(text, "one of each, time, fullest");
}

}  // namespace

void declare(CLI::App& app, LiveOptions& options) {
  app.add_option("--seconds", options.seconds, "How long to run [5]")
      ->type_name("S")
      ->check(seconds());
  add_option(app, "--cpus", options.cpus, parse_cpus,
             "CPUs to generate on, such as 0 or 0-2,5 [every online CPU]", "LIST");
  add_option(app, "--payload", options.payload, parse_payload,
             "Bytes in each record, a size or a range [8-256]", "BYTES");
  app.add_option("--pages", options.pages, "Data pages of each ring, a power of two [256]")
      ->type_name("N")
      ->check(power_of_two_up_to(Ring<>::kSizeMax / os::page_size()));
  add_option(app, "--watermark", options.watermark, parse_watermark,
             "Bytes written between wakeups; 0 wakes at each record [a quarter of the ring]",
             "BYTES");
  add_option(app, "--order", options.order, parse_order,
             "Drain each ring separately, all merged by time, or the fullest first [each]",
             "each|time|fullest");
  app.add_option("--dump", options.dump,
                 "Write the first CPU's ring, as it is at the end of the run, to this file: "
                 "`perfring inspect FILE` explains it")
      ->type_name("FILE");
  app.add_flag("--simulated", options.simulated,
               "Drain the simulated kernel; without arguments, this is the fallback if the live "
               "one is not available");
  app.add_flag("--json", options.json, "Print the verdict as JSON");
}

std::string conflict(const LiveOptions& options) {
  if (options.simulated && options.order != LiveOrder::Each) {
    return "--order: cannot be combined with --simulated, whose rings are drained separately: "
           "leave out one of them";
  }
  if (!options.dump.empty() && options.order != LiveOrder::Each) {
    return "--dump: cannot be combined with --order: a RingSet owns the rings then: leave out one "
           "of them";
  }
  if (options.dump == "-") return "--dump: stdout has the verdict: give a file";
  const std::size_t ring = options.pages * os::page_size();
  if (options.watermark > static_cast<std::int64_t>(ring)) {
    return fmt::format(
        "--watermark: {} exceeds the ring of {} bytes: give at most that, or more "
        "--pages",
        options.watermark, ring);
  }
  // Header and raw size, padding, the 8 bytes that a ring never uses, and a LOST before the record.
  constexpr std::size_t kOverhead = 12 + 7 + 8 + 24;
  if (options.payload.max + kOverhead > ring) {
    return fmt::format(
        "--payload: a record of {} bytes does not fit a ring of {}: give at most "
        "{}, or more --pages",
        options.payload.max, ring, ring - kOverhead);
  }
  return {};
}

Parsed<live::PayloadRange> parse_payload(std::string_view text) {
  const std::size_t dash = text.find('-');
  const auto min = parse_number<std::uint32_t>(text.substr(0, dash));
  const auto max =
      dash == std::string_view::npos ? min : parse_number<std::uint32_t>(text.substr(dash + 1));
  if (!min || !max || *min > *max || *min < GENERATOR_PAYLOAD_MIN || *max > GENERATOR_PAYLOAD_MAX) {
    return refused(text, fmt::format("a size from {} to {} bytes, or a range of sizes such as "
                                     "8-1024",
                                     +GENERATOR_PAYLOAD_MIN, +GENERATOR_PAYLOAD_MAX));
  }
  return live::PayloadRange{*min, *max};
}

Parsed<std::vector<std::uint32_t>> parse_cpus(std::string_view text) {
  auto cpus = os::parse_cpu_list(text);
  if (!cpus) return refused(text, "CPUs such as 0 or 0-2,5");
  std::ranges::sort(*cpus);
  const auto repeated = std::ranges::unique(*cpus);
  cpus->erase(repeated.begin(), repeated.end());
  return *std::move(cpus);
}

Parsed<std::int64_t> parse_watermark(std::string_view text) {
  const auto bytes = parse_number<std::uint32_t>(text);
  if (!bytes || *bytes > Ring<>::kSizeMax) {
    return refused(text, "a number of bytes up to the ring's size, or 0 to wake at each record");
  }
  return *bytes;
}

Parsed<std::vector<std::uint32_t>> choose_cpus(const std::vector<std::uint32_t>& wanted,
                                               const std::vector<std::uint32_t>& there,
                                               std::string_view what) {
  for (const std::uint32_t cpu : wanted) {
    if (std::ranges::find(there, cpu) != there.end()) continue;
    return std::unexpected(
        fmt::format("--cpus: {} is not among the {}: {}", cpu, what, os::to_cpu_list(there)));
  }
  return wanted.empty() ? there : wanted;
}

}  // namespace perfring::cli
