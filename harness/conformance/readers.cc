// The output of programs, as events.

#include <nlohmann/json.hpp>

#include "harness/conformance/subjects.h"
#include "harness/conformance/supervisor.h"
#include "harness/program/console.h"

namespace perfring::conformance {

std::expected<std::vector<Event>, std::string> read_lines(const std::string& out) {
  auto printed = parse_printed(out);
  if (!printed) return std::unexpected(printed.error());
  return std::move(printed->events);
}

// bpftool passes on a record of another type, without data. That counts as an error reported.
std::expected<std::vector<Event>, std::string> read_bpftool(const std::string& out) {
  std::vector<Event> events;
  try {
    for (const auto& one : nlohmann::json::parse(out)) {
      Event event{.kind = Wanted::Kind::Bad};
      if (one.contains("lost")) {
        event = {.kind = Wanted::Kind::Lost, .lost = one.at("lost").at("count")};
      } else if (one.contains("data")) {
        event.kind = Wanted::Kind::Sample;
        for (const auto& byte : one.at("data")) {
          event.payload.push_back(static_cast<std::byte>(byte.get<std::uint8_t>()));
        }
      }
      events.push_back(std::move(event));
    }
  } catch (const std::exception& error) {
    return std::unexpected(one_line(error.what()));
  }
  return events;
}

}  // namespace perfring::conformance
