#ifndef HARNESS_CONFORMANCE_CASES_CASES_H_
#define HARNESS_CONFORMANCE_CASES_CASES_H_

// The cases of the conformance suite, parsed from cases.txt: a producer's script, the consumer's
// turns in it, and the right outcomes.

#include <cstdint>
#include <expected>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "harness/script/script.h"

namespace perfring::conformance {

// An outcome that is accepted in addition to the strict one.
enum class Accept : std::uint8_t { Silent, Errors, Stops, Guesses };
const char* to_string(Accept accept);
const char* reason(Accept accept);
std::span<const Accept> all_accepts();

// An event that a turn must deliver.
struct Wanted {
  enum class Kind : std::uint8_t { Sample, Lost, Bad, Maybe };
  Kind kind = Kind::Sample;
  std::uint64_t number = 0;            // number of the output, or the lost count
  std::optional<std::uint64_t> cut{};  // only this many bytes of the sample
};

// K6 concerns longer payloads.
inline constexpr std::uint64_t kNearlyOversize = 65500;

struct Fill {
  std::uint64_t bytes = 0;
};
struct Patch {
  enum class Field : std::uint8_t {
    Head,
    Type,
    Misc,
    Size,
    Raw,
    LostType,
    LostSize,
    LostCount,
  };
  Field field = Field::Head;
  std::uint64_t output = 0;
  std::uint64_t value = 0;  // stored in the field; for Head, added to data_head
};
struct Registered {};
// The steps that follow, up to the next part that is not one, happen while the consumer drains:
// after its first read of data_head, before its first store to data_tail, or after it. A consumer
// that is not watched finds their records at its next turn.
struct During {
  enum class Place : std::uint8_t { HeadRead, TailStore, TailStored };
  Place place = Place::HeadRead;
};
// The steps that follow run on this CPU, and write to its ring.
struct OnCpu {
  std::uint64_t cpu = 0;
};
// The current CPU goes offline, or comes back. Its event is dead once it has gone offline (K34).
struct Hotplug {
  bool online = false;
};
// `turns` times: an output of `bytes` bytes, then a drain. The expected events follow from the
// ledger.
struct Laps {
  std::uint64_t turns = 0;
  std::uint64_t bytes = 0;
};
struct Drain {
  bool stated = false;  // whether the case states the events; else they follow from the ledger
  std::vector<Wanted> wanted{};
};
using Part = std::variant<std::vector<script::Step>, Fill, Patch, Registered, During, OnCpu,
                          Hotplug, Laps, Drain>;

struct Case {
  std::string id;
  std::string title;
  std::uint64_t since = 1;
  bool reachable = false;            // a real kernel can write it
  bool exact = false;                // only in a ring of this size
  bool is_long = false;              // only for unmodified programs, and only if named
  std::uint64_t cpus = 1;            // each has a ring
  std::set<std::uint64_t> absent{};  // CPUs that are offline from the beginning
  std::vector<std::string> facts{};
  std::vector<Accept> accepts{};
  script::Settings settings{};
  std::vector<Part> parts{};
  std::string text{};  // its lines in cases.txt

  bool accepts_outcome(Accept accept) const;
  // Whether all records are as the kernel's own functions write them, with a header.size that fits.
  bool is_plain() const;
  // Whether the case has other wakeups than one per record.
  bool has_other_wakeups() const { return settings.watermark || settings.wakeup != 1; }
};

struct Suite {
  std::uint64_t version = 0;
  std::vector<Case> cases;
  std::vector<Case> long_cases;
};

// The error names the line and the reason.
std::expected<Suite, std::string> parse_suite(std::string_view text);
// Returns the suite of cases.txt, which is compiled into the program.
const Suite& suite();
// Returns nullptr if no case has this id.
const Case* find_case(std::string_view id);

}  // namespace perfring::conformance

#endif  // HARNESS_CONFORMANCE_CASES_CASES_H_
