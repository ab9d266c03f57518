#include "harness/simulator/settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>

#include "harness/oracle/payload.h"
#include "harness/program/numbers.h"

namespace perfring::simulator {
namespace {

constexpr std::uint64_t kPageSize = 4096;
constexpr std::uint64_t kAny = ~std::uint64_t{0};

std::string impossible_pages(std::uint64_t pages) {
  if (std::has_single_bit(pages)) return {};
  return fmt::format("pages: {} is no power of two: the kernel maps no such ring", pages);
}

std::string impossible_word_bits(std::uint64_t bits) {
  if (bits == 32 || bits == 64) return {};
  return fmt::format("word_bits: {} is neither 32 nor 64", bits);
}

std::string impossible_start(std::uint64_t start) {
  if (start % 8 == 0) return {};
  return fmt::format("start: {} is no multiple of 8: no record can be there", start);
}

constexpr std::array kNames{
    SettingName{"cpus", &RunSettings::cpus, 1, 64},
    SettingName{"pages", &RunSettings::pages, 1, 4096, impossible_pages},
    SettingName{"word_bits", &RunSettings::word_bits, 32, 64, impossible_word_bits},
    SettingName{"start", &RunSettings::start, 0, kAny, impossible_start},
    SettingName{"payload_min", &RunSettings::payload_min, 0, 1 << 20},
    SettingName{"payload_max", &RunSettings::payload_max, 0, 1 << 20},
    SettingName{"burst_max", &RunSettings::burst_max, 1, 1 << 20},
    SettingName{"idle_max", &RunSettings::idle_max, 0, 1 << 20},
    SettingName{"interrupts", &RunSettings::interrupts, 0, 90},
    SettingName{"interval_log2", &RunSettings::interval_log2, 0, 20},
    SettingName{"wakeup_events", &RunSettings::wakeup_events, 0, 1 << 20},
    SettingName{"watermark", &RunSettings::watermark, 0, 1 << 24},
    SettingName{"timeout", &RunSettings::timeout, 0, 1 << 20},
    SettingName{"callback_max", &RunSettings::callback_max, 0, 1 << 20},
    SettingName{"break_one_in", &RunSettings::break_one_in, 0, 1 << 20},
    SettingName{"throw_one_in", &RunSettings::throw_one_in, 0, 1 << 20},
    SettingName{"pause_one_in", &RunSettings::pause_one_in, 0, 1 << 20},
    SettingName{"drain_with", &RunSettings::drain_with, 0, kCursor},
    SettingName{"hostile", &RunSettings::hostile, 0, 1},
    SettingName{"rings", &RunSettings::rings, 0, 3},
    SettingName{"limit", &RunSettings::limit, 0, 1 << 20},
    SettingName{"delay_max", &RunSettings::delay_max, 0, 1 << 20},
    SettingName{"stall_one_in", &RunSettings::stall_one_in, 0, 1 << 20},
    SettingName{"skew_max", &RunSettings::skew_max, 0, 1 << 20},
    SettingName{"clock_tick", &RunSettings::clock_tick, 1, 1 << 20},
    SettingName{"slack", &RunSettings::slack, 0, 1 << 24},
    SettingName{"latency", &RunSettings::latency, 0, 1 << 20},
    SettingName{"hotplug", &RunSettings::hotplug, 0, 1 << 20},
};

// Everybody breaks off, throws and is interrupted now and then, but for `steady`, which is for
// speed.
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
    Scenario{"oversize",
             "payloads too large for the size field, which the kernel writes all the "
             "same",
             "pages 512\npayload_min 8\npayload_max 200000\ninterval_log2 16\n"
             "break_one_in 10\n"},
    Scenario{"nested_storm", "interrupts in interrupts, in the midst of every output",
             "cpus 1\npages 2\ninterrupts 90\ninterval_log2 5\nbreak_one_in 40\n"
             "throw_one_in 200\n"},
    Scenario{"crossing_4gib", "positions of a 32-bit kernel that pass 2^32",
             "word_bits 32\nstart 4294901760\npages 4\npayload_min 16\npayload_max "
             "200\nbreak_one_in 40\n"
             "throw_one_in 200\n"},
    Scenario{"pause", "a consumer that pauses the ring now and then",
             "pages 2\npause_one_in 4\nbreak_one_in 40\n"},
    Scenario{"watermark_starvation", "a watermark that most of the waits never see",
             "pages 4\nwatermark 12288\ntimeout 20000\nidle_max 2000\nbreak_one_in 40\n"},
    Scenario{"hostile", "a ring whose headers and positions are anything, at any moment",
             "pages 1\nhostile 1\ncallback_max 20\nbreak_one_in 40\nthrow_one_in 200\n"},
    Scenario{"turns",
             "one consumer of all rings, in turns, which never waits for more than a wakeup",
             "rings 1\ncpus 3\npages 1\npayload_min 16\nburst_max 40\nidle_max 2000\ntimeout 0\n"
             "limit 20\nbreak_one_in 40\nthrow_one_in 200\n"},
    Scenario{"fullest", "one consumer of all rings, the fullest first, which is too slow for them",
             "rings 2\ncpus 4\npages 1\npayload_min 16\ncallback_max 200\nlimit 30\n"
             "break_one_in 40\nthrow_one_in 200\n"},
    Scenario{"merge", "all rings merged, with a slack that the writers keep, nested ones too",
             "rings 3\ncpus 3\npages 4\npayload_min 16\ninterrupts 5\nburst_max 20\n"
             "idle_max 4000\ndelay_max 100\nslack 100000\ntimeout 0\nbreak_one_in 40\n"
             "throw_one_in 200\n"},
    Scenario{"merge_stalls", "the same with writers that stall for longer than the slack",
             "rings 3\ncpus 4\npages 2\npayload_min 16\nburst_max 20\nidle_max 2000\n"
             "delay_max 200\nstall_one_in 20\nskew_max 50\nclock_tick 4\nslack 100\nlimit 40\n"
             "break_one_in 40\nthrow_one_in 200\n"},
    Scenario{"switching", "a latency for which wakeups are asked for and not asked for by turns",
             "rings 1\ncpus 2\npayload_min 700\npayload_max 1000\nburst_max 25\nidle_max 12000\n"
             "latency 300\ntimeout 100000\n"},
    Scenario{"hotplug", "CPUs that go and come back at any moment, merged",
             "rings 3\ncpus 3\npages 1\npayload_min 16\nburst_max 20\nidle_max 1000\n"
             "delay_max 50\nslack 500\nhotplug 3000\nbreak_one_in 40\n"},
};

// Settings that one consumer of all rings excludes.
std::string impossible_of_many(const RunSettings& settings) {
  const auto excluded = [&](const char* what, const char* why) {
    return fmt::format("rings: {} excludes {}: {}", settings.rings, what, why);
  };
  if (settings.rings == 0) {
    if (settings.latency == 0 && settings.hotplug == 0) return {};
    return "rings: 0 excludes latency and hotplug, which are for one consumer of all rings";
  }
  if (settings.hostile != 0) return excluded("hostile", "nothing is known of such a ring's clocks");
  if (settings.rings == 3) {
    if (settings.payload_min < oracle::kSelfDescribing) {
      return excluded("a payload_min below 16", "the key is that of a payload that names itself");
    }
    if (settings.payload_max > kIntactMax) {
      return excluded("a payload_max above 65516", "the kernel overwrites other records then");
    }
  }
  if (settings.latency == 0) return {};
  const bool wakes_each = settings.wakeup_events == 1 && settings.watermark == 0;
  if (wakes_each && settings.timeout != 0) return {};
  return "latency: it is for wakeup_events 1 without watermark, and a timeout";
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

std::string_view trim(std::string_view text) {
  constexpr const char* kBlank = " \t\r";
  const std::size_t first = text.find_first_not_of(kBlank);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlank) - first + 1);
}

std::expected<void, std::string> parse_line(std::string_view line, RunSettings& settings) {
  const std::size_t blank = line.find_first_of(" \t");
  const std::string_view word = line.substr(0, blank);
  const auto* const name = std::ranges::find_if(
      kNames, [&](const SettingName& candidate) { return candidate.name == word; });
  if (name == kNames.end()) {
    std::string known;
    for (const SettingName& candidate : kNames) known += fmt::format(" {}", candidate.name);
    return std::unexpected(fmt::format("'{}' is no setting; there are{}", word, known));
  }
  if (blank == std::string_view::npos) {
    return std::unexpected(fmt::format("{} has no value", word));
  }
  const auto value = number(trim(line.substr(blank)), *name);
  if (!value) return std::unexpected(value.error());
  settings.*name->field = *value;
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
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    line = trim(line.substr(0, line.find('#')));
    if (line.empty()) continue;
    if (const auto parsed = parse_line(line, base); !parsed) {
      return std::unexpected(fmt::format("{}, line {}: {}", source, line_number, parsed.error()));
    }
  }
  return base;
}

std::string impossible(const RunSettings& settings) {
  const std::uint64_t ring = settings.pages * kPageSize;
  for (const SettingName& name : kNames) {
    if (name.impossible == nullptr) continue;
    if (std::string why = name.impossible(settings.*name.field); !why.empty()) return why;
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
                       settings.payload_max, counted(settings.pages, "page"), ring);
  }
  if (settings.watermark > ring) {
    return fmt::format("watermark: {} exceeds the ring of {} bytes", settings.watermark, ring);
  }
  const bool tells_each = settings.wakeup_events == 1 && settings.watermark == 0;
  if (!tells_each && settings.timeout == 0) {
    return "timeout: 0 is for wakeup_events 1 without watermark: else what is not announced would "
           "be waited for in vain";
  }
  return impossible_of_many(settings);
}

std::string to_string(const RunSettings& settings) {
  std::string text;
  for (const SettingName& name : kNames) {
    text += fmt::format("{}{}={}", text.empty() ? "" : " ", name.name, settings.*name.field);
  }
  return text;
}

std::string difference(const RunSettings& settings, const RunSettings& base) {
  std::string text;
  for (const SettingName& name : kNames) {
    if (settings.*name.field == base.*name.field) continue;
    text += fmt::format("{}{}={}", text.empty() ? "" : " ", name.name, settings.*name.field);
  }
  return text;
}

}  // namespace perfring::simulator
