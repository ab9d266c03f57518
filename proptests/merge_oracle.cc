#include "proptests/merge_oracle.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "harness/oracle/invariant.h"

namespace perfring::proptests {
namespace {

using oracle::Invariant;

std::string violation(Invariant invariant, std::string message) {
  return to_string(oracle::Violation{invariant, std::move(message)});
}

std::string name(std::size_t ring, std::size_t event) {
  return fmt::format("event {} of ring {}", event, ring);
}

}  // namespace

std::uint64_t MergeOracle::bound(const Run& run) const {
  if (run.is_flush()) return kAll;
  // Without the last clock, which is read after all looks.
  const std::uint64_t least = *std::min_element(run.clocks.begin(), run.clocks.end() - 1);
  return least > slack_ ? least - slack_ : 0;
}

bool MergeOracle::is_there(std::size_t ring, std::size_t event, std::size_t run) const {
  return event < runs_[run].visible[ring];
}

bool MergeOracle::has_sample(std::size_t ring, std::size_t event, std::size_t run) const {
  for (std::size_t i = event + 1; i < runs_[run].visible[ring]; ++i) {
    if (rings_[ring][i].kind == Kind::Sample) return true;
  }
  return false;
}

std::optional<std::size_t> MergeOracle::waited_in(std::size_t ring, std::size_t event) const {
  const Event& lost = rings_[ring][event];
  for (std::size_t run = 0; run < *lost.run; ++run) {
    if (runs_[run].key_threw && !was_read_ && runs_[*lost.run].is_flush()) continue;
    if (was_flushed(ring, event, run)) return std::nullopt;  // it got a key and no longer waits
    if (!runs_[run].is_flush() && is_there(ring, event, run) && !has_sample(ring, event, run) &&
        lost.ordered_by == bound(runs_[run])) {
      return run;
    }
  }
  return std::nullopt;
}

// Whether a flush before `run` has read the event and no sample after it. Such a LOST got its key
// from the flush.
bool MergeOracle::was_flushed(std::size_t ring, std::size_t event, std::size_t run) const {
  for (std::size_t i = 0; i < run; ++i) {
    if (runs_[i].is_flush() && is_there(ring, event, i) && !has_sample(ring, event, i) &&
        undelivered_before(ring, event, i) <= window_) {
      return true;
    }
  }
  return false;
}

// Assigns each delivered event to the event that was written. Each must be delivered exactly once,
// unchanged.
std::string MergeOracle::assign() {
  std::size_t turn = 0;
  for (std::size_t run = 0; run < runs_.size(); ++run) {
    for (const testing::MergedEvent& delivered : runs_[run].delivered) {
      if (delivered.ring >= rings_.size())
        return violation(Invariant::no_invention, "there is no such ring");
      const auto found = std::ranges::find_if(rings_[delivered.ring], [&](const Event& event) {
        return !event.run && event.event == delivered.event;
      });
      const auto at = static_cast<std::size_t>(found - rings_[delivered.ring].begin());
      if (at >= runs_[run].visible[delivered.ring]) {
        return violation(Invariant::no_invention, "what was delivered is not there");
      }
      found->run = run;
      found->ordered_by = delivered.key;
      found->turn = turn++;
    }
  }
  for (std::size_t ring = 0; ring < rings_.size(); ++ring) {
    for (std::size_t i = 0; i < rings_[ring].size(); ++i) {
      if (rings_[ring][i].run) continue;
      return violation(Invariant::no_loss, name(ring, i) + " was not delivered");
    }
  }
  return {};
}

std::size_t MergeOracle::undelivered_before(std::size_t ring, std::size_t event,
                                            std::size_t run) const {
  const auto begin = rings_[ring].begin();
  return static_cast<std::size_t>(
      std::count_if(begin, begin + static_cast<std::ptrdiff_t>(event),
                    [&](const Event& each) { return *each.run > run; }));
}

// M8: whether the key was ahead of the clock after the looks of a run, up to `run`, that saw the
// sample.
bool MergeOracle::may_be_ahead(std::uint64_t key, std::size_t ring, std::size_t sample,
                               std::size_t run) const {
  for (std::size_t i = 0; i <= run; ++i) {
    if (is_there(ring, sample, i) && key > runs_[i].clock_after()) return true;
  }
  return false;
}

// Returns the highest key delivered before this run.
std::uint64_t MergeOracle::newest_before(std::size_t run) const {
  std::uint64_t newest = 0;
  for (std::size_t i = 0; i < run; ++i) {
    for (const testing::MergedEvent& delivered : runs_[i].delivered)
      newest = std::max(newest, delivered.key);
  }
  return newest;
}

// M8: whether the event's ordering key is one that this run may give to an event that is ahead: the
// key of the record before it in its ring, or the newest key delivered when it was read.
bool MergeOracle::has_key_of_ahead(std::size_t ring, std::size_t event, std::size_t run) const {
  if (runs_[run].is_flush() || !is_there(ring, event, run)) return false;
  const Event& each = rings_[ring][event];
  // After a flush those keys may be ahead, too; then the event has the bound less 1.
  const std::uint64_t below = std::max(bound(runs_[run]), std::uint64_t{1}) - 1;
  if (each.ordered_by == below && was_flush_before(run)) return true;
  if (each.ordered_by > runs_[run].clock_after()) return false;
  std::uint64_t newest = newest_before(run);
  bool is_newest = each.ordered_by == newest;
  for (const testing::MergedEvent& delivered : runs_[run].delivered) {
    if (delivered.ring == ring && delivered.event == each.event) break;
    newest = std::max(newest, delivered.key);
    is_newest |= each.ordered_by == newest;
  }
  if (is_newest) return true;
  for (std::size_t i = event; i-- != 0;) {
    if (rings_[ring][i].ordered_by == each.ordered_by) return true;
    if (*rings_[ring][i].run >= run) return false;  // still in the ring: no earlier record counts
  }
  return false;
}

bool MergeOracle::was_flush_before(std::size_t run) const {
  const auto begin = runs_.begin();
  return std::any_of(begin, begin + static_cast<std::ptrdiff_t>(run),
                     [](const Run& each) { return each.is_flush(); });
}

// Whether the event has the ordering key of the record before it or, after a flush, a key that a
// run may give to an event that is ahead.
bool MergeOracle::has_key_before(std::size_t ring, std::size_t event) const {
  if (event == 0 || rings_[ring][event].ordered_by == rings_[ring][event - 1].ordered_by) {
    return true;  // the first event has the newest key delivered
  }
  for (std::size_t run = 0; run <= *rings_[ring][event].run; ++run) {
    if (was_flush_before(run) && has_key_of_ahead(ring, event, run)) return true;
  }
  return false;
}

// M6, M8: checks the event's ordering key.
std::string MergeOracle::check_key(std::size_t ring, std::size_t event) const {
  const Event& each = rings_[ring][event];
  const auto is_wrong = [&](const char* why) {
    return violation(Invariant::merged, fmt::format("{} was ordered by {}: {}", name(ring, event),
                                                    each.ordered_by, why));
  };
  if (each.kind == Kind::Malformed) {
    return has_key_before(ring, event) ? std::string{} : is_wrong("the record before it was not");
  }
  if (each.kind == Kind::Lost) return check_lost_key(ring, event);
  bool was_ahead = false;
  for (std::size_t run = 0; run <= *each.run; ++run) {
    was_ahead |= may_be_ahead(each.key, ring, event, run) && has_key_of_ahead(ring, event, run);
    if (each.ordered_by == each.key && was_read_ahead(ring, event, run)) {
      return is_wrong("it was ahead of the clock");
    }
  }
  if (each.ordered_by == each.key || was_ahead) return {};
  return is_wrong("it is not its key, nor one of an event that is ahead");
}

// Whether that run has read the event while its key was ahead of the clock.
bool MergeOracle::was_read_ahead(std::size_t ring, std::size_t event, std::size_t run) const {
  const Event& each = rings_[ring][event];
  if (!is_there(ring, event, run) || each.key <= runs_[run].clock_after()) return false;
  // At the end of the run the event was in the window, or the first after it.
  return !runs_[run].key_threw && *each.run > run &&
         undelivered_before(ring, event, run) <= window_;
}

std::string MergeOracle::check_lost_key(std::size_t ring, std::size_t event) const {
  const Event& lost = rings_[ring][event];
  if (const auto waited = waited_in(ring, event)) return check_wait(ring, event, *waited);
  const auto end = rings_[ring].end();
  const auto sample = std::find_if(rings_[ring].begin() + static_cast<std::ptrdiff_t>(event), end,
                                   [](const Event& each) { return each.kind == Kind::Sample; });
  const bool has = has_sample(ring, event, *lost.run);
  if (was_flushed(ring, event, *lost.run + 1) && has_key_before(ring, event)) return {};
  if (has && sample != end && lost.ordered_by == sample->key) return {};
  for (std::size_t run = 0; has && run <= *lost.run; ++run) {
    const auto at = static_cast<std::size_t>(sample - rings_[ring].begin());
    if (has_sample(ring, event, run) && may_be_ahead(sample->key, ring, at, run) &&
        has_key_of_ahead(ring, event, run)) {
      return {};
    }
  }
  return violation(Invariant::merged, fmt::format("{}, a LOST, was ordered by {}",
                                                  name(ring, event), lost.ordered_by));
}

// A LOST takes the bound of the first run that read it: checks that no run before `waited` did.
std::string MergeOracle::check_wait(std::size_t ring, std::size_t event, std::size_t waited) const {
  for (std::size_t run = 0; run < waited; ++run) {
    if (runs_[run].is_flush() || runs_[run].key_threw || !is_there(ring, event, run)) continue;
    if (undelivered_before(ring, event, run) < window_) {
      return violation(Invariant::merged,
                       fmt::format("{}, a LOST, took the bound of run {} instead of that of run {}",
                                   name(ring, event), waited, run));
    }
  }
  return {};
}

// Returns the key that orders the event in this run. An event that a flush reads keeps its own key
// until the clock of the next run (M8): the flush may leave it in the ring, and a later run may
// deliver it with another key. The same holds for a LOST that takes this key (M6). (If a flush
// leaves the event, it does not matter whether the event had met a clock before: it comes after all
// events that the flush delivers.)
std::uint64_t MergeOracle::key_in(std::size_t ring, std::size_t event, std::size_t run) const {
  const Event& each = rings_[ring][event];
  if (!runs_[run].is_flush() || *each.run <= run) return each.ordered_by;
  for (std::size_t i = 0; i < run; ++i) {
    if (each.kind == Kind::Sample && was_read_ahead(ring, event, i)) return each.ordered_by;
  }
  if (each.kind == Kind::Sample) return each.key;
  // A LOST that is ordered by a bound has had that key since the run of that bound.
  for (std::size_t i = 0; each.kind == Kind::Lost && i < run; ++i) {
    const bool waited = !runs_[i].is_flush() && is_there(ring, event, i);
    if (waited && each.ordered_by == bound(runs_[i])) return each.ordered_by;
  }
  const bool takes_next = each.kind == Kind::Lost && !was_flushed(ring, event, run);
  if (takes_next && waited_in(ring, event)) return each.ordered_by;
  for (std::size_t i = event + 1; takes_next && i < runs_[run].visible[ring]; ++i) {
    if (rings_[ring][i].kind == Kind::Sample) return key_in(ring, i, run);
  }
  return event == 0 ? newest_when_read(ring) : key_in(ring, event - 1, run);
}

// Returns the highest key delivered before the ring's first record got its key: when it was first
// visible or, for a LOST, which waits for a sample until then, in the first flush.
std::uint64_t MergeOracle::newest_when_read(std::size_t ring) const {
  std::size_t read = 0;
  while (!is_there(ring, 0, read)) ++read;
  while (rings_[ring][0].kind == Kind::Lost && !runs_[read].is_flush()) ++read;
  return newest_before(read);
}

// Returns the ring and the index of the lowest event in the windows of all rings; the number of
// rings if none may be delivered.
std::pair<std::size_t, std::size_t> MergeOracle::lowest(std::size_t run) const {
  std::pair<std::size_t, std::size_t> best{rings_.size(), 0};
  for (std::size_t ring = 0; ring < rings_.size(); ++ring) {
    std::size_t sorted = 0;
    for (std::size_t i = 0; i < runs_[run].visible[ring] && sorted < window_; ++i) {
      const Event& event = rings_[ring][i];
      if (delivered_[ring][i]) continue;
      if (event.kind == Kind::Lost && !runs_[run].is_flush() && !has_sample(ring, i, run)) {
        const auto waited = waited_in(ring, i);
        const bool waits = !waited || *waited >= run;
        if (waits && !was_flushed(ring, i, run)) break;  // and so do all events after it
      }
      ++sorted;
      const bool is_lower = best.first == rings_.size() ||
                            key_in(ring, i, run) < key_in(best.first, best.second, run);
      if (is_lower) best = {ring, i};
    }
  }
  if (best.first != rings_.size() && !runs_[run].is_flush() &&
      rings_[best.first][best.second].ordered_by >= bound(runs_[run])) {
    best.first = rings_.size();
  }
  return best;
}

std::string MergeOracle::replay(std::size_t number) {
  const Run& run = runs_[number];
  const auto is_wrong = [&](Invariant invariant, const std::string& what) {
    return violation(invariant, fmt::format("run {}: {}", number, what));
  };
  for (std::size_t i = 0; i < run.delivered.size(); ++i) {
    const auto [ring, event] = lowest(number);
    const testing::MergedEvent& delivered = run.delivered[i];
    if (ring == rings_.size()) {
      return is_wrong(Invariant::merged, fmt::format("event {} is not released", i));
    }
    const Event& expected = rings_[ring][event];
    if (delivered.ring != ring || delivered.key != expected.ordered_by ||
        delivered.event != expected.event) {
      return is_wrong(
          Invariant::merged,
          fmt::format("delivered as its event {} was one of ring {} with the key {}, "
                      "where {} with the key {} is next",
                      i, delivered.ring, delivered.key, name(ring, event), expected.ordered_by));
    }
    if (delivered.late != (delivered.key < newest_)) {
      return is_wrong(Invariant::late, fmt::format("event {}: late", i));
    }
    if (delivered.late) {
      ++late_;
      worst_late_ = std::max(worst_late_, newest_ - delivered.key);
    }
    newest_ = std::max(newest_, delivered.key);
    delivered_[ring][event] = true;
  }
  const bool is_more = lowest(number).first != rings_.size();
  if (run.delivered.size() > run.limit) return is_wrong(Invariant::bounded, "the limit");
  const MergeEnd end = is_more ? MergeEnd::Limit : MergeEnd::Released;
  if (!run.cut && !run.key_threw && run.end != end) {
    return is_wrong(Invariant::bounded, "why it ended");
  }
  if (!run.cut && !run.key_threw && is_more && run.delivered.size() != run.limit) {
    return is_wrong(Invariant::merged, "more could be delivered");
  }
  for (std::size_t ring = 0; ring < rings_.size(); ++ring) {
    std::uint64_t tail = start_;
    for (std::size_t i = 0; i < run.visible[ring] && delivered_[ring][i]; ++i) {
      tail = rings_[ring][i].end;
    }
    if (run.tails[ring] != tail) {
      return is_wrong(Invariant::tail_honest, fmt::format("data_tail of ring {} is {}, not {}",
                                                          ring, run.tails[ring], tail));
    }
  }
  return {};
}

std::string MergeOracle::check_counts(const MergeCounts& counts) const {
  MergeCounts expected{.late = late_, .worst_late = worst_late_};
  expected.longest_delay = counts.longest_delay;
  std::uint64_t by_chance = 0;  // samples ahead whose replacement key may be their own
  for (std::size_t each = 0; each < rings_.size(); ++each) {
    std::size_t last = 0;
    for (std::size_t i = 0; i < rings_[each].size(); ++i) {
      const Event& event = rings_[each][i];
      ++expected.delivered;
      expected.ahead += event.kind == Kind::Sample && event.ordered_by != event.key;
      by_chance += event.kind == Kind::Sample && event.ordered_by == event.key &&
                   may_be_ahead(event.key, each, i, *event.run);
      // M3: an event that was written before this one was delivered after it.
      expected.displaced += event.turn < last;
      last = std::max(last, event.turn);
    }
  }
  // The merge may count more if a flush put events before one that later turned out to be ahead.
  const bool has_flushed =
      std::any_of(runs_.begin(), runs_.end() - 1, [](const Run& run) { return run.is_flush(); });
  if (has_flushed && counts.displaced > expected.displaced) expected.displaced = counts.displaced;
  if (counts.ahead - expected.ahead <= by_chance) expected.ahead = counts.ahead;
  if (counts == expected) return check_delays(counts.longest_delay);
  return violation(
      Invariant::late,
      fmt::format("counted: {} delivered, {} late by {}, {} displaced, {} ahead; are: {}, {} by "
                  "{}, {}, {}",
                  counts.delivered, counts.late, counts.worst_late, counts.displaced, counts.ahead,
                  expected.delivered, expected.late, expected.worst_late, expected.displaced,
                  expected.ahead));
}

// M7: checks the longest delay against those of the records that a look did not see. The merge may
// miss such a delay if earlier records of the ring were left unread, or if only a flush came before
// the record was seen.
std::string MergeOracle::check_delays(std::uint64_t reported) const {
  std::uint64_t least = 0;
  std::uint64_t most = 0;
  for (std::size_t ring = 0; ring < rings_.size(); ++ring) {
    for (std::size_t i = 0; i < rings_[ring].size(); ++i) {
      const Event& event = rings_[ring][i];
      std::size_t run = 0;
      std::uint64_t before = 0;
      for (; !is_there(ring, i, run); ++run) {
        if (!runs_[run].is_flush()) before = runs_[run].clocks[ring];
      }
      const bool has_delay = event.kind == Kind::Sample && before > event.key;
      if (!has_delay) continue;
      const std::uint64_t delay = before - event.key;
      most = std::max(most, delay);
      if (runs_[run - 1].is_flush()) continue;
      bool all_came = *event.run == run;
      for (std::size_t j = 0; j < runs_[run - 1].visible[ring]; ++j) {
        all_came &= *rings_[ring][j].run < run;
      }
      if (all_came) least = std::max(least, delay);
    }
  }
  if (least <= reported && reported <= most) return {};
  return violation(Invariant::late, fmt::format("the longest delay is {}: not from {} to {}",
                                                reported, least, most));
}

std::string MergeOracle::judge(std::vector<Run> runs, const MergeCounts& counts) {
  runs_ = std::move(runs);
  if (auto wrong = assign(); !wrong.empty()) return wrong;
  const std::string wrong = judge_assigned(counts);
  if (wrong.empty()) return {};
  was_read_ = false;
  return judge_assigned(counts).empty() ? std::string{} : wrong;
}

std::string MergeOracle::judge_assigned(const MergeCounts& counts) {
  delivered_.clear();
  newest_ = late_ = worst_late_ = 0;
  for (std::size_t ring = 0; ring < rings_.size(); ++ring) {
    delivered_.emplace_back(rings_[ring].size());
    for (std::size_t i = 0; i < rings_[ring].size(); ++i) {
      if (auto wrong = check_key(ring, i); !wrong.empty()) return wrong;
    }
  }
  for (std::size_t run = 0; run < runs_.size(); ++run) {
    if (auto wrong = replay(run); !wrong.empty()) return wrong;
  }
  return check_counts(counts);
}

}  // namespace perfring::proptests
