#ifndef HARNESS_ANOMALY_FLOWS_H_
#define HARNESS_ANOMALY_FLOWS_H_

// The flows of the library: each does what a tool does with the library, from beginning to end.

#include <cstdint>
#include <expected>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace perfring::anomaly {

struct Account {
  std::uint64_t attempted = 0;
  std::uint64_t delivered = 0;
  std::uint64_t lost = 0;
};

// An account, or the library's error.
using FlowResult = std::expected<Account, std::string>;

// A flow that is ready to run. The functions own everything that was prepared, so that it does not
// count as left over.
struct Prepared {
  std::function<FlowResult()> run;
  // Returns what the run left outside this process (map entries), or "".
  std::function<std::string()> left = [] { return std::string{}; };
};

struct Flow {
  const char* name;
  // Throws std::exception if this machine, or this user, cannot run the flow.
  Prepared (*prepare)(std::span<const std::string> arguments);
};

std::span<const Flow> ring_flows();
std::span<const Flow> event_flows();
// Faulty flows, which the campaign must find.
std::span<const Flow> planted_flows();

// Suspends injection while it lives. For the steps that a flow performs on behalf of another
// program, such as output.
class Outside {
 public:
  Outside();
  ~Outside();
  Outside(const Outside&) = delete;
  Outside& operator=(const Outside&) = delete;
};

// Formats the error in one line: its message and its explanation.
template <class Error>
std::unexpected<std::string> failure(const Error& error) {
  return std::unexpected(error.message() + " | " + error.explain());
}

}  // namespace perfring::anomaly

#endif  // HARNESS_ANOMALY_FLOWS_H_
