#ifndef PROPTESTS_MERGE_ROWS_H_
#define PROPTESTS_MERGE_ROWS_H_

// Merges rings that hold rows of equal-sized records, beside the MergeOracle that judges it.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "perfring/merge/key_at.h"
#include "perfring/merge/merge.h"
#include "perfring/merge/timed.h"
#include "perfring/perf_event.h"
#include "perfring/ring/default_memory.h"
#include "perfring/testing/copied_events.h"
#include "perfring/testing/rings.h"
#include "proptests/merge_oracle.h"

namespace perfring::proptests {

struct RowShape {
  std::size_t rings;
  std::size_t payload;  // bytes in each record of a row
  std::uint64_t slack;
  std::uint64_t start;
};

// Ends a run early: at the Nth event, by a break or an exception, or at a key after N keys.
struct Cut {
  std::uint64_t stops = MergeOracle::kAll;
  std::uint64_t throws = MergeOracle::kAll;
  std::uint64_t key_throws = MergeOracle::kAll;
};

// Rings that hold rows of equal-sized records, which a Merge reads in one go, with odd records
// among them. Merges them run by run, and tells the oracle what it writes and what is delivered.
template <unsigned kWindow, bool kTimed, class M = DefaultMemory>
class MergeRows {
  using Memory = std::conditional_t<kTimed, Timed<M>, M>;

 public:
  explicit MergeRows(const RowShape& shape)
      : shape_{shape},
        rings_{shape.rings, {.slack = shape.slack, .learns = false}, kRing, shape.start},
        oracle_{shape.rings, kWindow, shape.slack, shape.start} {}

  // The clock. The keys that are written are even, the values that the merge reads are odd.
  std::uint64_t now = 100'000;

  void sample(std::size_t ring, std::uint64_t key, std::size_t payload) {
    std::vector<std::byte> raw(payload, std::byte{0x5a});
    const std::uint64_t number = ++number_;
    const std::size_t at_number = kTimed ? 0 : sizeof(key);
    if (!kTimed) std::memcpy(raw.data(), &key, sizeof(key));
    std::memcpy(raw.data() + at_number, &number, kTimed ? 8 : 4);
    const std::size_t size = (payload + (kTimed ? 20 : 12) + 7) / 8 * 8;
    if (!has_room(ring, size)) return;
    if constexpr (kTimed) {
      rings_[ring].timed_sample(key, raw);
    } else {
      rings_[ring].sample(raw, size);
    }
    wrote(ring, Kind::Sample, key, CopiedEvent::sample(raw));
  }
  void sample(std::size_t ring, std::uint64_t key) { sample(ring, key, shape_.payload); }
  void lost(std::size_t ring) {
    if (!has_room(ring, 24)) return;
    rings_[ring].lost(++number_);
    wrote(ring, Kind::Lost, 0, CopiedEvent::lost(number_));
  }
  void malformed(std::size_t ring) {
    if (!has_room(ring, 16)) return;
    const std::uint64_t number = ++number_;
    const std::uint64_t begin = rings_[ring].head();
    rings_[ring].raw_record(77, 16, std::as_bytes(std::span{&number, 1}), 16);
    wrote(ring, Kind::Malformed, 0,
          CopiedEvent::malformed(Defect::UnexpectedType, rings_[ring].bytes(begin, begin + 16)));
  }
  // Writes `count` records of equal size whose keys increase by 2 * `apart`, and advances `now` to
  // the last key.
  void row(std::size_t ring, std::uint64_t count, std::uint64_t apart) {
    for (; count != 0; --count) sample(ring, now += 2 * apart);
  }
  std::uint64_t last_key(std::size_t ring) const { return last_keys_[ring]; }

  // Calls between(ring) after the clock was read for the ring and before the merge looks at it.
  template <class Between>
  void run(std::uint64_t limit, const Cut& cut, const Between& between) {
    Run run{.limit = limit};
    const auto clock = [&] {
      const std::uint64_t read = now + 1;
      run.clocks.push_back(read);
      if (run.clocks.size() <= shape_.rings) {
        between(run.clocks.size() - 1);
        run.visible.push_back(oracle_.written(run.visible.size()));
      }
      now += 2;
      return read;
    };
    carry_out(run, cut,
              [&](auto key, auto take) { return rings_.merge.run(key, clock, take, limit); });
  }
  void run(std::uint64_t limit = MergeOracle::kAll, const Cut& cut = {}) {
    run(limit, cut, [](std::size_t) {});
  }
  void flush(std::uint64_t limit = MergeOracle::kAll) {
    Run run{.limit = limit};
    for (std::size_t i = 0; i < shape_.rings; ++i) run.visible.push_back(oracle_.written(i));
    carry_out(run, {}, [&](auto key, auto take) { return rings_.merge.flush(key, take, limit); });
  }

  // Flushes, and judges all runs.
  std::string judge() {
    flush();
    return oracle_.judge(runs_, rings_.merge.counts());
  }

 private:
  using Kind = MergeOracle::Kind;
  using CopiedEvent = testing::CopiedEvent;
  using Run = MergeOracle::Run;
  struct Thrown final : std::exception {};
  static constexpr std::uint64_t kRing = 8192;

  bool has_room(std::size_t ring, std::size_t size) {
    return rings_[ring].head() + size - rings_.tail(ring) <= kRing;
  }
  void wrote(std::size_t ring, Kind kind, std::uint64_t key, CopiedEvent event) {
    if (kind == Kind::Sample) last_keys_[ring] = key;
    oracle_.wrote(ring, {kind, key, std::move(event), rings_[ring].head()});
  }

  // Returns a copy without the split at the ring's end, which the oracle does not track.
  static testing::MergedEvent joined(const Ordered& each) {
    testing::MergedEvent delivered = testing::copy(each);
    if (delivered.event.kind != CopiedEvent::Kind::Lost)
      delivered.event.head_size = delivered.event.bytes.size();
    return delivered;
  }

  template <class How>
  void carry_out(Run& run, Cut cut, How how) {
    const auto take = [&](const Ordered& each) {
      run.delivered.push_back(joined(each));
      run.cut = cut.stops == run.delivered.size() || cut.throws == run.delivered.size();
      if (cut.throws == run.delivered.size()) throw Thrown{};
      return !run.cut;
    };
    const auto key = [&](const Sample& each) {
      run.key_threw = cut.key_throws-- == 0;
      if (run.key_threw) throw Thrown{};
      return KeyAt{}(each);
    };
    try {
      if constexpr (kTimed) {
        run.end = how(EventTime{}, take);
      } else {
        run.end = how(key, take);
      }
    } catch (const Thrown&) {
    }
    for (std::size_t i = 0; i < shape_.rings; ++i) run.tails.push_back(rings_.tail(i));
    runs_.push_back(std::move(run));
  }

  const RowShape shape_;
  testing::Rings<Memory, kWindow> rings_;
  MergeOracle oracle_;
  std::vector<Run> runs_;
  std::vector<std::uint64_t> last_keys_ = std::vector<std::uint64_t>(shape_.rings);
  std::uint64_t number_ = 0;
};

}  // namespace perfring::proptests

#endif  // PROPTESTS_MERGE_ROWS_H_
