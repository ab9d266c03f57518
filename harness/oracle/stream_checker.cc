#include "harness/oracle/stream_checker.h"

#include <fmt/format.h>

#include <string>
#include <variant>

#include "harness/oracle/payload.h"

namespace perfring::oracle {

void StreamChecker::check_delivery(const PerfEvent& event) {
  watch_.check_event(event);
  if (violation()) return;
  if (const auto* given = std::get_if<Sample>(&event)) {
    sample(*given);
  } else if (const auto* lost = std::get_if<Lost>(&event)) {
    received_.lost += lost->count;
  } else {
    const auto& malformed = std::get<Malformed>(event);
    ++received_.malformed;
    violate(Invariant::intact,
            fmt::format("{} of {} bytes", to_string(malformed.defect), malformed.size()));
  }
}

void StreamChecker::sample(const Sample& sample) {
  const auto claim = claimed_payload(sample);
  if (!claim || claim->stream - first_stream_ >= next_.size()) {
    return violate(
        Invariant::no_invention,
        fmt::format("a sample of {} bytes, from a stream that does not write here", sample.size()));
  }
  if (!holds(sample, *claim)) {
    return violate(Invariant::intact, name(*claim) + " has wrong bytes");
  }
  std::uint64_t& next = next_[claim->stream - first_stream_];
  if (claim->sequence + 1 == next) {
    return violate(Invariant::once, name(*claim) + " was delivered again");
  }
  if (claim->sequence < next) {
    return violate(Invariant::order,
                   fmt::format("{} was delivered after sequence {}", name(*claim), next - 1));
  }
  missing_ += claim->sequence - next;
  next = claim->sequence + 1;
  ++received_.delivered;
  if (next_.size() == 1 && missing_ != received_.lost) {
    violate(Invariant::no_loss, fmt::format("{} were skipped before {}, but {} reported as "
                                            "lost",
                                            missing_, name(*claim), received_.lost));
  }
}

void StreamChecker::settle(const Totals& totals, std::uint64_t unreported) {
  if (violation()) return;
  if (received_.delivered > totals.accepted) {
    violate(Invariant::no_invention, fmt::format("{} delivered, but only {} accepted",
                                                 received_.delivered, totals.accepted));
  }
  if (received_.delivered != totals.accepted || received_.lost + unreported != totals.lost) {
    violate(
        Invariant::no_loss,
        fmt::format("{} accepted, but {} delivered; {} refused, but {} reported and {} not yet",
                    totals.accepted, received_.delivered, totals.lost, received_.lost, unreported));
  }
}

const std::optional<Violation>& StreamChecker::violation() const {
  const auto& own = FirstViolation::violation();
  return own ? own : watch_.violation();
}

}  // namespace perfring::oracle
