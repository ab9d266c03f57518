#include "harness/simulator/settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <optional>
#include <type_traits>
#include <utility>

#include "harness/kernel/perf_event.h"
#include "harness/oracle/payload.h"
#include "harness/program/numbers.h"

namespace perfring::simulator {
namespace {

constexpr std::uint64_t kAny = ~std::uint64_t{0};

// Returns a member of the settings, or of the settings of their ring.
template <auto kField>
constexpr auto& field(auto& run) {
  if constexpr (requires { run.*kField; }) return (run.*kField);
  if constexpr (requires { run.ring.*kField; }) return (run.ring.*kField);
}

template <auto kField>
constexpr SettingName of(const char* name, std::uint64_t min, std::uint64_t max,
                         std::string (*impossible)(std::uint64_t value) = nullptr) {
  return {name,
          [](const RunSettings& run) { return std::optional<std::uint64_t>{field<kField>(run)}; },
          [](RunSettings& run, std::uint64_t value) {
            auto& into = field<kField>(run);
            into = static_cast<std::remove_reference_t<decltype(into)>>(value);
          },
          min,
          max,
          impossible};
}

template <bool kWatermark>
constexpr SettingName of_wakeups(const char* name, std::uint64_t min, std::uint64_t max) {
  return {name,
          [](const RunSettings& run) {
            const bool counts = run.ring.watermark == kWatermark;
            return counts ? std::optional{run.ring.wakeup} : std::nullopt;
          },
          [](RunSettings& run, std::uint64_t value) {
            run.ring.watermark = kWatermark;
            run.ring.wakeup = value;
          },
          min, max};
}

constexpr SettingName of_word(const char* name, std::string (*impossible)(std::uint64_t value)) {
  return {name,
          [](const RunSettings& run) {
            return std::optional<std::uint64_t>{run.ring.word == kernel::Word::k32 ? 32 : 64};
          },
          [](RunSettings& run, std::uint64_t bits) {
            run.ring.word = bits == 32 ? kernel::Word::k32 : kernel::Word::k64;
          },
          32,
          64,
          impossible};
}

std::string impossible_pages(std::uint64_t pages) {
  if (std::has_single_bit(pages)) return {};
  return fmt::format("pages: {} is not a power of two: the kernel maps no such ring", pages);
}

std::string impossible_word(std::uint64_t bits) {
  if (bits == 32 || bits == 64) return {};
  return fmt::format("word: {} is neither 32 nor 64", bits);
}

std::string impossible_start(std::uint64_t start) {
  if (start % 8 == 0) return {};
  return fmt::format("start: {} is not a multiple of 8: no record can be there", start);
}

constexpr std::array kNames{
    of<&RunSettings::cpus>("cpus", 1, 64),
    of<&script::Settings::pages>("pages", 1, 4096, impossible_pages),
    of_word("word", impossible_word),
    of<&script::Settings::start>("start", 0, kAny, impossible_start),
    of<&RunSettings::payload_min>("payload_min", 0, 1 << 20),
    of<&RunSettings::payload_max>("payload_max", 0, 1 << 20),
    of<&RunSettings::burst_max>("burst_max", 1, 1 << 20),
    of<&RunSettings::idle_max>("idle_max", 0, 1 << 20),
    of<&RunSettings::interrupts>("interrupts", 0, 90),
    of<&RunSettings::interval_log2>("interval_log2", 0, 20),
    of_wakeups<false>("wakeup_events", 0, 1 << 20),
    of_wakeups<true>("wakeup_watermark", 1, 1 << 24),
    of<&RunSettings::timeout>("timeout", 0, 1 << 20),
    of<&RunSettings::callback_max>("callback_max", 0, 1 << 20),
    of<&RunSettings::break_one_in>("break_one_in", 0, 1 << 20),
    of<&RunSettings::throw_one_in>("throw_one_in", 0, 1 << 20),
    of<&RunSettings::pause_one_in>("pause_one_in", 0, 1 << 20),
    of<&RunSettings::drain_with>("drain_with", 0, kCursor),
    of<&RunSettings::hostile>("hostile", 0, 1),
    of<&script::Settings::before_5_2>("before_5_2", 0, 1),
    of<&RunSettings::rings>("rings", 0, kMerged),
    of<&RunSettings::limit>("limit", 0, 1 << 20),
    of<&RunSettings::delay_max>("delay_max", 0, 1 << 20),
    of<&RunSettings::stall_one_in>("stall_one_in", 0, 1 << 20),
    of<&RunSettings::skew_max>("skew_max", 0, 1 << 20),
    of<&RunSettings::clock_tick>("clock_tick", 1, 1 << 20),
    of<&RunSettings::slack>("slack", 0, 1 << 24),
    of<&RunSettings::latency>("latency", 0, 1 << 20),
    of<&RunSettings::hotplug>("hotplug", 0, 1 << 20),
    of<&RunSettings::flush_one_in>("flush_one_in", 0, 1 << 20),
};

// Most consumers break off now and then, and many throw. The consumer of `steady`, which is for
// speed, does neither.
constexpr std::array kScenarios{
    Scenario{"steady", "one writer for each CPU, and a consumer that keeps up",
             "cpus 1\npages 256\npayload_min 16\npayload_max 16\ninterval_log2 13\n"},
    Scenario{"bursts", "many records at once, then none for a while",
             "payload_min 16\nburst_max 200\nidle_max 4000\nbreak_one_in 40\nthrow_one_in 200\n"},
    Scenario{"full_ring", "a consumer too slow for its ring, which is full most of the time",
             "pages 1\npayload_min 16\ncallback_max 400\nbreak_one_in 40\nthrow_one_in 200\n"},
    Scenario{"one_byte_short", "a second record would fill the ring to the last byte",
             "pages 1\npayload_min 2036\npayload_max 2036\nbreak_one_in 10\n"},
    Scenario{"huge_records", "up to the largest payload that fits a record's size field",
             "pages 64\npayload_min 20000\npayload_max 65516\ninterval_log2 13\n"
             "break_one_in 10\nthrow_one_in 20\n"},
    Scenario{"oversize", "payloads too large for the size field, which the kernel writes anyway",
             "pages 512\npayload_min 8\npayload_max 200000\ninterval_log2 16\n"
             "break_one_in 10\n"},
    Scenario{"nested_storm", "nested interrupts in the middle of every output",
             "cpus 1\npages 2\ninterrupts 90\ninterval_log2 5\nbreak_one_in 40\n"
             "throw_one_in 200\n"},
    Scenario{"before_5_2",
             "an older kernel, whose data_head moves back for a moment at some interrupts",
             "cpus 1\npages 1\nbefore_5_2 1\npayload_min 16\npayload_max 40\ninterrupts 60\n"
             "interval_log2 3\nburst_max 20\nbreak_one_in 40\nthrow_one_in 200\n"},
    Scenario{"crossing_4gib", "the positions of a 32-bit kernel, which pass 2^32",
             "word 32\nstart 4294901760\npages 4\npayload_min 16\npayload_max "
             "200\nbreak_one_in 40\n"
             "throw_one_in 200\n"},
    Scenario{"pause", "a consumer that pauses the ring now and then",
             "pages 2\npause_one_in 4\nbreak_one_in 40\n"},
    Scenario{"watermark_starvation", "a watermark that most waits do not reach",
             "pages 4\nwakeup_watermark 12288\ntimeout 20000\nidle_max 2000\nbreak_one_in 40\n"},
    Scenario{"hostile", "a ring whose headers and positions are arbitrary at any moment",
             "pages 1\nhostile 1\ncallback_max 20\nbreak_one_in 40\nthrow_one_in 200\n"},
    Scenario{"turns",
             "one consumer of all rings, in turn, which waits for wakeups without a timeout",
             "rings 1\ncpus 3\npages 1\npayload_min 16\nburst_max 40\nidle_max 2000\ntimeout 0\n"
             "limit 20\nbreak_one_in 40\nthrow_one_in 200\n"},
    Scenario{"fullest", "one consumer of all rings, the fullest first, too slow for them",
             "rings 2\ncpus 4\npages 1\npayload_min 16\ncallback_max 200\nlimit 30\n"
             "break_one_in 40\nthrow_one_in 200\n"},
    Scenario{"merge", "all rings merged, with a slack that all writers keep, even nested ones",
             "rings 3\ncpus 3\npages 4\npayload_min 16\ninterrupts 5\nburst_max 20\n"
             "idle_max 4000\ndelay_max 100\nslack 100000\ntimeout 0\nbreak_one_in 40\n"
             "throw_one_in 200\n"},
    Scenario{"merge_stalls", "the same, with writers that stall for longer than the slack",
             "rings 3\ncpus 4\npages 2\npayload_min 16\nburst_max 20\nidle_max 2000\n"
             "delay_max 200\nstall_one_in 20\nskew_max 50\nclock_tick 4\nslack 100\nlimit 40\n"
             "break_one_in 40\nthrow_one_in 200\n"},
    Scenario{"switching", "a latency for which wakeups are switched on and off in turn",
             "rings 1\ncpus 2\npayload_min 700\npayload_max 1000\nburst_max 25\nidle_max 12000\n"
             "latency 300\ntimeout 100000\n"},
    Scenario{"hotplug", "all rings merged, while CPUs go offline and come back at any moment",
             "rings 3\ncpus 3\npages 1\npayload_min 16\nburst_max 20\nidle_max 1000\n"
             "delay_max 50\nslack 500\nhotplug 3000\nbreak_one_in 40\n"},
    Scenario{"flushes", "complete flushes while writers, and interrupts in them, are in progress",
             "rings 1\ncpus 2\npages 2\npayload_min 16\ninterrupts 10\nburst_max 20\n"
             "idle_max 1000\ninterval_log2 6\ndelay_max 50\ntimeout 200\nlimit 10\nflush_one_in 2\n"
             "break_one_in 40\nthrow_one_in 200\n"},
};

// Returns why one consumer of all rings cannot have these settings, or "".
std::string impossible_of_many(const RunSettings& settings) {
  const auto excluded = [&](const char* what, const char* why) {
    return fmt::format("rings: {} excludes {}: {}", settings.rings, what, why);
  };
  if (settings.rings == kOwnConsumers) {
    if (settings.latency == 0 && settings.hotplug == 0 && settings.flush_one_in == 0) return {};
    return "rings: 0 excludes latency, hotplug and flush_one_in, which need one consumer of all "
           "rings";
  }
  if (settings.hostile != 0) return excluded("hostile", "such a ring has no known clocks");
  if (settings.rings == kMerged) {
    if (settings.flush_one_in != 0)
      return excluded("flush_one_in", "a flush takes the rings in turn");
    if (settings.ring.before_5_2) {
      return excluded("before_5_2", "published records are expected to stay visible");
    }
    if (settings.payload_min < oracle::kSelfDescribing) {
      return excluded("a payload_min below 16", "the merge key is in the self-describing payload");
    }
    if (settings.payload_max > kIntactMax) {
      return excluded("a payload_max above 65516", "the kernel then overwrites other records");
    }
  }
  if (settings.latency == 0) return {};
  if (announces_each(settings) && settings.timeout != 0) return {};
  return "latency: it needs wakeup_events 1 and a timeout";
}

std::expected<std::uint64_t, std::string> number(std::string_view text, const SettingName& name) {
  const auto value = parse_number(text);
  if (!value || *value < name.min || *value > name.max) {
    return std::unexpected(fmt::format("{}: '{}' is not accepted: give a number from {} to {}",
                                       name.name, text, name.min, name.max));
  }
  if (const std::string why = name.impossible != nullptr ? name.impossible(*value) : "";
      !why.empty()) {
    return std::unexpected(why);
  }
  return *value;
}

std::expected<void, std::string> parse_line(std::string_view line, RunSettings& settings) {
  const std::size_t blank = line.find_first_of(" \t");
  const std::string_view word = line.substr(0, blank);
  const auto* const name = std::ranges::find_if(
      kNames, [&](const SettingName& candidate) { return candidate.name == word; });
  if (name == kNames.end()) {
    std::string known;
    for (const SettingName& candidate : kNames) known += fmt::format(" {}", candidate.name);
    return std::unexpected(fmt::format("'{}' is not a setting; the settings are{}", word, known));
  }
  if (blank == std::string_view::npos) {
    return std::unexpected(fmt::format("{} has no value", word));
  }
  const std::string_view text = script::without_comment(line.substr(blank));
  const auto value = number(text, *name);
  if (!value) return std::unexpected(value.error());
  name->set(settings, *value);
  return {};
}

}  // namespace

std::span<const SettingName> setting_names() {
  return kNames;
}

std::span<const Scenario> scenarios() {
  return kScenarios;
}

const Scenario* find_scenario(std::string_view name) {
  const auto* const found =
      std::ranges::find_if(kScenarios, [&](const Scenario& s) { return s.name == name; });
  return found == kScenarios.end() ? nullptr : found;
}

std::expected<RunSettings, std::string> parse_settings(std::string_view text,
                                                       std::string_view source, RunSettings base) {
  for (std::size_t line_number = 1; !text.empty(); ++line_number) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = script::without_comment(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.empty()) continue;
    if (const auto parsed = parse_line(line, base); !parsed) {
      return std::unexpected(fmt::format("{}, line {}: {}", source, line_number, parsed.error()));
    }
  }
  return base;
}

std::string impossible(const RunSettings& settings) {
  const script::Settings& of_ring = settings.ring;
  const std::uint64_t ring = of_ring.pages * kPageSize;
  for (const SettingName& name : kNames) {
    const auto value = name.get(settings);
    if (name.impossible == nullptr || !value) continue;
    if (std::string why = name.impossible(*value); !why.empty()) return why;
  }
  if (of_ring != script::Settings{.word = of_ring.word,
                                  .pages = of_ring.pages,
                                  .watermark = of_ring.watermark,
                                  .wakeup = of_ring.wakeup,
                                  .start = of_ring.start,
                                  .before_5_2 = of_ring.before_5_2}) {
    return "the ring: it must have one event, write forward, and have samples of raw data alone";
  }
  if (settings.payload_min > settings.payload_max) {
    return fmt::format("payload_min: {} exceeds payload_max, {}", settings.payload_min,
                       settings.payload_max);
  }
  // A LOST in front, and the 8 bytes that a ring never uses.
  constexpr std::uint64_t kBeside = 24 + 8;
  const std::uint64_t record = oracle::record_size(std::min(settings.payload_max, kIntactMax));
  if (record + kBeside > ring || settings.payload_max > ring) {
    return fmt::format("payload_max: {} bytes do not fit a ring of {}, {} bytes",
                       settings.payload_max, counted(of_ring.pages, "page"), ring);
  }
  if (of_ring.watermark && of_ring.wakeup > ring) {
    return fmt::format("wakeup_watermark: {} exceeds the ring of {} bytes", of_ring.wakeup, ring);
  }
  if (!announces_each(settings) && settings.timeout == 0) {
    return "timeout: 0 waits without end, so every record must wake the consumer: set "
           "wakeup_events to 1, or a timeout";
  }
  return impossible_of_many(settings);
}

std::string to_string(const RunSettings& settings, const RunSettings* base) {
  std::string text;
  for (const SettingName& name : kNames) {
    const auto value = name.get(settings);
    if (!value || (base != nullptr && value == name.get(*base))) continue;
    text += fmt::format("{}{}={}", text.empty() ? "" : " ", name.name, *value);
  }
  return text;
}

}  // namespace perfring::simulator
