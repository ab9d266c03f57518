#ifndef HARNESS_CONFORMANCE_PRODUCER_H_
#define HARNESS_CONFORMANCE_PRODUCER_H_

// Plays the producer's part of a case on a ring of the simulated kernel, turn by turn, and keeps
// the events that each turn must bring, from the writer's ledger. Nothing here reads the ring as a
// consumer does.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
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

  bool operator==(const Event&) const = default;
};

// The payload of an output says which one it is: its number and that number times an odd constant,
// in the machine's order, as far as there is room, and a byte of its own as filling.
std::vector<std::byte> payload_of(std::uint64_t output, std::uint64_t length);

class CaseProducer {
 public:
  // `of` and `ring` must outlive it. The ring may have other settings than the case asks for: more
  // pages, other fields in a sample.
  CaseProducer(const Case& of, rig::SimulatedRing& ring);
  CaseProducer(const CaseProducer&) = delete;
  CaseProducer& operator=(const CaseProducer&) = delete;

  // Carries out the steps up to `registered`, if there is one ahead.
  void while_registering();
  // Carries out the steps up to the consumer's next turn. Returns false after the last turn.
  bool turn();
  // The events that this turn must bring: those that the case states, otherwise those of the
  // ledger.
  std::vector<Event> expected() const;
  // The accepted records of this turn, and their LOSTs, in the order of the reservations.
  std::vector<Event> by_ledger() const;
  // The same, and all that came before it.
  std::span<const Event> expected_so_far() const { return so_far_; }
  bool is_over() const { return next_ == case_.parts.size(); }

 private:
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
    std::span<const script::Step> nested{};
    std::vector<bool> done{};
    std::uint64_t moment = 0;
    std::uint64_t output = 0;
    std::uint64_t length = 0;
    std::size_t written = 0;  // its place in written_
  };
  struct Cpu : kernel::HardwareCpu {
    explicit Cpu(CaseProducer& of) : producer{of} {}
    CaseProducer& producer;
    __u64 time = 1'000'000;
    __u64 clock() { return time += 1000; }
    void step() { producer.moment(); }
    void on_reserve(const kernel::perf_buffer&, __u64 position, std::size_t size) {
      producer.reserved(position, size);
    }
    void on_lost_record(const kernel::perf_buffer&, __u64 lost) { producer.reported(lost); }
  };

  void carry_out(std::span<const script::Step> steps);
  int output(std::span<const script::Step> step_and_nested);
  void nested(const std::uint64_t* moment);
  void moment();
  void reserved(std::uint64_t position, std::size_t size);
  void reported(std::uint64_t lost);
  void fill(const Fill& fill);
  void patch(const Patch& patch);
  void store(std::uint64_t position, std::uint64_t value, std::size_t size);
  Event sample(std::uint64_t output) const;
  Frame& frame() { return frames_[depth_ - 1]; }

  const Case& case_;
  rig::SimulatedRing& ring_;
  Cpu cpu_{*this};
  std::size_t next_ = 0;  // of the case's parts
  const Drain* drain_ = nullptr;
  std::array<Frame, script::kDepthMax + 2> frames_;
  std::size_t depth_ = 0;
  std::vector<std::uint64_t> lengths_;  // of the outputs so far
  std::vector<Written> written_;
  std::size_t turn_from_ = 0;  // in written_
  std::vector<Event> so_far_;
};

}  // namespace perfring::conformance

#endif  // HARNESS_CONFORMANCE_PRODUCER_H_
