#ifndef PROPTESTS_WORLD_H_
#define PROPTESTS_WORLD_H_

// One ring, the simulated kernel at one end of it and a consumer at the other, and the oracle
// beside them. It carries out actions and says which invariant they have violated. What is expected
// comes from the oracle, which hears of every attempt from the producer's side.

#include <fmt/format.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "harness/kernel/bpf_output.h"
#include "harness/oracle/checker.h"
#include "perfring/ring/ring.h"
#include "perfring/ring/testing/seen.h"
#include "proptests/plan.h"
#include "proptests/simulated_ring.h"
#include "proptests/watch.h"

namespace perfring::proptests {

// `Cpu` derives from WatchedCpu; `Consumer` has what Ring has of over(), readable(), try_fold().
template <class Cpu = WatchedCpu, class Consumer = Ring<WatchedMemory>>
class World final : private Watcher {
 public:
  explicit World(const Settings& settings)
      : ring_{settings},
        ledger_{settings.size(), oracle::Ledger::Keep::Records, settings.start,
                settings.word == kernel::Word::k32 ? 32U : 64U},
        checker_{ring_.page(), ring_.data(), ledger_},
        consumer_{*Consumer::over(ring_.page(), ring_.data())} {
    cpu_.watcher = this;
    ledger_.published(settings.start);  // nothing so far: what is reserved is not published by that
  }
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  void run(const std::vector<Action>& actions) {
    for (const Action& each : actions) run(each);
  }

  void run(const Action& action) {
    for (unsigned i = 0; i < action.times && !violation(); ++i) act(action);
  }

  // The helper's answer; nothing, if the producer crashed in its midst.
  std::optional<int> output(const Action& action) {
    if (crashed_) return std::nullopt;
    std::vector<std::byte> bytes(action.number);
    const oracle::Payload payload{next_sequence_++, 0, action.number};
    oracle::fill(bytes, payload);
    if (oracle::record_size(action.number) > 65535) oversize_ = true;
    std::optional<int> rc;
    within(action, [&] {
      ledger_.begins(payload);
      try {
        rc = kernel::bpf_perf_event_output(cpu_, ring_.array(), 0, bytes);
      } catch (const Crash&) {
        crashed_ = true;
        return;
      }
      ledger_.ends(*rc);
    });
    return rc;
  }

  // An output in whose step `step` the producer dies, if it has so many. Nobody takes its place.
  void crash(std::uint32_t length, unsigned step) {
    crash_at_ = step;
    output({Action::Kind::Output, length});
    crash_at_.reset();
    crashed_ = true;
  }

  // How many events it delivered. Nothing happens within another drain.
  std::uint64_t drain(const Action& action) {
    if (checker_.in_drain()) return 0;
    std::uint64_t events = 0;
    bool stopped = false;
    Watcher* const before = std::exchange(WatchedMemory::watcher, static_cast<Watcher*>(this));
    within(action, [&] {
      using Flow = ControlFlow<>;
      checker_.drain_begins();
      try {
        static_cast<void>(consumer_.try_fold(Unit{}, [&](Unit, const PerfEvent& event) -> Flow {
          if (stopped) violate("an event was delivered after the one that ended the drain");
          deliver(event);
          ++events;
          const bool stops = action.kind != Action::Kind::Drain && events == action.number;
          stopped = stops || violation();
          if (stops && action.kind == Action::Kind::Throw) throw Thrown{};
          if (stopped) return Break{};
          return Continue{};
        }));
      } catch (const Thrown&) {
      }
      checker_.drain_ends();
    });
    WatchedMemory::watcher = before;
    return events;
  }

  void pause(bool pause) { kernel::perf_event_pause_output(ring_.event(), pause); }

  // The producer is done: drains until the ring says that it is empty. Is everything there?
  void settle() {
    for (unsigned i = 0; readable() && !violation(); ++i) {
      if (i > 1) violate("two drains of an idle ring have not emptied it");
      drain({Action::Kind::Drain});
    }
    if (!crashed_) return checker_.settle();
    const std::uint64_t next = ledger_.empty() ? ledger_.position() : ledger_.front().position;
    if (!oversize_ && next != ledger_.published()) {
      violate(fmt::format("the next record is that at {}, but data_head is {}", next,
                          ledger_.published()));
    }
  }

  // What Action::Kind::Consume does.
  void set_consumer(std::function<void()> consume) { consume_ = std::move(consume); }

  bool readable() { return consumer_.readable(); }
  bool crashed() const { return crashed_; }
  std::uint64_t unread() const { return ledger_.position() - checker_.released(); }  // bytes
  const oracle::Ledger& ledger() const { return ledger_; }
  const oracle::Received& received() const { return checker_.received(); }
  // What was delivered, copied, since somebody last asked for it.
  std::vector<testing::Seen> take_seen() { return std::exchange(seen_, {}); }
  SimulatedRing& ring() { return ring_; }

  std::optional<std::string> violation() const {
    if (violation_) return violation_;
    const auto& violation = checker_.violation();
    if (!violation) return std::nullopt;
    return fmt::format("{}: {}", to_string(violation->invariant), violation->message);
  }

 private:
  struct Thrown {};
  struct Crash {};
  // What is still to happen within an output or a drain.
  struct Frame {
    const Action* action;
    unsigned step = 0;
    std::vector<bool> done;
    std::optional<std::uint64_t> unread;  // when the output last looked
  };

  void act(const Action& action) {
    switch (action.kind) {
      case Action::Kind::Output:
        output(action);
        return;
      case Action::Kind::Pause:
      case Action::Kind::Resume:
        return pause(action.kind == Action::Kind::Pause);
      case Action::Kind::Consume:
        if (consume_) consume_();
        return;
      case Action::Kind::Drain:
      case Action::Kind::Break:
      case Action::Kind::Throw:
        drain(action);
        return;
    }
  }

  template <class F>
  void within(const Action& action, F f) {
    frames_.push_back({&action, 0, std::vector<bool>(action.nested.size()), {}});
    f();
    for (std::size_t i = 0; i < action.nested.size(); ++i) {
      if (!frames_.back().done[i]) run(action.nested[i]);
    }
    frames_.pop_back();
  }

  void step() override {
    const std::size_t depth = frames_.size() - 1;
    const unsigned now = frames_[depth].step++;
    if (crash_at_ == now) throw Crash{};
    const std::vector<Action>& nested = frames_[depth].action->nested;
    for (std::size_t i = 0; i < nested.size(); ++i) {
      if (nested[i].at != now) continue;
      frames_[depth].done[i] = true;
      run(nested[i]);
    }
  }

  // Slices must keep their bytes while the callback has them, whatever the producer does meanwhile.
  // (A payload above 65516 bytes may overwrite them: K10.)
  void deliver(const PerfEvent& event) {
    checker_.delivered(event);
    if (violation()) return;
    seen_.push_back(testing::copy(event));
    const testing::Seen before = seen_.back();
    step();
    if (!oversize_ && testing::copy(event) != before) {
      violate("no_early_release: the slices of an event changed while the callback had it");
    }
  }

  void reads_tail() override { frames_.back().unread = unread(); }
  void reserved(std::uint64_t position, std::uint64_t size) override {
    ledger_.reserved(position, size, checker_.released());
  }
  void told(std::uint64_t lost) override { ledger_.told(lost); }
  void refused() override {
    const Frame& frame = frames_.back();
    const auto why = ledger_.unfounded({.length = frame.action->number,
                                        .unread = frame.unread,
                                        .paused = ring_.rb().paused.load(),
                                        .interrupted = !frame.action->nested.empty()});
    if (why) violate("no_loss: " + *why);
    ledger_.refused();
  }
  void read(const std::byte* address, std::size_t size) override {
    const bool is_tail = address == reinterpret_cast<const std::byte*>(&ring_.page().data_tail);
    if (!is_tail) checker_.reads(address, size);
  }

  void published(std::uint64_t data_head) override {
    if (data_head % 8 != 0) violate(fmt::format("data_head {:#x} was published", data_head));
    ledger_.published(data_head);
  }
  void committed(std::uint64_t data_tail) override {
    if (data_tail % 8 != 0) violate(fmt::format("data_tail {:#x} was committed", data_tail));
  }

  void violate(std::string message) {
    if (!violation_) violation_ = std::move(message);
  }

  SimulatedRing ring_;
  oracle::Ledger ledger_;
  oracle::Checker checker_;
  Consumer consumer_;
  Cpu cpu_;
  std::vector<Frame> frames_;
  std::uint64_t next_sequence_ = 0;
  std::function<void()> consume_;
  std::optional<unsigned> crash_at_;
  bool crashed_ = false;
  bool oversize_ = false;
  std::vector<testing::Seen> seen_;
  std::optional<std::string> violation_;
};

// Fails the property that is being checked, if something was violated.
template <class AnyWorld>
void expect_good(const AnyWorld& world) {
  if (const auto violation = world.violation()) RC_FAIL(*violation);
}

}  // namespace perfring::proptests

#endif  // PROPTESTS_WORLD_H_
