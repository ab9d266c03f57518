#include "harness/cli/live_options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <optional>

#include "perfring/os/cpus.h"
#include "perfring/os/syscalls.h"
#include "perfring/ring/ring.h"

namespace perfring::cli {
namespace {

constexpr double kSecondsMax = 86400;

// The whole text as a number, or nothing.
template <class T>
std::optional<T> number(std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::unexpected<std::string> refused(std::string_view text, const std::string& accepted) {
  return std::unexpected(fmt::format("'{}' is not accepted: give {}", text, accepted));
}

}  // namespace

Parsed<live::PayloadRange> parse_payload(std::string_view text) {
  const std::size_t dash = text.find('-');
  const auto min = number<std::uint32_t>(text.substr(0, dash));
  const auto max =
      dash == std::string_view::npos ? min : number<std::uint32_t>(text.substr(dash + 1));
  if (!min || !max || *min > *max || *min < GENERATOR_PAYLOAD_MIN || *max > GENERATOR_PAYLOAD_MAX) {
    return refused(text, fmt::format("a size from {} to {} bytes, or a range of sizes such as "
                                     "8-1024",
                                     +GENERATOR_PAYLOAD_MIN, +GENERATOR_PAYLOAD_MAX));
  }
  return live::PayloadRange{*min, *max};
}

Parsed<std::vector<std::uint32_t>> parse_cpus(std::string_view text) {
  const auto online = os::online_cpus();
  if (!online) {
    return std::unexpected(
        fmt::format("'{}' is not accepted: which CPUs are online is not known.\n{}", text,
                    online.error().explain()));
  }
  const std::string accepted =
      "online CPUs, such as 0 or 0-2,5 (online CPUs: " + os::to_cpu_list(*online) + ")";
  auto cpus = os::parse_cpu_list(text);
  if (!cpus) return refused(text, accepted);
  std::ranges::sort(*cpus);
  const auto repeated = std::ranges::unique(*cpus);
  cpus->erase(repeated.begin(), repeated.end());
  for (const std::uint32_t cpu : *cpus) {
    if (std::ranges::find(*online, cpu) == online->end()) return refused(text, accepted);
  }
  return *cpus;
}

Parsed<std::size_t> parse_pages(std::string_view text) {
  const std::size_t most = Ring<>::kSizeMax / os::page_size();
  const auto pages = number<std::size_t>(text);
  if (!pages || !std::has_single_bit(*pages) || *pages > most) {
    return refused(text, fmt::format("a power of two from 1 to {}: data pages of {} bytes for each "
                                     "ring",
                                     most, os::page_size()));
  }
  return *pages;
}

Parsed<double> parse_seconds(std::string_view text) {
  const auto seconds = number<double>(text);
  if (!seconds || !(*seconds > 0) || *seconds > kSecondsMax) {
    return refused(text, fmt::format("a number of seconds above 0, up to {}", kSecondsMax));
  }
  return *seconds;
}

Parsed<std::int64_t> parse_watermark(std::string_view text) {
  const auto bytes = number<std::uint32_t>(text);
  if (!bytes || *bytes > Ring<>::kSizeMax) {
    return refused(text, "a number of bytes up to the ring's size, or 0 to wake at each record");
  }
  return *bytes;
}

}  // namespace perfring::cli
