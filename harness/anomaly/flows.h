#ifndef HARNESS_ANOMALY_FLOWS_H_
#define HARNESS_ANOMALY_FLOWS_H_

// The flows of the library: what a tool does with it, from beginning to end.

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
using Told = std::expected<Account, std::string>;

// A flow that is ready to run. What it was prepared with lives in the functions, and is not counted
// as left.
struct Prepared {
  std::function<Told()> run;
  // What the run left elsewhere than in this process: entries of the map; empty if nothing.
  std::function<std::string()> left = [] { return std::string{}; };
};

struct Flow {
  const char* name;
  // Throws std::exception where this machine, or this user, cannot have it.
  Prepared (*prepare)(std::span<const std::string> arguments);
};

std::span<const Flow> ring_flows();
std::span<const Flow> event_flows();
// Faulty ones, which the campaign must find.
std::span<const Flow> planted_flows();

// While one lives, nothing is made to fail: for what a flow does in the place of another program,
// as output.
class Outside {
 public:
  Outside();
  ~Outside();
  Outside(const Outside&) = delete;
  Outside& operator=(const Outside&) = delete;
};

// What the error says, both ways, in one line.
template <class Error>
std::unexpected<std::string> told(const Error& error) {
  return std::unexpected(error.message() + " | " + error.explain());
}

}  // namespace perfring::anomaly

#endif  // HARNESS_ANOMALY_FLOWS_H_
