#ifndef FUZZ_HOSTILE_MERGE_H_
#define FUZZ_HOSTILE_MERGE_H_

// Merges one or two rings of any bytes, positions and sizes with a sound one. Each run must end,
// read nothing outside the rings, and mark and count the late events correctly; the sound ring must
// be delivered as if it were alone. An input:
//
//   u8   shape; bit 0: there is a second hostile ring, 1-2: number R of runs before the flush
//   u8   number of records in the sound ring; record i has the key i << 57
//   R x  u64 clock, u8 limit of events (0: none)
//   u16  length of the first hostile ring, if there is a second
//   ...  the first hostile ring (hostile_ring.h), whose pokes and stops count the events of all
//        rings; then the second, whose pokes and stops are ignored

#include <linux/perf_event.h>

#include <algorithm>
#include <array>
#include <bitset>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <set>
#include <span>
#include <utility>
#include <variant>
#include <vector>

#include "fuzz/hostile_drain.h"
#include "fuzz/hostile_ring.h"
#include "fuzz/input.h"
#include "harness/oracle/drain_watch.h"
#include "harness/oracle/invariant.h"
#include "harness/rig/watched_cpu.h"
#include "perfring/merge/key_at.h"
#include "perfring/merge/merge.h"
#include "perfring/merge/slack.h"
#include "perfring/perf_event.h"
#include "perfring/ring/memory.h"
#include "perfring/testing/copied_events.h"
#include "perfring/testing/reference_drain.h"

namespace perfring::fuzz {

// A ring of a merge. Its readable part is everything that was unread when the current run began, or
// in an earlier run and not yet released.
struct MergedPart : oracle::Readable {
  HostileMemory* memory;

  explicit MergedPart(HostileMemory& of)
      : Readable{&of.page(), of.data(), of.page().data_tail}, memory{&of} {}

  void run_begins(bool poked) {
    const std::uint64_t before = tail + available - page->data_tail;
    begin_drain();
    if (available > data.size()) available = 0;
    if (poked && before <= data.size()) available = std::max(available, before);
  }
};

// M: the merge; anything but lib's only in the target's own test.
template <class M = Merge<rig::CheckedMemory>>
class HostileMerge : private rig::MemoryObserver {
 public:
  explicit HostileMerge(Input input) {
    const auto shape = input.take<std::uint8_t>();
    records_ = input.take<std::uint8_t>();
    runs_.resize(shape >> 1 & 3);
    for (Run& run : runs_) {
      run.clock = input.take<std::uint64_t>();
      run.limit = input.take<std::uint8_t>();
    }
    if ((shape & 1) != 0) {
      const std::size_t length = input.take<std::uint16_t>();
      const std::span<const std::byte> rest = input.rest();
      const std::size_t first = std::min(length, rest.size());
      add(Input{rest.first(first)});
      add(Input{rest.subspan(first)});
    } else {
      add(input);
    }
    add_sound();
  }
  ~HostileMerge() {
    for (std::size_t i = 0; i < hostile_.size(); ++i) parts_[i].memory->wipe(hostile_[i]);
  }
  HostileMerge(const HostileMerge&) = delete;
  HostileMerge& operator=(const HostileMerge&) = delete;

  void run() {
    for (std::size_t i = 0; i < hostile_.size(); ++i) expect_all_of(i);
    std::uint64_t newest_clock = 0;
    for (const Run& each : runs_) {
      const MergeEnd end = carry_out([&](auto visit) {
        return merge_.run(
            KeyAt{}, [&] { return each.clock; }, visit,
            each.limit == 0 ? ~std::uint64_t{0} : each.limit);
      });
      // An event ahead of the clock waits no longer than one behind it (M8). A clock of 0 releases
      // nothing, and a clock that jumps back releases nothing that was read before.
      const bool jumped =
          each.clock < std::exchange(newest_clock, std::max(newest_clock, each.clock));
      const bool waits = sound_ == records_ || each.clock == 0 || key_of(sound_) == each.clock ||
                         (jumped && key_of(sound_) > each.clock);
      expect(end != MergeEnd::Released || waits,
             "a hostile ring, or a key ahead of the clock, delays the sound ring");
    }
    MergeEnd end = MergeEnd::Stopped;
    // At most three flushes stop early. Eight tries are therefore enough.
    for (int tries = 0; tries < 8 && end != MergeEnd::Released; ++tries) {
      end = carry_out([&](auto visit) { return merge_.flush(KeyAt{}, visit); });
    }
    expect(end == MergeEnd::Released, "a flush does not end");
    check_end();
  }

 private:
  void on_commit(SharedPosition) override {}
  void on_read(const std::byte* address, std::size_t size) override {
    const auto inside = [&](const MergedPart& part) { return part.holds(address, size); };
    expect(std::ranges::any_of(parts_, inside), oracle::Invariant::in_ring,
           "a read outside [data_tail, data_head)");
  }

  struct Run {
    std::uint64_t clock = 0;
    std::uint8_t limit = 0;
  };
  struct Thrown {};
  static constexpr std::size_t kCompared = 200;  // a ring with more events is not compared

  static std::uint64_t key_of(std::uint64_t record) { return record << 57; }

  // Returns memory that is kept from one input to the next.
  static HostileMemory& memory(std::size_t ring, unsigned log2_pages) {
    static std::array<std::array<std::unique_ptr<HostileMemory>, 5>, 3> all;
    auto& memory = all[ring][log2_pages];
    if (memory == nullptr)
      memory = std::make_unique<HostileMemory>(std::size_t{4096} << log2_pages);
    return *memory;
  }

  void add(Input input) {
    hostile_.emplace_back(input);
    HostileMemory& of = memory(parts_.size(), hostile_.back().log2_pages);
    of.write(hostile_.back());
    add(of);
  }
  void add(HostileMemory& of) {
    parts_.emplace_back(of);
    expect(merge_.add(of.page(), of.data()) == parts_.size() - 1, "a ring was not added");
  }
  void add_sound() {
    HostileMemory& of = memory(2, 1);
    records_ = std::min<std::uint64_t>(records_, 127);
    std::byte* at = of.data().data();
    for (std::uint64_t i = 0; i < records_; ++i, at += 24) {
      const perf_event_header header{PERF_RECORD_SAMPLE, 0, 24};
      const std::uint32_t raw = 12;
      const std::uint64_t key = key_of(i);
      std::memcpy(at, &header, 8);
      std::memcpy(at + 8, &raw, 4);
      std::memcpy(at + 12, &key, 8);
    }
    of.page().data_tail = 0;
    of.page().data_head = 24 * records_;
    add(of);
  }

  bool poked() const { return hostile_.front().poke_count != 0; }

  void expect_all_of(std::size_t ring) {
    const perf_event_mmap_page& page = parts_[ring].memory->page();
    due_.push_back(
        testing::ReferenceDrain{parts_[ring].memory->data(), page.data_tail, page.data_head}
            .events());
    ends_.push_back(page.data_tail + oracle::unread(parts_[ring].memory->data().size(),
                                                    page.data_tail, page.data_head));
    is_counted_[ring] = due_.back().size() > kCompared;
  }

  template <class How>
  MergeEnd carry_out(How how) {
    std::vector<std::uint64_t> tails;
    for (MergedPart& part : parts_) {
      part.run_begins(poked());
      tails.push_back(part.tail);
    }
    MergeEnd end = MergeEnd::Stopped;
    try {
      end = how([this](const Ordered& each) { return visit(each); });
    } catch (const Thrown&) {
    }
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      // A data_head that goes back by more than the ring, or that is not a multiple of 8, counts as
      // far ahead (S8).
      const std::uint64_t read_before = poked() ? parts_[i].memory->data().size() : 0;
      const std::uint64_t moved = parts_[i].memory->page().data_tail - tails[i];
      expect(moved <= 0xffff'ffff + read_before, oracle::Invariant::tail_honest,
             "data_tail went back");
    }
    return end;
  }

  bool visit(const Ordered& each) {
    expect(each.late == (each.key < newest_), oracle::Invariant::late,
           "it is not, or is not marked so");
    if (each.late) {
      ++late_;
      worst_ = std::max(worst_, newest_ - each.key);
    }
    newest_ = std::max(newest_, each.key);
    check(each);
    delivered_.insert(each.key);
    const HostileRing& first = hostile_.front();
    for (std::size_t i = 0; i < first.poke_count; ++i) {
      if (first.pokes[i].event == events_) parts_.front().memory->poke(first.pokes[i]);
    }
    ++events_;
    if (stops_ == first.stop_count || ++since_stop_ < first.stops[stops_].event) return true;
    since_stop_ = 0;
    if (first.stops[stops_++].throws) throw Thrown{};
    return false;
  }

  void check(const Ordered& each) {
    if (each.ring == hostile_.size()) {
      check_sound(each);
      return;
    }
    if (poked()) return;
    auto& due = due_[each.ring];
    expect(!due.empty(), oracle::Invariant::no_invention, "an event after the reference's last");
    if (is_counted_[each.ring]) return due.pop_back();
    const auto at = std::ranges::find(due, testing::copy(each.event));
    expect(at != due.end(), "an event that the reference does not have");
    due.erase(at);
  }

  // An event with a key ahead of the clock (M8) gets a key that was delivered before (0 if nothing
  // was) or, if that key is ahead as well, the key just below the clock. Only such events may
  // overtake others.
  void check_sound(const Ordered& each) {
    const auto* const sample = std::get_if<Sample>(&each.event);
    expect(sample != nullptr && sample->size() == 12, "the sound ring holds samples only");
    const std::uint64_t key = *sample->as<std::uint64_t>();
    const auto record = static_cast<std::size_t>(key >> 57);
    expect(record < records_ && key == key_of(record) && !came_[record],
           "the sound ring does not hold this record, or it was delivered before");
    const auto went_back = [&](const Run& run) { return run.clock < key; };
    const auto is_below = [&](const Run& run) {
      return std::max<std::uint64_t>(run.clock, 1) - 1 == each.key;
    };
    const bool was_ahead = key > each.key && std::ranges::any_of(runs_, went_back) &&
                           (delivered_.contains(each.key) || std::ranges::any_of(runs_, is_below));
    expect(was_ahead || (key == each.key && record == sound_),
           "a record of the sound ring is not the next");
    came_[record] = true;
    while (sound_ < records_ && came_[sound_]) ++sound_;
  }

  void check_end() {
    expect(sound_ == records_, "a record of the sound ring was not delivered");
    const MergeCounts& counts = merge_.counts();
    expect(counts.delivered == events_ && counts.late == late_ && counts.worst_late == worst_,
           "the counts differ from the events'");
    if (poked()) return;
    for (std::size_t i = 0; i < hostile_.size(); ++i) {
      expect(due_[i].empty(), "an event was not delivered");
      const perf_event_mmap_page& page = parts_[i].memory->page();
      expect(static_cast<Position>(page.data_tail) == static_cast<Position>(ends_[i]),
             oracle::Invariant::tail_honest, "data_tail is not where the ring ends");
    }
  }

  std::vector<HostileRing> hostile_;
  std::vector<MergedPart> parts_;  // the hostile rings, then the sound one
  std::uint64_t records_ = 0;
  std::vector<Run> runs_;
  const rig::ObserverScope observing_{*this};
  M merge_{MergeOptions{.slack = 0, .learns = false}};
  std::vector<std::vector<testing::CopiedEvent>> due_;  // undelivered events of each hostile ring
  std::vector<std::uint64_t> ends_;                     // final data_tail of each hostile ring
  std::array<bool, 2> is_counted_{};                    // too many events to compare: only counted
  std::set<std::uint64_t> delivered_{0};                // keys
  std::bitset<128> came_;                               // delivered records of the sound ring
  std::size_t sound_ = 0;                               // the first undelivered one
  std::uint64_t events_ = 0;
  std::uint64_t newest_ = 0;
  std::uint64_t late_ = 0;
  std::uint64_t worst_ = 0;
  std::size_t stops_ = 0;
  std::uint64_t since_stop_ = 0;
};

}  // namespace perfring::fuzz

#endif  // FUZZ_HOSTILE_MERGE_H_
