#ifndef HARNESS_ORACLE_INVARIANT_H_
#define HARNESS_ORACLE_INVARIANT_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace perfring::oracle {

// The invariants that every run checks. Reports use these names.
enum class Invariant : std::uint8_t {
  no_invention,      // every delivered record was accepted
  no_loss,           // attempted = delivered + reported lost + still pending + never published
  order,             // records are delivered in the order of their reservations
  intact,            // records are delivered byte for byte
  once,              // no record is delivered twice
  bounded,           // a drain ends after at most ring size / 8 events
  in_ring,           // no access outside the ring
  tail_honest,       // data_tail moves by the records delivered, and only at the end of a drain
  no_early_release,  // no byte is overwritten before the consumer has finished with it
  awake,             // no waiter sleeps while its ring holds announced data
  merged,            // of several rings: delivered in key order, none too early or too late
  late,  // a record after a newer event is flagged late and counted, and took too long to write
};

constexpr const char* to_string(Invariant invariant) noexcept {
  switch (invariant) {
    case Invariant::no_invention:
      return "no_invention";
    case Invariant::no_loss:
      return "no_loss";
    case Invariant::order:
      return "order";
    case Invariant::intact:
      return "intact";
    case Invariant::once:
      return "once";
    case Invariant::bounded:
      return "bounded";
    case Invariant::in_ring:
      return "in_ring";
    case Invariant::tail_honest:
      return "tail_honest";
    case Invariant::no_early_release:
      return "no_early_release";
    case Invariant::awake:
      return "awake";
    case Invariant::merged:
      return "merged";
    case Invariant::late:
      return "late";
  }
  return "unknown invariant";
}

// All the invariants, in the order of the enum.
constexpr auto invariants() {
  constexpr std::size_t kCount = static_cast<std::size_t>(Invariant::late) + 1;
  static_assert(std::string_view{to_string(static_cast<Invariant>(kCount))} == "unknown invariant",
                "an invariant was added after the last");
  std::array<Invariant, kCount> all{};
  for (std::size_t i = 0; i < kCount; ++i) all[i] = static_cast<Invariant>(i);
  return all;
}

struct Violation {
  Invariant invariant;
  std::string message;  // with the numbers
};
// Returns "intact: sequence 3 differs at offset 8", the form that every report uses.
inline std::string to_string(const Violation& violation) {
  return to_string(violation.invariant) + (": " + violation.message);
}

// Keeps the first violation only: a later violation may be a consequence of the first.
class FirstViolation {
 public:
  void violate(Invariant invariant, std::string message) {
    if (!violation_) violation_ = Violation{invariant, std::move(message)};
  }
  const std::optional<Violation>& violation() const { return violation_; }

 private:
  std::optional<Violation> violation_;
};

}  // namespace perfring::oracle

#endif  // HARNESS_ORACLE_INVARIANT_H_
