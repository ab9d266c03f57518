#ifndef HARNESS_CLI_LIVE_OPTIONS_H_
#define HARNESS_CLI_LIVE_OPTIONS_H_

#include <cstddef>
#include <cstdint>
#include <expected>
#include <string>
#include <string_view>
#include <vector>

#include "harness/live/generator.h"

namespace CLI {
class App;
}

namespace perfring::cli {

// The options of a run of the demonstration.
struct LiveOptions {
  bool bare = false;  // not a single argument: the simulated kernel may take the live one's place
  double seconds = 5;
  std::vector<std::uint32_t> cpus = {};  // none: all that there are
  live::PayloadRange payload{8, 256};
  std::size_t pages = 256;
  // Bytes written between two wakeups; 0: each record wakes. None given: a quarter of the ring.
  std::int64_t watermark = -1;
  bool simulated = false;  // the simulated kernel, even if the live one can be used
  bool json = false;
};

void declare(CLI::App& app, LiveOptions& options);
// Why these values, each of them allowed, cannot be combined; empty if they can.
std::string conflict(const LiveOptions& options);

// Parsers of option texts; the error says what is accepted.
template <class T>
using Parsed = std::expected<T, std::string>;

Parsed<live::PayloadRange> parse_payload(std::string_view text);       // "8", "8-1024"
Parsed<std::vector<std::uint32_t>> parse_cpus(std::string_view text);  // "0", "0-2,5"
Parsed<std::int64_t> parse_watermark(std::string_view text);

// `wanted`, or all of `there` if none is. An error names the first that is not there; `what` says
// what they are.
Parsed<std::vector<std::uint32_t>> choose_cpus(const std::vector<std::uint32_t>& wanted,
                                               const std::vector<std::uint32_t>& there,
                                               std::string_view what);

}  // namespace perfring::cli

#endif  // HARNESS_CLI_LIVE_OPTIONS_H_
