#ifndef HARNESS_SIMULATOR_MANY_RINGS_H_
#define HARNESS_SIMULATOR_MANY_RINGS_H_

// The rings of a consumer that has all of them: one by one, or merged.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "harness/oracle/payload.h"
#include "harness/simulator/engine.h"
#include "harness/simulator/judge.h"
#include "harness/simulator/settings.h"
#include "harness/simulator/simulated_consumer.h"
#include "harness/simulator/site.h"
#include "harness/simulator/world.h"
#include "perfring/merge/merge.h"
#include "perfring/merge/slack.h"
#include "perfring/perf_event.h"
#include "perfring/ring/cursor.h"
#include "perfring/ring/hardware_memory.h"
#include "perfring/ring/memory.h"
#include "perfring/ring/ring.h"
#include "perfring/rings/round.h"

namespace perfring::simulator {

// SimulatedMemory for several rings: each access belongs to the ring that contains its address.
struct ManyMemory : SimulatedMemory {
  static inline constinit thread_local std::deque<Site>* sites = nullptr;
  // For each ring, a stale data_head that a fault uses in place of the real one; null without the
  // fault.
  static inline constinit thread_local std::vector<Position>* stale = nullptr;

  static Site& site_of(const void* address) {
    const auto* const at = static_cast<const std::byte*>(address);
    for (Site& each : *sites) {
      const auto* const page = reinterpret_cast<const std::byte*>(&each.page());
      if (at >= page && at < each.data().data() + each.data().size()) return each;
    }
    return *site;  // which reports an access outside the ring
  }

  static Position read_once(const SharedPosition& field) {
    step();
    Site& own = site_of(&field);
    const Position head = stale == nullptr ? HardwareMemory::read_once(field)
                                           : (*stale)[static_cast<std::size_t>(own.cpu())];
    own.drains().note_head(head);
    return head;
  }
  // Ends this ring's part of the run: a writer may use the room before the other rings' tails move.
  static void write_once(SharedPosition& field, SharedPosition value) {
    SimulatedMemory::write_once(field, value);
    site_of(&field).drains().end_drain();
  }
  // A read of the positions between two drains belongs to neither drain.
  static void note_read(const std::byte* address, std::size_t size) {
    Site& own = site_of(address);
    const bool is_tail = address == reinterpret_cast<const std::byte*>(&own.page().data_tail);
    if (!is_tail || own.drains().is_open()) own.check_read(address, size);
  }
  template <class T>
  static T read(const std::byte* address) {
    step();
    note_read(address, sizeof(T));
    return HardwareMemory::read<T>(address);
  }
};
static_assert(Memory<ManyMemory>);

inline void end_drain(Site& site) {
  if (site.drains().is_open()) site.drains().end_drain();
}

// One ring in a round, like RingSet's OutputRing.
class MergedRing {
 public:
  explicit MergedRing(Site& site)
      : site_{&site},
        ring_{*Ring<ManyMemory>::over(site.page(), site.data())},
        share_{*Cursor<ManyMemory>::over(site.page(), site.data()), site.data().size()} {}

  Site& site() const { return *site_; }
  // Leaves this ring out of the next rounds; only a fault does.
  void set_left_out(bool left_out) { left_out_ = left_out; }

  void begin_round() {
    share_.begin();
    if (left_out_) share_.end_turn(/*emptied=*/true);
  }
  internal::RoundShare<ManyMemory>& share() { return share_; }
  template <class F>
  bool for_each_while(F&& f) {
    SimulatedMemory::site = site_;
    const DrainScope drain_scope{*site_};
    return ring_.for_each_while(f);
  }

 private:
  // Ends the drain, also if the callback throws.
  struct DrainScope {
    explicit DrainScope(Site& of) : site{of} { site.drains().begin_drain(); }
    ~DrainScope() { end_drain(site); }
    DrainScope(const DrainScope&) = delete;
    DrainScope& operator=(const DrainScope&) = delete;
    Site& site;
  };

  Site* site_;
  Ring<ManyMemory> ring_;
  internal::RoundShare<ManyMemory> share_;
  bool left_out_ = false;
};

// All rings, merged by lib's Merge, and the faults planted in the merge.
class MergedRings {
 public:
  MergedRings(std::deque<Site>& sites, ManyFault fault)
      : sites_{sites}, fault_{fault}, merge_{options()}, narrow_{options()} {
    for (Site& each : sites) {
      merge_.add(each.page(), each.data());
      narrow_.add(each.page(), each.data());
    }
  }

  // Runs the merge once or, with `is_flush`, flushes it. `deliver(ordered)` is Merge's callback:
  // it returns false to stop.
  template <class Deliver>
  MergeEnd run(bool is_flush, const Deliver& deliver) {
    for (Site& each : sites_) each.drains().begin_drain();
    world().order.begin_run(is_flush);
    MergeEnd end = MergeEnd::Stopped;
    std::vector<Position> stale;
    if (is(ManyFault::ReadsClockAfterHead) && !is_flush) {
      for (Site& each : sites_) stale.push_back(each.page_head());
      ManyMemory::stale = &stale;
    }
    try {
      end = is_narrow() ? run(narrow_, is_flush, deliver) : run(merge_, is_flush, deliver);
    } catch (const Thrown&) {
    }
    ManyMemory::stale = nullptr;
    if (is(ManyFault::ReleasesOneEarly)) release_one();
    for (Site& each : sites_) end_drain(each);
    return end;
  }

  const MergeCounts& counts() const { return is_narrow() ? narrow_.counts() : merge_.counts(); }
  // The clock before the first look of the last run.
  std::uint64_t clock_before_run() const { return clock_before_run_; }

 private:
  MergeOptions options() const {
    return {.slack = is(ManyFault::IgnoresSlack) ? 0 : settings().slack, .learns = false};
  }
  bool is(ManyFault fault) const { return fault_ == fault; }
  bool is_narrow() const { return is(ManyFault::MergeWindow1) || is(ManyFault::TrustsFifo); }
  World& world() const { return sites_.front().world(); }
  const RunSettings& settings() const { return world().settings; }

  template <unsigned kWindow, class Deliver>
  MergeEnd run(Merge<ManyMemory, kWindow>& merge, bool is_flush, const Deliver& deliver) {
    const auto key = [this](const Sample& sample) { return key_of(sample); };
    if (is_flush) return merge.flush(key, deliver);
    std::size_t ring = 0;
    const std::uint64_t limit =
        settings().limit == 0 || is(ManyFault::IgnoresLimit) ? ~std::uint64_t{0} : settings().limit;
    return merge.run(key, [&] { return clock(ring++); }, deliver, limit);
  }

  // Returns the key of a payload: its writer's clock. The ring may be written during the callback,
  // so the claimed stream and sequence are checked before use.
  std::uint64_t key_of(const Sample& sample) const {
    const auto claim = oracle::claimed_payload(sample);
    if (!claim || claim->stream >= sites_.size()) return 0;
    return sites_[claim->stream].key_of(claim->sequence);
  }

  // The merge's clock, read before data_head of ring `ring`, and once more after the last ring.
  std::uint64_t clock(std::size_t ring) {
    SimulatedMemory::step();
    if (ring == 0) clock_before_run_ = world().clock();
    const std::uint64_t clock = world().clock();
    world().order.note_clock(clock);
    if (ring >= sites_.size()) return clock;
    const std::uint64_t newest = sites_[ring].merged()->newest_key();
    if (is(ManyFault::TrustsFifo)) return std::max(clock, newest + settings().slack);
    if (is(ManyFault::WaitsForIdleRings)) return std::min(clock, newest + settings().slack);
    return clock;
  }

  // releases_one_early: releases the next record of the first ring that has one.
  void release_one() {
    for (Site& each : sites_) {
      const auto end = each.merged()->end_of_oldest();
      if (!end) continue;
      ManyMemory::write_once(each.page().data_tail, *end);
      return;
    }
  }

  std::deque<Site>& sites_;
  const ManyFault fault_;
  Merge<ManyMemory, kMergeWindow> merge_;
  Merge<ManyMemory, 1> narrow_;  // for faults that assume ordered rings
  std::uint64_t clock_before_run_ = 0;
};

}  // namespace perfring::simulator

#endif  // HARNESS_SIMULATOR_MANY_RINGS_H_
