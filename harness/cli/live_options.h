#ifndef PERFRING_HARNESS_CLI_LIVE_OPTIONS_H_
#define PERFRING_HARNESS_CLI_LIVE_OPTIONS_H_

#include <cstddef>
#include <cstdint>
#include <expected>
#include <string>
#include <string_view>
#include <vector>

#include "harness/live/generator.h"

namespace perfring::cli {

// What a run on the live kernel is told.
struct LiveOptions {
  double seconds = 5;
  std::vector<std::uint32_t> cpus;  // none: every online CPU
  live::PayloadRange payload{8, 256};
  std::size_t pages = 256;
  // Bytes written between two wakeups; 0: each record wakes. None given: a quarter of the ring.
  std::int64_t watermark = -1;
  bool simulated = false;  // the simulated kernel, even if the live one can be used
  bool json = false;
};

// Parsers of option texts; the error says what is accepted.
template <class T>
using Parsed = std::expected<T, std::string>;

Parsed<live::PayloadRange> parse_payload(std::string_view text);       // "8", "8-1024"
Parsed<std::vector<std::uint32_t>> parse_cpus(std::string_view text);  // "0", "0-2,5", all online
Parsed<std::size_t> parse_pages(std::string_view text);                // a power of two
Parsed<double> parse_seconds(std::string_view text);
Parsed<std::int64_t> parse_watermark(std::string_view text);

}  // namespace perfring::cli

#endif  // PERFRING_HARNESS_CLI_LIVE_OPTIONS_H_
