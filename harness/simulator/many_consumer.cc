#include "harness/simulator/engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <deque>
#include <span>
#include <utility>
#include <vector>

#include "harness/oracle/invariant.h"
#include "harness/simulator/many_rings.h"
#include "harness/simulator/random.h"
#include "harness/simulator/scheduler.h"
#include "harness/simulator/settings.h"
#include "harness/simulator/simulated_producer.h"
#include "harness/simulator/site.h"
#include "perfring/merge/merge.h"
#include "perfring/perf_event.h"
#include "perfring/rings/ring_set_options.h"
#include "perfring/rings/round.h"
#include "perfring/wait/wakeups.h"

namespace perfring::simulator {
namespace {

using oracle::Invariant;

// Drains all rings in RingSet's rounds, or merges them, and waits for them as RingSet does.
class ManyConsumer {
 public:
  ManyConsumer(std::deque<Site>& sites, ManyFault fault)
      : sites_{sites},
        world_{sites.front().world()},
        settings_{world_.settings},
        fault_{fault},
        merged_{sites, fault},
        choice_{std::chrono::nanoseconds{static_cast<std::int64_t>(settings_.latency)}} {
    went_offline_.resize(sites.size());
    for (Site& each : sites) rings_.emplace_back(each);
  }

  void run() {
    enter();
    round();
    while (!world_.consumers_end()) {
      wait();
      enter();
      follow();
      round();
      if (world_.scheduler.random().one_in(static_cast<std::uint32_t>(settings_.flush_one_in))) {
        flush();
      }
    }
    if (world_.phase() == Phase::Stopping) return;
    finish();
  }

 private:
  bool is(ManyFault fault) const { return fault_ == fault; }
  bool is_merging() const { return settings_.rings == kMerged; }
  void enter() {
    SimulatedMemory::site = &sites_.front();
    ManyMemory::sites = &sites_;
  }
  std::uint64_t now() const { return world_.scheduler.now(); }
  bool has_violation() const {
    return std::ranges::any_of(
        sites_, [](const Site& each) { return each.judge().violation().has_value(); });
  }

  // Waits for a wakeup, a hotplug change or the deadline. Polls at least once, so that a passed
  // deadline is not taken for the kernel's announcement.
  void wait() {
    if (again_) return;
    std::uint64_t deadline = settings_.timeout == 0 ? kNever : now() + settings_.timeout;
    deadline = std::min(deadline, due_);
    for (Site& each : sites_) each.begin_sleep(deadline);
    first_reported_ = nullptr;
    while (!world_.consumers_end()) {
      for (Site& each : sites_) each.forget_wakeup();
      if (poll_all()) break;
      if (now() >= deadline) break;
      if (std::ranges::none_of(sites_, &Site::woken)) {
        sites_.front().consumer().sleep_until(deadline);
      }
    }
    for (Site& each : sites_) each.end_sleep();
  }

  bool poll_all() {
    bool any = false;
    for (Site& each : sites_) {
      if (each.poll()) {
        if (first_reported_ == nullptr) first_reported_ = &each;
        any = true;
      }
      any |= each.has_change();
    }
    return any;
  }

  // Handles CPUs that came or went (C6).
  void follow() {
    for (Site& each : sites_) {
      if (!each.take_change()) continue;
      went_offline_[static_cast<std::size_t>(each.cpu())] = true;
      if (each.offline()) continue;
      each.revive();
    }
  }

  void round() {
    const std::uint64_t began = now();
    delivered_ = 0;
    again_ = false;
    due_ = kNever;
    if (is_merging()) {
      merge();
    } else {
      turns();
    }
    if (settings_.latency != 0) switch_wakeups(began);
    if (is(ManyFault::SleepsAtLimit)) again_ = false;
  }

  // RingSet::flush(Flush::Complete) (C5): a barrier, then a round without limits. It reads
  // everything that was reserved before, including the records of writers that were under way (W12,
  // W14).
  void flush() {
    std::vector<__u64> reserved;
    for (const Site& each : sites_) reserved.push_back(each.rb().head);
    is_flush_ = true;
    const bool waits = !is(ManyFault::FlushesWithoutABarrier);
    const bool is_late = is(ManyFault::BarrierAfterTheRound);
    if (waits && !is_late) wait_for_programs();
    turns();
    if (waits && is_late) wait_for_programs();
    is_flush_ = false;
    if (world_.consumers_end() || has_violation()) return;
    for (std::size_t i = 0; i != sites_.size(); ++i) {
      const auto left = static_cast<std::int32_t>(
          static_cast<std::uint32_t>(reserved[i] - sites_[i].page().data_tail));
      if (left <= 0) continue;
      sites_[i].judge().violate(
          Invariant::no_loss,
          fmt::format("a complete flush left {} bytes that were reserved before it", left));
    }
  }

  // Waits as the kernel does for the programs that are running on any CPU.
  void wait_for_programs() {
    std::vector<std::uint64_t> pauses;
    for (const Site& each : sites_) pauses.push_back(each.quiescent_periods());
    const auto has_ended = [&] {
      for (std::size_t i = 0; i != sites_.size(); ++i) {
        if (!sites_[i].quiesced_since(pauses[i])) return false;
      }
      return true;
    };
    constexpr std::uint64_t kTick = 16;
    while (!has_ended() && !world_.consumers_end()) {
      sites_.front().consumer().sleep_until(now() + kTick);
    }
    enter();
  }

  bool is_left_out(const Site& site) const {
    if (is(ManyFault::ReadsOneRing)) return first_reported_ != nullptr && first_reported_ != &site;
    return is(ManyFault::AbandonsOfflineRings) &&
           went_offline_[static_cast<std::size_t>(site.cpu())];
  }

  void turns() {
    for (MergedRing& each : rings_) each.set_left_out(is_left_out(each.site()));
    Limits limits;
    const bool is_limited = settings_.limit != 0 && !is_flush_ && !is(ManyFault::IgnoresLimit);
    if (is_limited) limits.events = settings_.limit;
    const auto each = [this](const MergedRing& ring, const PerfEvent& event) {
      return visit(ring.site(), event);
    };
    const auto next = [this](std::span<MergedRing> rings) {
      return settings_.rings == kFullestFirst ? internal::fullest(rings)
                                              : internal::next_in_turn(rings, turn_);
    };
    again_ = true;
    try {
      std::uint64_t delivered = 0;
      const DrainEnd end =
          internal::take_turns(std::span{rings_}, limits, turn_, delivered, next, each);
      again_ = end != DrainEnd::Drained;
    } catch (const Thrown&) {
    }
  }

  // Takes an event that a drain passes on. Returns false to break off.
  bool visit(Site& site, const PerfEvent& event) {
    site.drains().check_delivery(event);
    if (site.judge().violation()) return false;
    const bool is_limited = settings_.limit != 0 && !is_finishing_ && !is_flush_;
    if (is_limited && ++delivered_ > settings_.limit) {
      site.judge().violate(Invariant::bounded, "a round delivered more than its limit");
      return false;
    }
    Random& random = world_.scheduler.random();
    if (settings_.callback_max != 0) {
      const auto steps = random.between(0, static_cast<std::uint32_t>(settings_.callback_max));
      for (std::uint32_t i = 0; i != steps; ++i) SimulatedMemory::step();
      site.judge().check_finished(event);
    }
    if (is_flush_) return true;
    if (random.one_in(static_cast<std::uint32_t>(settings_.throw_one_in))) throw Thrown{};
    return !random.one_in(static_cast<std::uint32_t>(settings_.break_one_in));
  }

  void merge() {
    const MergeEnd end = run_merged(/*is_flush=*/false);
    again_ = end != MergeEnd::Released;
    if (has_violation() || end != MergeEnd::Released) return;
    bool has_undelivered_events = false;
    for (Site& each : sites_) {
      has_undelivered_events |= each.merged()->has_undelivered();
      const auto held_key =
          each.merged()->held_back_key(merged_.clock_before_run(), world_.order.bound());
      if (!held_key) continue;
      each.judge().violate(
          Invariant::merged,
          fmt::format("a run held back the key {}, which is lower than its bound, {}", *held_key,
                      world_.order.bound()));
    }
    if (has_undelivered_events && !is(ManyFault::SleepsOnHeldEvents)) {
      due_ = now() + (settings_.slack + 1) * settings_.clock_tick;
    }
  }

  MergeEnd run_merged(bool is_flush) {
    return merged_.run(is_flush, [this](const Ordered& ordered) { return deliver(ordered); });
  }

  bool deliver(const Ordered& ordered) {
    if (ordered.late && is(ManyFault::DropsLateEvents)) return true;
    Ordered reported = ordered;
    if (is(ManyFault::NeverMarksLate)) reported.late = false;
    world_.order.event = &reported;
    return visit(sites_[ordered.ring], ordered.event);
  }

  // Switches the wakeups after each round, as RingSet does.
  void switch_wakeups(std::uint64_t began) {
    const auto at = [](std::uint64_t steps) {
      return WakeupChoice::Clock::time_point{
          std::chrono::nanoseconds{static_cast<std::int64_t>(steps)}};
    };
    const Wakeups wakeups = choice_.looked(events_of_round(), at(began));
    for (Site& each : sites_) {
      if (each.entry() != wakeups) each.fill_entry(wakeups);
    }
    const auto due = choice_.due();
    const bool forgets = is(ManyFault::SleepsWithoutRecheck) && wakeups == Wakeups::EachRecord;
    if (due == WakeupChoice::Clock::time_point::max() || forgets) return;
    due_ = std::min(due_, static_cast<std::uint64_t>(due.time_since_epoch().count()));
  }

  std::uint64_t events_of_round() {
    std::uint64_t sum = 0;
    for (const Site& each : sites_) {
      sum += each.judge().received().delivered + each.judge().received().lost;
    }
    return sum - std::exchange(events_before_, sum);
  }

  // Drains the rest. Nobody writes any more.
  void finish() {
    follow();
    do {
      delivered_ = 0;
      again_ = false;
      if (is_merging()) {
        is_finishing_ = true;
        again_ = run_merged(/*is_flush=*/true) != MergeEnd::Released;
      } else {
        turns();
      }
    } while (again_ && !has_violation());
    if (!is_merging() || has_violation()) return;
    if (auto violation = world_.order.settle(merged_.counts())) {
      sites_.front().judge().violate(violation->invariant, violation->message);
    }
  }

  std::deque<Site>& sites_;
  World& world_;
  const RunSettings& settings_;
  const ManyFault fault_;
  MergedRings merged_;
  WakeupChoice choice_;
  std::vector<MergedRing> rings_;
  std::vector<bool> went_offline_;  // CPUs that ever went offline
  const Site* first_reported_ = nullptr;
  std::size_t turn_ = 0;
  std::uint64_t delivered_ = 0;  // in this round
  std::uint64_t events_before_ = 0;
  std::uint64_t due_ = kNever;
  bool again_ = false;
  bool is_finishing_ = false;  // nobody writes any more
  bool is_flush_ = false;      // a complete flush is under way
};

// From time to time takes a CPU offline, or brings it back.
void hotplug(std::deque<Site>& sites, Task& self) {
  World& world = sites.front().world();
  Random& random = world.scheduler.random();
  while (!world.writers_end()) {
    const auto most = static_cast<std::uint32_t>(2 * world.settings.hotplug);
    self.sleep_until(world.scheduler.now() + random.between(1, most));
    Site& site = sites[random.below(static_cast<std::uint32_t>(sites.size()))];
    if (site.offline()) {
      site.come_online();
    } else if (site.can_go_offline()) {
      site.go_offline();
    }
  }
}

}  // namespace

SimulationOutcome simulate_many(const SimulationPlan& plan, const Observer& observer,
                                ManyFault fault) {
  Engine engine{plan, observer, fault == ManyFault::None};
  std::deque<Site>& sites = engine.sites();
  ManyConsumer consumer{sites, fault};
  Scheduler& scheduler = engine.world().scheduler;
  Task& consumer_task = scheduler.add([&consumer] { consumer.run(); });
  for (Site& site : sites) {
    site.set_consumer(consumer_task);
    engine.add_writer(site, std::make_unique<Producer<>>(site));
  }
  Task* hotplug_task = nullptr;
  if (plan.settings.hotplug != 0)
    hotplug_task = &scheduler.add([&] { hotplug(sites, *hotplug_task); });
  return engine.run();
}

}  // namespace perfring::simulator
