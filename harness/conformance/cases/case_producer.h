#ifndef HARNESS_CONFORMANCE_CASES_CASE_PRODUCER_H_
#define HARNESS_CONFORMANCE_CASES_CASE_PRODUCER_H_

// Plays the producer's part of a case turn by turn, on rings of the simulated kernel or of the
// machine's own. Derives the events that each turn must deliver from the writer's ledger. Nothing
// here reads a ring as a consumer does.

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <variant>
#include <vector>

#include "harness/conformance/cases/cases.h"
#include "harness/kernel/cpu.h"
#include "harness/rig/simulated_ring.h"
#include "harness/script/script.h"

namespace perfring::conformance {

// An expected or a delivered event of a turn.
struct Event {
  Wanted::Kind kind = Wanted::Kind::Sample;
  std::uint64_t lost = 0;
  std::vector<std::byte> payload{};  // of a sample; a delivered one includes its padding
  std::uint64_t padding = 0;         // bytes after the payload, of any value
  bool damaged = false;              // of a Maybe: its own header is wrong

  bool operator==(const Event&) const = default;
};

// How a payload names its output, so that the consumer's text identifies it.
enum class Echo : std::uint8_t {
  Bytes,  // for consumers that print all bytes: two words (payload_of)
  Text,   // for those that print a dot for each non-ASCII byte: the words' digits
  Words,  // for those that print the second and third word: these two, after a word of 0 (P26)
};
// Returns a payload that identifies the output: output + 1 and its product with an odd constant, in
// the machine's byte order, as far as there is room, then a filling byte that depends on the
// output.
std::vector<std::byte> payload_of(std::uint64_t output, std::uint64_t length,
                                  Echo echo = Echo::Bytes);

// Returns the identity that distinguishes a CPU's ring, and its events' ids, from those of other
// CPUs.
rig::Identity identity_of_cpu(std::size_t cpu);

// The rings that a case asks for, one for each of its CPUs; nullptr for an absent CPU.
class CaseRings {
 public:
  explicit CaseRings(const Case& of);
  std::span<rig::SimulatedRing* const> all() const { return all_; }

 private:
  std::vector<std::unique_ptr<rig::SimulatedRing>> own_;
  std::vector<rig::SimulatedRing*> all_;
};

// A ring of the machine's own kernel, which carries out the producer's steps itself.
class LiveRing {
 public:
  virtual ~LiveRing() = default;
  virtual std::uint64_t sample_type() const = 0;
  // Returns the result of bpf_perf_event_output().
  virtual int output(std::span<const std::byte> payload) = 0;
  virtual void control(script::Action action) = 0;  // pauses, resumes, disables or enables
};

// A ring in which a case is played; a null pointer for an absent CPU.
using CaseRing = std::variant<rig::SimulatedRing*, LiveRing*>;

// The ring's samples have more fields than the case's, so that other records fit: the case cannot
// be played there.
struct CannotPlay : std::runtime_error {
  using runtime_error::runtime_error;
};

class CaseProducer {
 public:
  // `of` and the rings must outlive this object. `rings` has one for each of the case's CPUs. They
  // may have more pages than the case asks for, and other fields in a sample.
  // Precondition: if they are live, no part of the case is a Patch or a Hotplug, and no step is
  // nested.
  CaseProducer(const Case& of, std::span<const CaseRing> rings, Echo echo);
  CaseProducer(const Case& of, const CaseRings& rings);
  CaseProducer(const CaseProducer&) = delete;
  CaseProducer& operator=(const CaseProducer&) = delete;

  // Carries out the steps up to `registered`. Returns false if the case has none.
  bool play_registration();
  // Carries out the steps up to the consumer's next turn. Returns false after the last turn. Throws
  // CannotPlay.
  bool play_turn();
  // Carries out the steps that the case has for this place of the consumer's drain, if they are
  // next. They belong to the turn after it. Returns false if there are none.
  bool play_during(During::Place place);
  // Whether a record begins or ends at the position, of which the low 32 bits are compared.
  bool is_boundary(std::size_t cpu, std::uint32_t position) const;
  // Returns the position of the CPU's event of this number, by the ledger; nullopt if there is
  // none.
  std::optional<std::uint64_t> position_of(std::size_t cpu, std::size_t event) const;
  // Returns the events that this turn must deliver from the CPU's ring: the stated ones, else the
  // ledger's.
  std::vector<Event> expected(std::size_t cpu) const;
  // Returns the accepted records of this turn and their LOSTs, in the order of the reservations.
  std::vector<Event> events_by_ledger(std::size_t cpu) const;
  // Returns expected() of this turn and of all turns before it.
  const std::vector<Event>& expected_so_far(std::size_t cpu) const { return cpus_[cpu]->so_far; }
  bool has_expected() const;
  bool is_over() const { return next_ == case_.parts.size(); }
  // Whether all outputs were refused because the event is disabled, which the case does not ask
  // for.
  bool is_refused() const { return refused_ > 0 && refused_ == outputs_.size(); }

 private:
  // An attempted output.
  struct Output {
    std::uint64_t length = 0;
    std::size_t cpu = 0;
  };
  // An accepted output, in the order of the reservations.
  struct Written {
    std::uint64_t output = 0;
    std::uint64_t length = 0;
    std::uint64_t position = 0;  // of its sample; its LOST precedes it
    std::uint64_t lost_size = 0;
    std::uint64_t lost = 0;
    std::uint64_t size = 0;  // header.size
  };
  // An output in progress.
  struct Frame {
    std::uint64_t output = 0;
    std::uint64_t length = 0;
    std::size_t written = 0;  // index in Cpu::written
  };
  struct Cpu : kernel::HardwareCpu {
    Cpu(CaseProducer& of, std::size_t number, CaseRing on) : producer{of}, ring{on} {
      id = static_cast<int>(number);
    }
    std::uint64_t sample_type() const;
    CaseProducer& producer;
    rig::SimulatedRing& simulated() const { return *std::get<rig::SimulatedRing*>(ring); }
    LiveRing* live() const;  // or nullptr
    CaseRing ring;
    std::uint64_t unreported = 0;  // outputs that the live ring has lost since its last LOST
    std::vector<Written> written;
    std::size_t turn_from = 0;  // index in `written`
    std::vector<Event> so_far;
    __u64 time = 1'000'000;
    __u64 clock() { return time += 1000; }
    void step() {
      producer.active_steps_.pass_moment([this](bool, auto due) { producer.output(due); });
    }
    void on_reserve(const kernel::perf_buffer&, __u64 position, std::size_t size) {
      producer.note_reservation(position, size);
    }
    void on_lost_record(const kernel::perf_buffer&, __u64 lost) { producer.note_report(lost); }
  };

  void open_turn();
  void carry_out(std::span<const script::Step> steps);
  void control(script::Action action);
  int output(std::span<const script::Step> step_and_nested);
  int simulated_output(bool second, std::span<const std::byte> payload);
  int live_output(LiveRing& ring, std::span<const std::byte> payload);
  std::uint64_t sample_size();
  void note_reservation(std::uint64_t position, std::size_t size);
  void note_report(std::uint64_t lost);
  void fill(const Fill& fill);
  void patch(const Patch& patch);
  void play(const Part& part);
  bool has_other_fields() const;
  void check_stated() const;
  void store(std::uint64_t position, std::uint64_t value, std::size_t size);
  Event sample(std::uint64_t output) const;
  Frame& frame() { return frames_[active_steps_.depth() - 1]; }

  const Case& case_;
  const Echo echo_;
  std::vector<std::unique_ptr<Cpu>> cpus_;  // nullptr: absent
  Cpu* current_cpu_ = nullptr;              // the CPU on which the steps run
  std::size_t next_ = 0;                    // index in the case's parts
  std::uint64_t lap_ = 0;                   // within that part, if it is Laps
  const Drain* drain_ = nullptr;
  bool is_turn_open_ = true;  // records are written for the next turn
  script::ActiveSteps active_steps_;
  std::array<Frame, script::kDepthMax + 2> frames_;
  std::vector<Output> outputs_;  // all attempted
  std::size_t refused_ = 0;      // outputs that were refused, but not for want of room
};

}  // namespace perfring::conformance

#endif  // HARNESS_CONFORMANCE_CASES_CASE_PRODUCER_H_
