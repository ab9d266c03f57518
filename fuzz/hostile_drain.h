#ifndef FUZZ_HOSTILE_DRAIN_H_
#define FUZZ_HOSTILE_DRAIN_H_

// Drains a hostile ring until it is empty. Each drain must end, must read nothing
// outside [data_tail, data_head), and must move data_tail once, past the delivered records. If
// nothing writes to the ring meanwhile, each event must equal the reference consumer's.

#include <linux/perf_event.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <variant>

#include "fuzz/hostile_ring.h"
#include "fuzz/input.h"
#include "harness/oracle/drain_watch.h"
#include "harness/oracle/invariant.h"
#include "harness/rig/watched_cpu.h"
#include "perfring/control_flow.h"
#include "perfring/perf_event.h"
#include "perfring/ring/memory.h"
#include "perfring/ring/ring.h"
#include "perfring/testing/copied_events.h"
#include "perfring/testing/reference_drain.h"

namespace perfring::fuzz {

using rig::CheckedMemory;

// Fails with the name of an invariant, as every report prints it.
[[noreturn]] inline void fail(const oracle::Violation& violation) {
  fail(to_string(violation));
}
inline void expect(bool holds, oracle::Invariant invariant, const char* what) {
  if (!holds) fail({invariant, what});
}

// Counts a drain's accesses to the positions, and fails if it reads a byte that it may not read.
struct Accesses final : rig::MemoryObserver {
  oracle::Readable readable;
  unsigned head_reads = 0;
  unsigned tail_writes = 0;

  Accesses(const perf_event_mmap_page& page, Bytes data) : readable{&page, data} {}

  void on_head() override { ++head_reads; }
  void on_commit(SharedPosition) override { ++tail_writes; }
  void on_read(const std::byte* address, std::size_t size) override {
    expect(readable.holds(address, size), oracle::Invariant::in_ring,
           "a read outside [data_tail, data_head)");
  }
};

// R: the consumer; anything but Ring<M> only in the target's own test.
template <Memory M, class R = Ring<M>>
class HostileDrain {
 public:
  explicit HostileDrain(const HostileRing& hostile)
      : hostile_{hostile},
        memory_{HostileMemory::of(hostile.log2_pages)},
        watch_{written(memory_, hostile).page(), memory_.data()},
        accesses_{memory_.page(), memory_.data()},
        ring_{*R::over(memory_.page(), memory_.data())} {}
  ~HostileDrain() { memory_.wipe(hostile_); }
  HostileDrain(const HostileDrain&) = delete;
  HostileDrain& operator=(const HostileDrain&) = delete;

  void run() {
    for (std::size_t i = 0; i < hostile_.stop_count; ++i) drain(hostile_.stops[i]);
    drain({});
    if (hostile_.poke_count == 0)
      expect(!ring_.readable(), oracle::Invariant::bounded, "readable() after a complete drain");
  }

 private:
  struct Thrown {};

  static HostileMemory& written(HostileMemory& memory, const HostileRing& hostile) {
    memory.write(hostile);
    return memory;
  }

  void drain(const Stop& stop) {
    const perf_event_mmap_page& page = memory_.page();
    accesses_.readable.begin_drain();
    accesses_.head_reads = accesses_.tail_writes = 0;
    reference_.emplace(memory_.data(), page.data_tail, page.data_head);
    end_ = page.data_tail;
    events_ = 0;
    watch_.begin_drain();
    carry_out(stop);
    watch_.end_drain(accesses_.readable.available);
    if (watch_.violation()) fail(*watch_.violation());
    expect(accesses_.tail_writes == (accesses_.readable.available == 0 ? 0U : 1U),
           oracle::Invariant::tail_honest, "data_tail was written more than once, or not at all");
    // No fence follows a second read of data_head, so records that only it covers may not be there
    // yet.
    expect(accesses_.head_reads == 1, oracle::Invariant::no_invention,
           "data_head was not read exactly once");
    if (hostile_.poke_count != 0) return;
    expect(events_ == stop.event || !reference_->next(), oracle::Invariant::no_loss,
           "an event was not delivered");
    expect(page.data_tail == end_, oracle::Invariant::tail_honest,
           "data_tail is not the reference's");
  }

  // Drains by for_each(), fold() or try_fold().
  void carry_out(const Stop& stop) {
    if (stop.event == Stop{}.event) {
      if (hostile_.stop_count % 2 == 0) {
        return ring_.for_each([&](const PerfEvent& event) { visit(event); });
      }
      const auto count = [&](std::uint64_t events, const PerfEvent& event) {
        visit(event);
        return events + 1;
      };
      expect(ring_.fold(std::uint64_t{0}, count) == events_, "fold's result");
      return;
    }
    try {
      const auto flow = ring_.try_fold(Unit{}, [&](Unit, const PerfEvent& event) -> ControlFlow<> {
        visit(event);
        if (events_ < stop.event) return Continue{};
        if (stop.throws) throw Thrown{};
        return Break{};
      });
      expect(flow.is_break() == (events_ == stop.event), oracle::Invariant::once,
             "try_fold's result");
    } catch (const Thrown&) {
      expect(stop.throws && events_ == stop.event, "somebody else's exception");
    }
  }

  void visit(const PerfEvent& event) {
    ++events_;
    watch_.check_event(event);
    if (watch_.violation()) fail(*watch_.violation());
    if (hostile_.poke_count == 0) {
      compare(event, reference_->next());
      return;
    }
    for (std::size_t i = 0; i < hostile_.poke_count; ++i) {
      if (hostile_.pokes[i].event == total_events_) memory_.poke(hostile_.pokes[i]);
    }
    ++total_events_;
  }

  void compare(const PerfEvent& event, const std::optional<testing::ReferenceDrain::Place>& place) {
    using Kind = testing::CopiedEvent::Kind;
    if (!place) fail({oracle::Invariant::no_invention, "an event after the reference's last"});
    end_ = place->end;
    if (const auto* sample = std::get_if<Sample>(&event)) {
      expect(place->kind == Kind::Sample, oracle::Invariant::intact,
             "a Sample that the reference does not have");
      same(sample->head, sample->tail, *place);
    } else if (const auto* lost = std::get_if<Lost>(&event)) {
      expect(place->kind == Kind::Lost && lost->count == place->count, oracle::Invariant::intact,
             "a Lost that the reference does not have");
    } else {
      const auto& bad = std::get<Malformed>(event);
      expect(place->kind == Kind::Malformed && bad.defect == place->defect,
             oracle::Invariant::intact,
             "a Malformed that the reference does not have, or a different one");
      same(bad.head, bad.tail, *place);
    }
  }

  // Compares the place instead of the bytes.
  void same(Bytes head, Bytes tail, const testing::ReferenceDrain::Place& place) const {
    const auto from = static_cast<std::size_t>(place.at % memory_.data().size());
    const std::uint64_t before_end =
        std::min<std::uint64_t>(place.size, memory_.data().size() - from);
    expect(head.size() == before_end && tail.size() == place.size - before_end,
           oracle::Invariant::intact, "other sizes");
    expect(head.empty() || head.data() == memory_.data().data() + from, oracle::Invariant::intact,
           "another place");
  }

  const HostileRing& hostile_;
  HostileMemory& memory_;
  oracle::DrainWatch watch_;
  Accesses accesses_;
  const rig::ObserverScope observing_{accesses_};
  R ring_;
  std::optional<testing::ReferenceDrain> reference_;
  std::uint64_t end_ = 0;     // the reference's data_tail
  std::uint64_t events_ = 0;  // in this drain
  unsigned total_events_ = 0;
};

}  // namespace perfring::fuzz

#endif  // FUZZ_HOSTILE_DRAIN_H_
