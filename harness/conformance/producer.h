#ifndef HARNESS_CONFORMANCE_PRODUCER_H_
#define HARNESS_CONFORMANCE_PRODUCER_H_

// Plays the producer's part of a case on rings of the simulated kernel, or of the machine's own,
// turn by turn, and keeps the events that each turn must bring, from the writer's ledger. Nothing
// here reads a ring as a consumer does.

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <vector>

#include "harness/conformance/cases.h"
#include "harness/kernel/cpu.h"
#include "harness/rig/simulated_ring.h"

namespace perfring::conformance {

// An event of a turn: wanted, or seen.
struct Event {
  Wanted::Kind kind = Wanted::Kind::Sample;
  std::uint64_t lost = 0;
  std::vector<std::byte> payload{};  // of a sample; seen: with its padding
  std::uint64_t padding = 0;         // bytes behind it, which may be any
  bool damaged = false;              // of one that may be found: its own header is wrong

  bool operator==(const Event&) const = default;
};

// The form in which a payload names its output, so that the consumer's text shows which it was.
enum class Echo : std::uint8_t {
  Bytes,  // it prints all bytes: two words (payload_of)
  Text,   // it prints a dot for each byte that is not ASCII: their digits
  Words,  // it prints the second and the third word: these two, behind one of 0 (P26)
};
// The payload of an output says which one it is: its number and that number times an odd constant,
// in the machine's order, as far as there is room, and a byte of its own as filling.
std::vector<std::byte> payload_of(std::uint64_t output, std::uint64_t length,
                                  Echo echo = Echo::Bytes);

// The identity that distinguishes a CPU's ring, and its events' ids, from the others'.
rig::Identity identity_on(std::size_t cpu);

// Rings as a case has them, for each of its CPUs; nullptr where that is absent.
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
  // Returns what bpf_perf_event_output() returned.
  virtual int output(std::span<const std::byte> payload) = 0;
  virtual void control(script::Action action) = 0;  // pauses, resumes, disables or enables
};

// In samples that have more fields than the case's, other records find room: the case cannot be
// played there.
struct CannotPlay : std::runtime_error {
  using runtime_error::runtime_error;
};

class CaseProducer {
 public:
  // `of` and `rings` must outlive it: one for each of the case's CPUs, nullptr where that is
  // absent. They may have other settings than the case asks for: more pages, other fields in a
  // sample.
  CaseProducer(const Case& of, std::span<rig::SimulatedRing* const> rings, Echo echo = Echo::Bytes);
  // Precondition: no part of the case is a Patch or a Hotplug, and no step is nested.
  CaseProducer(const Case& of, std::span<LiveRing* const> rings, Echo echo);
  CaseProducer(const CaseProducer&) = delete;
  CaseProducer& operator=(const CaseProducer&) = delete;

  // Carries out the steps up to `registered`. Returns whether there is one ahead.
  bool while_registering();
  // Carries out the steps up to the consumer's next turn. Returns false after the last turn. Throws
  // CannotPlay.
  bool turn();
  // The events that this turn must bring from the CPU's ring: those that the case states, otherwise
  // those of the ledger.
  std::vector<Event> expected(std::size_t cpu) const;
  // The accepted records of this turn, and their LOSTs, in the order of the reservations.
  std::vector<Event> by_ledger(std::size_t cpu) const;
  // The same, and all that came before it.
  const std::vector<Event>& expected_so_far(std::size_t cpu) const { return cpus_[cpu]->so_far; }
  bool expects_any() const;
  bool is_over() const { return next_ == case_.parts.size(); }
  // Whether all its outputs were refused because the event is disabled, which is not the case's.
  bool is_refused() const { return refused_ > 0 && refused_ == outputs_.size(); }

 private:
  // An output that was tried.
  struct Output {
    std::uint64_t length = 0;
    std::size_t cpu = 0;
  };
  // An output that was accepted, in the order of the reservations.
  struct Written {
    std::uint64_t output = 0;
    std::uint64_t length = 0;
    std::uint64_t position = 0;  // of its sample; its LOST is in front of it
    std::uint64_t lost_size = 0;
    std::uint64_t lost = 0;
    std::uint64_t size = 0;  // header.size
  };
  // An output under way.
  struct Frame {
    std::uint64_t output = 0;
    std::uint64_t length = 0;
    std::size_t written = 0;  // its place in Cpu::written
  };
  struct Cpu : kernel::HardwareCpu {
    Cpu(CaseProducer& of, std::size_t number) : producer{of} { id = static_cast<int>(number); }
    std::uint64_t sample_type() const;
    CaseProducer& producer;
    rig::SimulatedRing* ring = nullptr;  // one of these two
    LiveRing* live = nullptr;
    std::uint64_t unreported = 0;  // outputs that the live one has lost since its last LOST
    std::vector<Written> written;
    std::size_t turn_from = 0;  // in `written`
    std::vector<Event> so_far;
    __u64 time = 1'000'000;
    __u64 clock() { return time += 1000; }
    void step() {
      producer.under_way_.moment([this](bool, auto due) { producer.output(due); });
    }
    void on_reserve(const kernel::perf_buffer&, __u64 position, std::size_t size) {
      producer.reserved(position, size);
    }
    void on_lost_record(const kernel::perf_buffer&, __u64 lost) { producer.reported(lost); }
  };

  void carry_out(std::span<const script::Step> steps);
  void control(script::Action action);
  int output(std::span<const script::Step> step_and_nested);
  int live_output(std::span<const std::byte> payload);
  std::uint64_t sample_size();
  void reserved(std::uint64_t position, std::size_t size);
  void reported(std::uint64_t lost);
  void fill(const Fill& fill);
  void patch(const Patch& patch);
  void play(const Part& part);
  bool is_of_other_fields() const;
  void check_stated() const;
  void store(std::uint64_t position, std::uint64_t value, std::size_t size);
  Event sample(std::uint64_t output) const;
  Frame& frame() { return frames_[under_way_.depth() - 1]; }

  const Case& case_;
  const Echo echo_;
  std::vector<std::unique_ptr<Cpu>> cpus_;  // nullptr: absent
  Cpu* now_ = nullptr;                      // where the steps happen
  std::size_t next_ = 0;                    // of the case's parts
  std::uint64_t lap_ = 0;                   // of that part, if it is Laps
  const Drain* drain_ = nullptr;
  script::UnderWay under_way_;
  std::array<Frame, script::kDepthMax + 2> frames_;
  std::vector<Output> outputs_;  // so far
  std::size_t refused_ = 0;      // of them, not for want of room
};

}  // namespace perfring::conformance

#endif  // HARNESS_CONFORMANCE_PRODUCER_H_
