// The target judges merges correctly: each of its checks finds a merge that breaks it, with one of
// the target's seeds.

#include "fuzz/hostile_merge.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "fuzz/seed_file.h"
#include "harness/faults/memory_faults.h"

namespace perfring::fuzz {
namespace {

template <class M = Merge<CheckedMemory>>
void run(const std::string& name) {
  const std::string bytes = read_seed("fuzz/merge_seeds/" + name);
  HostileMerge<M>{Input{bytes}}.run();
}

using Pages = std::vector<perf_event_mmap_page*>;

// The hooks by which a fault changes lib's merge. This one changes nothing.
struct Right {
  static constexpr bool kIdles = false;  // whether a run delivers nothing and returns Released
  static std::optional<std::size_t> number(std::size_t ring) { return ring; }
  // Called for each event of lib's merge: delivers it, another event or none, and returns whether
  // to continue.
  template <class Deliver>
  bool event(const Ordered& each, const Deliver& deliver) {
    return deliver(each);
  }
  static MergeEnd flushed(MergeEnd end, const Pages&) { return end; }
  static void counts(MergeCounts&) {}
};

// lib's merge with a planted fault. Counts the delivered events itself, so that a fault of the
// events does not show up as wrong counts.
template <class Fault>
class Planted {
 public:
  explicit Planted(const MergeOptions& options) : merge_{options} {}
  std::optional<std::size_t> add(perf_event_mmap_page& page, Bytes data) {
    pages_.push_back(&page);
    const auto ring = merge_.add(page, data);
    return ring ? Fault::number(*ring) : std::nullopt;
  }
  template <class Key, class Clock, class F>
  MergeEnd run(Key key, Clock clock, F f, std::uint64_t limit) {
    if (Fault::kIdles) return MergeEnd::Released;
    return merge_.run(key, clock, [&](const Ordered& each) { return passes(each, f); }, limit);
  }
  template <class Key, class F>
  MergeEnd flush(Key key, F f) {
    const auto end = merge_.flush(key, [&](const Ordered& each) { return passes(each, f); });
    return fault_.flushed(end, pages_);
  }
  const MergeCounts& counts() {
    Fault::counts(counts_);
    return counts_;
  }

 private:
  template <class F>
  bool passes(const Ordered& each, F& f) {
    return fault_.event(each, [&](const Ordered& one) {
      ++counts_.delivered;
      if (one.late) ++counts_.late;
      if (one.key < newest_) counts_.worst_late = std::max(counts_.worst_late, newest_ - one.key);
      newest_ = std::max(newest_, one.key);
      return f(one);
    });
  }

  Merge<CheckedMemory> merge_;
  Fault fault_;
  Pages pages_;
  MergeCounts counts_;
  std::uint64_t newest_ = 0;
};

// The rings in a seed with one hostile ring.
constexpr std::size_t kHostile = 0;
constexpr std::size_t kSound = 1;
constexpr const char* kSeed = "three_samples";

TEST(HostileMergeTest, ARightMergeHolds) {
  for (const char* const name : {kSeed, "late_by_one", "stops_in_a_run", "clock_goes_back"}) {
    run(name);
    run<Planted<Right>>(name);
  }
}

struct Idles : Right {
  static constexpr bool kIdles = true;
};

TEST(HostileMergeTest, ADelayedSoundRingIsFound) {
  EXPECT_DEATH(run<Planted<Idles>>(kSeed), "delays the sound ring");
  EXPECT_DEATH(run<Planted<Idles>>("size_0"), "delays the sound ring");
}

// Drops the events of one ring, or only its first.
template <std::size_t kRing, bool kFirst>
struct Drops : Right {
  bool is_first = true;
  template <class Deliver>
  bool event(const Ordered& each, const Deliver& deliver) {
    if (each.ring != kRing || (kFirst && !is_first)) return deliver(each);
    is_first = false;
    return true;
  }
};
// Drops the last of the sound ring's 20 records, which in the seed lost_without_a_sample only the
// flush has to deliver.
struct DropsLastSoundRecord : Right {
  template <class Deliver>
  bool event(const Ordered& each, const Deliver& deliver) {
    constexpr std::uint64_t kLast = std::uint64_t{19} << 57;
    return each.ring == kSound && each.key == kLast ? true : deliver(each);
  }
};

TEST(HostileMergeTest, AnEventThatDoesNotComeIsFound) {
  EXPECT_DEATH((run<Planted<Drops<kHostile, false>>>(kSeed)), "an event was not delivered");
  EXPECT_DEATH((run<Planted<Drops<kHostile, true>>>(kSeed)), "an event was not delivered");
  EXPECT_DEATH((run<Planted<Drops<kSound, true>>>(kSeed)),
               "a record of the sound ring is not the next");
  EXPECT_DEATH(run<Planted<DropsLastSoundRecord>>("lost_without_a_sample"),
               "a record of the sound ring was not delivered");
}

template <std::size_t kRing>
struct Doubles : Right {
  template <class Deliver>
  bool event(const Ordered& each, const Deliver& deliver) {
    return deliver(each) && (each.ring != kRing || deliver(each));
  }
};
struct AddsALost : Right {
  template <class Deliver>
  bool event(const Ordered& each, const Deliver& deliver) {
    return deliver(each) && deliver(Ordered{kHostile, each.key, false, Lost{3}});
  }
};
struct SoundsAreLost : Right {
  template <class Deliver>
  bool event(const Ordered& each, const Deliver& deliver) {
    Ordered other = each;
    if (each.ring == kSound) other.event = Lost{1};
    return deliver(other);
  }
};

TEST(HostileMergeTest, AnEventThatNobodyWroteIsFound) {
  EXPECT_DEATH(run<Planted<Doubles<kHostile>>>(kSeed),
               "an event that the reference does not have|an event after the reference's last");
  EXPECT_DEATH(run<Planted<Doubles<kSound>>>(kSeed), "or it was delivered before");
  EXPECT_DEATH(run<Planted<AddsALost>>(kSeed), "an event that the reference does not have");
  EXPECT_DEATH(run<Planted<AddsALost>>("empty"), "an event after the reference's last");
  EXPECT_DEATH(run<Planted<SoundsAreLost>>(kSeed), "the sound ring holds samples only");
}

template <bool kLate>
struct Marks : Right {
  template <class Deliver>
  bool event(const Ordered& each, const Deliver& deliver) {
    Ordered marked = each;
    marked.late = kLate;
    return deliver(marked);
  }
};

TEST(HostileMergeTest, AWrongMarkOfALateEventIsFound) {
  EXPECT_DEATH(run<Planted<Marks<true>>>(kSeed), "late: it is not, or is not marked so");
  EXPECT_DEATH(run<Planted<Marks<false>>>("late_by_one"), "late: it is not, or is not marked so");
}

template <std::uint64_t MergeCounts::* kCount, int kBy>
struct Counts : Right {
  static void counts(MergeCounts& counts) { counts.*kCount += static_cast<std::uint64_t>(kBy); }
};

TEST(HostileMergeTest, AWrongCountIsFound) {
  constexpr const char* kMessage = "the counts differ from the events'";
  EXPECT_DEATH((run<Planted<Counts<&MergeCounts::delivered, 1>>>(kSeed)), kMessage);
  EXPECT_DEATH((run<Planted<Counts<&MergeCounts::delivered, -1>>>(kSeed)), kMessage);
  EXPECT_DEATH((run<Planted<Counts<&MergeCounts::late, 1>>>(kSeed)), kMessage);
  EXPECT_DEATH((run<Planted<Counts<&MergeCounts::late, -1>>>("late_by_one")), kMessage);
  EXPECT_DEATH((run<Planted<Counts<&MergeCounts::worst_late, 1>>>("late_by_one")), kMessage);
}

// A flush that never ends.
struct NeverEnds : Right {
  static MergeEnd flushed(MergeEnd, const Pages&) { return MergeEnd::Limit; }
};
template <int kBy>
struct MovesTheTail : Right {
  static MergeEnd flushed(MergeEnd end, const Pages& pages) {
    pages[kHostile]->data_tail += static_cast<std::uint64_t>(kBy);
    return end;
  }
};
struct TailGoesBack : Right {
  static MergeEnd flushed(MergeEnd end, const Pages& pages) {
    pages[kSound]->data_tail = ~std::uint64_t{0} - 7;
    return end;
  }
};
struct Misnumbers : Right {
  static std::optional<std::size_t> number(std::size_t ring) { return ring + 1; }
};
struct Refuses : Right {
  static std::optional<std::size_t> number(std::size_t) { return std::nullopt; }
};

TEST(HostileMergeTest, ARunThatEndsWronglyIsFound) {
  EXPECT_DEATH(run<Planted<NeverEnds>>(kSeed), "a flush does not end");
  EXPECT_DEATH(run<Planted<MovesTheTail<8>>>(kSeed), "data_tail is not where the ring ends");
  EXPECT_DEATH(run<Planted<MovesTheTail<-8>>>(kSeed), "data_tail went back");
  EXPECT_DEATH(run<Planted<TailGoesBack>>(kSeed), "data_tail went back");
  EXPECT_DEATH(run<Planted<Misnumbers>>(kSeed), "a ring was not added");
  EXPECT_DEATH(run<Planted<Refuses>>(kSeed), "a ring was not added");
}

TEST(HostileMergeTest, AReadOutsideTheUnreadBytesIsFound) {
  EXPECT_DEATH(run<Merge<faults::Overreads<CheckedMemory>>>(kSeed), "in_ring: a read outside");
}

TEST(HostileMergeTest, ATailThatIsWrittenWronglyIsFound) {
  EXPECT_DEATH(run<Merge<faults::TailTooHigh<CheckedMemory>>>(kSeed), "violated: ");
  EXPECT_DEATH(run<Merge<faults::NeverCommits<CheckedMemory>>>(kSeed), "violated: ");
}

}  // namespace
}  // namespace perfring::fuzz
