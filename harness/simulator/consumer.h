#ifndef HARNESS_SIMULATOR_CONSUMER_H_
#define HARNESS_SIMULATOR_CONSUMER_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

#include "harness/oracle/payload.h"
#include "harness/simulator/site.h"
#include "perfring/control_flow.h"
#include "perfring/ring/hardware_memory.h"
#include "perfring/ring/memory.h"
#include "perfring/ring/ring.h"
#include "perfring/testing/by_cursor.h"

namespace perfring::simulator {

// The Memory policy of a simulated consumer: others run before any access, and each access is
// checked. `site` is that of the running consumer: step() sets it again after others have run.
// (CheckedMemory of harness/rig only observes: scripts say what happens between two steps.)
struct SimulatedMemory {
  static inline constinit thread_local Site* site = nullptr;

  static void step() {
    Site& own = *site;
    own.consumer_step();
    site = &own;
  }

  static Position read_once(const SharedPosition& field) {
    step();
    const Position value = HardwareMemory::read_once(field);
    site->drains().saw_head(value);
    return value;
  }
  static void write_once(SharedPosition& field, SharedPosition value) {
    step();
    HardwareMemory::write_once(field, value);
  }
  static void fence_after_read_of(const SharedPosition&) {}
  static void fence_before_write_of(const SharedPosition&) {}

  static void sees_read(const std::byte* address, std::size_t size) { site->reads(address, size); }
  template <class T>
  static T read(const std::byte* address) {
    step();
    sees_read(address, sizeof(T));
    return HardwareMemory::read<T>(address);
  }
};

static_assert(Memory<SimulatedMemory>);

// A drain by lib's Ring, or by a faulty consumer, which has its interface; or by lib's Cursor, if
// the settings say so.
template <class R = Ring<SimulatedMemory>>
class RingDrain {
 public:
  explicit RingDrain(Site& site)
      : ring_{*R::over(site.page(), site.data())},
        cursor_{*testing::CursorBeside<R>::over(site.page(), site.data())},
        drain_with_{site.world().settings.drain_with} {}

  bool readable() const { return ring_.readable(); }

  // Passes each event to visit(const PerfEvent&) -> bool: until it returns false, where the
  // function that the settings name can break off.
  template <class Visit>
  void drain(Visit visit) {
    if (drain_with_ == kForEach) {
      return ring_.for_each([&](const PerfEvent& event) { static_cast<void>(visit(event)); });
    }
    if (drain_with_ == kFold) {
      return static_cast<void>(ring_.fold(Unit{}, [&](Unit, const PerfEvent& event) {
        static_cast<void>(visit(event));
        return Unit{};
      }));
    }
    const auto fold = [&visit](Unit, const PerfEvent& event) {
      using Flow = ControlFlow<Unit, Unit>;
      return visit(event) ? Flow{Continue{}} : Flow{Break{}};
    };
    static_cast<void>(drain_with_ == kCursor ? cursor_.try_fold(Unit{}, fold)
                                             : ring_.try_fold(Unit{}, fold));
  }

 private:
  R ring_;
  testing::CursorBeside<R> cursor_;
  const std::uint64_t drain_with_;
};

// Consumes a Site's ring as the documentation recommends: drains first, then waits, and drains
// until nothing is readable after each wait.
template <class Drain = RingDrain<>>
class Consumer {
 public:
  explicit Consumer(Site& site)
      : site_{site},
        drain_{site},
        can_break_off_{site.world().settings.drain_with == kTryFold ||
                       site.world().settings.drain_with == kCursor},
        may_never_be_empty_{site.world().settings.hostile != 0},
        timeout_{may_never_be_empty_ ? kHostilePause : site.world().settings.timeout} {}

  void run() {
    enter();
    drain_until_empty();
    while (!site_.world().consumers_end()) {
      site_.wait(timeout_);
      enter();
      pause_sometimes();
      drain_until_empty();
    }
    drain_until_empty();
  }

 private:
  struct Thrown {};
  static constexpr std::uint64_t kHostilePause = 50;
  static constexpr std::uint64_t kPauseMax = 2000;

  void enter() { SimulatedMemory::site = &site_; }

  void drain_until_empty() {
    for (;;) {
      const bool idle = site_.world().consumers_end();  // nobody writes any more
      drain_once();
      if (may_never_be_empty_ || site_.judge().violation() || !drain_.readable()) return;
      if (idle && !stopped_) break;
    }
    site_.judge().violate(oracle::Invariant::bounded,
                          "a drain of an idle ring has ended, and the ring is still readable");
  }

  void drain_once() {
    over_ = stopped_ = false;
    site_.drains().begins();
    try {
      drain_.drain([this](const PerfEvent& event) { return visit(event); });
    } catch (const Thrown&) {
      stopped_ = true;
    }
    stopped_ = stopped_ || over_;
    site_.drains().ends();
  }

  bool visit(const PerfEvent& event) {
    if (over_) {
      site_.judge().violate(oracle::Invariant::once,
                            "an event was delivered after the drain's last");
    }
    const bool goes_on = look(event);
    over_ = !goes_on && can_break_off_;
    return goes_on;
  }

  bool look(const PerfEvent& event) {
    const RunSettings& settings = site_.world().settings;
    site_.drains().delivered(event);
    if (site_.judge().violation()) return false;
    if (settings.callback_max != 0) dwell(event);
    Random& random = site_.world().scheduler.random();
    if (random.one_in(static_cast<std::uint32_t>(settings.throw_one_in))) throw Thrown{};
    return !random.one_in(static_cast<std::uint32_t>(settings.break_one_in));
  }

  // A slow callback: at its end the event must not have changed.
  void dwell(const PerfEvent& event) {
    const auto steps = site_.world().scheduler.random().between(
        0, static_cast<std::uint32_t>(site_.world().settings.callback_max));
    for (std::uint32_t i = 0; i < steps; ++i) SimulatedMemory::step();
    site_.judge().finished_with(event);
  }

  void pause_sometimes() {
    Random& random = site_.world().scheduler.random();
    if (!random.one_in(static_cast<std::uint32_t>(site_.world().settings.pause_one_in))) return;
    kernel::perf_event_pause_output(site_.event(), true);
    site_.consumer().sleep_until(site_.world().scheduler.now() + random.below(kPauseMax));
    kernel::perf_event_pause_output(site_.event(), false);
    site_.ledger().interrupted();  // its writer may have found it paused
    enter();
  }

  Site& site_;
  Drain drain_;
  const bool can_break_off_;
  const bool may_never_be_empty_;  // a hostile ring
  const std::uint64_t timeout_;
  bool over_ = false;     // the callback has broken this drain off
  bool stopped_ = false;  // or thrown
};

}  // namespace perfring::simulator

#endif  // HARNESS_SIMULATOR_CONSUMER_H_
