#ifndef HARNESS_SIMULATOR_SIMULATED_CONSUMER_H_
#define HARNESS_SIMULATOR_SIMULATED_CONSUMER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include "harness/simulator/settings.h"
#include "harness/simulator/site.h"
#include "perfring/control_flow.h"
#include "perfring/perf_event.h"
#include "perfring/ring/hardware_memory.h"
#include "perfring/ring/memory.h"
#include "perfring/ring/ring.h"
#include "perfring/testing/ring_over_cursor.h"

namespace perfring::simulator {

// The Memory policy of a simulated consumer: other tasks may run before any access, and each access
// is checked. `site` is the running consumer's; step() restores it after others have run.
// (CheckedMemory in harness/rig only observes: there, scripts say what happens between two steps.)
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
    site->drains().note_head(value);
    return value;
  }
  static void write_once(SharedPosition& field, SharedPosition value) {
    step();
    HardwareMemory::write_once(field, value);
  }
  static void fence_after_read_of(const SharedPosition&) {}
  static void fence_before_write_of(const SharedPosition&) {}

  static void note_read(const std::byte* address, std::size_t size) {
    site->check_read(address, size);
  }
  template <class T>
  static T read(const std::byte* address) {
    step();
    note_read(address, sizeof(T));
    return HardwareMemory::read<T>(address);
  }
};

static_assert(Memory<SimulatedMemory>);

// What a consumer's callback throws.
struct Thrown {};

// Drains a Site's ring.
class AnyDrain {
 public:
  // Returns false to break off.
  using Visit = std::function<bool(const PerfEvent&)>;

  virtual ~AnyDrain() = default;
  virtual bool readable() const = 0;
  // Passes each event to `visit`, until `visit` returns false if the drain function that the
  // settings name can break off.
  virtual void drain(const Visit& visit) = 0;
};

// Drains with lib's Ring, or with a faulty consumer that has the same interface; or with lib's
// Cursor if the settings say so.
template <class R = Ring<SimulatedMemory>>
class RingDrain final : public AnyDrain {
 public:
  explicit RingDrain(Site& site)
      : ring_{*R::over(site.page(), site.data())},
        cursor_{*testing::CursorConsumer<R>::over(site.page(), site.data())},
        drain_with_{site.world().settings.drain_with} {}

  bool readable() const override { return ring_.readable(); }

  void drain(const Visit& visit) override {
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
  testing::CursorConsumer<R> cursor_;
  const std::uint64_t drain_with_;
};

// Consumes a Site's ring as the documentation recommends: drains first, then repeatedly waits and
// drains until nothing is readable.
class Consumer {
 public:
  Consumer(Site& site, std::unique_ptr<AnyDrain> drain);
  void run();

 private:
  void drain_until_empty();
  void drain_once();
  bool visit(const PerfEvent& event);
  bool handle_event(const PerfEvent& event);
  void dwell(const PerfEvent& event);
  void pause_sometimes();
  void enter() { SimulatedMemory::site = &site_; }

  Site& site_;
  const std::unique_ptr<AnyDrain> drain_;
  const bool can_break_off_;
  const bool may_never_be_empty_;  // a hostile ring
  const std::uint64_t timeout_;
  bool over_ = false;     // the callback broke this drain off
  bool stopped_ = false;  // the callback broke off, or threw
};

}  // namespace perfring::simulator

#endif  // HARNESS_SIMULATOR_SIMULATED_CONSUMER_H_
