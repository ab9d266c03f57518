#include "harness/simulator/judge.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <string>
#include <utility>
#include <variant>

#include "harness/oracle/payload.h"

namespace perfring::simulator {
namespace {

using oracle::Invariant;
using oracle::Violation;

constexpr std::size_t kKeysKept = 64;

// A record that was published and not delivered. Its LOST is a separate event.
struct Due {
  oracle::Written written;
  KeyedEvent timed;
  bool lost = false;  // its LOST is due
  bool sample = true;
};

class RingOfMerge final : public MergeJudge {
 public:
  RingOfMerge(const perf_event_mmap_page& page, Bytes data, oracle::Ledger& ledger,
              MergeOrder& order, MergeClock clock)
      : page_{page},
        data_{data},
        ledger_{ledger},
        order_{order},
        clock_{std::move(clock)},
        end_{ledger.position()},
        tail_{ledger.position()} {}

  void note_publication() override {
    const std::uint64_t now = clock_.now();
    while (!ledger_.empty() && !oracle::after(ledger_.front().end(), ledger_.published())) {
      take(ledger_.front(), now);
      ledger_.pop();
    }
  }

  void begin_drain() override {
    in_drain_ = true;
    if (data_tail() != tail_) {
      violate(Invariant::tail_honest,
              fmt::format("data_tail went from {} to {} outside any run", tail_, data_tail()));
    }
  }

  void check_delivery(const PerfEvent& event) override {
    if (violation()) return;
    if (!in_drain_) return violate(Invariant::once, "an event was delivered outside any run");
    if (data_tail() != tail_) {
      return violate(Invariant::tail_honest,
                     fmt::format("data_tail went from {} to {} while events of the run were still "
                                 "to be delivered",
                                 tail_, data_tail()));
    }
    if (const auto* const sample = std::get_if<Sample>(&event)) return take(*sample);
    if (const auto* const lost = std::get_if<Lost>(&event)) return take(*lost);
    const auto& bad = std::get<Malformed>(event);
    violate(Invariant::intact, fmt::format("{} of {} bytes, though the ring is sound",
                                           to_string(bad.defect), bad.size()));
  }

  void check_finished(const PerfEvent& event) override {
    const auto* const sample = std::get_if<Sample>(&event);
    if (sample == nullptr || violation() || holds(*sample, last_)) return;
    violate(Invariant::no_early_release,
            name(last_) + " was overwritten while the consumer read it");
  }

  void end_drain(std::optional<std::uint32_t>) override {
    in_drain_ = false;
    const std::uint64_t tail = data_tail();
    received_.bytes += tail - std::exchange(tail_, tail);
    if (!due_.empty() && oracle::after(tail, oldest_at())) {
      violate(Invariant::tail_honest,
              fmt::format("data_tail is {}, past {}, which was not delivered", tail,
                          name(due_.front().written.payload)));
    }
    const std::uint64_t delivered_to = due_.empty() ? end_ : oldest_at();
    if (tail != delivered_to) {
      violate(Invariant::tail_honest,
              fmt::format("data_tail is {} after a run that delivered everything before {}", tail,
                          delivered_to));
    }
  }

  // Only unread bytes may be read: none outside [data_tail, data_head).
  void check_read(const std::byte* address, std::size_t size) override {
    const std::size_t offset =
        reinterpret_cast<std::uintptr_t>(address) - reinterpret_cast<std::uintptr_t>(data_.data());
    const bool inside = offset < data_.size() && size <= data_.size() - offset;
    const std::uint64_t from_tail = (offset - tail_) & (data_.size() - 1);
    if (inside && from_tail + size <= end_ - tail_) return;
    violate(Invariant::in_ring,
            fmt::format("{} bytes at offset {} of a ring of {}, of which {} from {} on are unread",
                        size, static_cast<std::ptrdiff_t>(offset), data_.size(), end_ - tail_,
                        tail_ & (data_.size() - 1)));
  }

  void settle() override {
    if (violation()) return;
    const oracle::Totals& totals = ledger_.totals();
    if (!due_.empty()) {
      violate(Invariant::no_loss, fmt::format("{} records were not delivered, the first of them {}",
                                              due_.size(), name(due_.front().written.payload)));
    } else if (received_.lost + ledger_.unreported() != totals.lost) {
      violate(Invariant::no_loss,
              fmt::format("{} were refused, but {} reported as lost and {} not yet", totals.lost,
                          received_.lost, ledger_.unreported()));
    }
  }

  std::optional<std::uint64_t> held_back_key(std::uint64_t clock,
                                             std::uint64_t bound) const override {
    std::size_t sorted = 0;
    for (const Due& due : due_) {
      if (due.timed.published >= clock || sorted >= kMergeWindow) return std::nullopt;
      const bool is_due = due.lost || due.sample;
      if (is_due && due.timed.key < bound) return due.timed.key;
      sorted += (due.lost ? 1U : 0U) + (due.sample ? 1U : 0U);
    }
    return std::nullopt;
  }
  bool has_undelivered() const override { return !due_.empty(); }
  std::uint64_t newest_key() const override { return keys_.empty() ? 0 : keys_.back(); }
  std::optional<std::uint64_t> end_of_oldest() const override {
    if (due_.empty()) return std::nullopt;
    return due_.front().written.end();
  }

  const oracle::Received& received() const override { return received_; }
  std::uint64_t released() const override { return tail_; }
  bool has_known_bytes() const override { return true; }

 private:
  const std::optional<Violation>& own_violation() const override { return ledger_.violation(); }

  std::uint64_t data_tail() const { return __atomic_load_n(&page_.data_tail, __ATOMIC_RELAXED); }

  // The position of the oldest event that was not delivered.
  std::uint64_t oldest_at() const {
    const Due& oldest = due_.front();
    return oldest.lost || !oldest.written.has_lost ? oldest.written.position
                                                   : oldest.written.sample_at();
  }

  void take(const oracle::Written& written, std::uint64_t now) {
    const std::uint64_t key = clock_.key_of(written.payload.sequence);
    const auto higher = std::ranges::count_if(keys_, [&](std::uint64_t k) { return k > key; });
    due_.push_back({written,
                    {key, now, written.position, static_cast<std::size_t>(higher)},
                    written.has_lost,
                    written.size != 0});
    order_.note_publication(now > key ? now - key : 0);
    for (unsigned i = 0; i != (written.has_lost ? 2U : 1U); ++i) keys_.push_back(key);
    while (keys_.size() > kKeysKept) keys_.pop_front();
    end_ = written.end();
  }

  void take(const Sample& sample) {
    const auto claim = oracle::claimed_payload(sample);
    const auto found = std::ranges::find_if(due_, [&](const Due& due) {
      return claim && due.sample && due.written.payload.sequence == claim->sequence;
    });
    if (found == due_.end()) {
      const bool whole = claim && holds(sample, *claim);
      return violate(whole ? Invariant::once : Invariant::no_invention,
                     whole ? name(*claim) + " was delivered, but was not due"
                           : fmt::format("a sample of {} bytes that nobody wrote", sample.size()));
    }
    last_ = found->written.payload;
    if (!holds(sample, last_)) {
      return violate(Invariant::intact, name(last_) + " was delivered with wrong bytes");
    }
    const std::uint64_t at = (found->written.sample_at() + 12) & (data_.size() - 1);
    if (sample.head.data() != data_.data() + at && !sample.head.empty()) {
      return violate(Invariant::once,
                     name(last_) + " was delivered from a place other than where it was written");
    }
    KeyedEvent timed = found->timed;
    timed.position = found->written.sample_at();
    ++received_.delivered;
    found->sample = false;
    comes(timed, name(last_));
  }

  void take(const Lost& lost) {
    const auto found = std::ranges::find_if(due_, [&](const Due& due) {
      return due.lost && due.written.lost == lost.count && due.timed.key == order_.event->key;
    });
    if (found == due_.end()) {
      return violate(Invariant::no_loss, fmt::format("an unexpected LOST of {} with the key {}",
                                                     lost.count, order_.event->key));
    }
    received_.lost += lost.count;
    found->lost = false;
    comes(found->timed, fmt::format("the LOST of {}", lost.count));
  }

  void comes(const KeyedEvent& timed, const std::string& what) {
    while (!due_.empty() && !due_.front().lost && !due_.front().sample) due_.pop_front();
    if (order_.event->key != timed.key) {
      return violate(Invariant::merged, fmt::format("{} was ordered by {}, but its key is {}", what,
                                                    order_.event->key, timed.key));
    }
    auto violation = order_.check_order(timed);
    if (violation) violate(violation->invariant, what + " " + violation->message);
  }

  const perf_event_mmap_page& page_;
  const Bytes data_;
  oracle::Ledger& ledger_;
  MergeOrder& order_;
  const MergeClock clock_;
  std::deque<Due> due_;
  std::deque<std::uint64_t> keys_;  // keys of the last events published
  std::uint64_t end_;               // end of the published records
  std::uint64_t tail_;              // data_tail after the last run
  bool in_drain_ = false;
  oracle::Payload last_;
  oracle::Received received_;
};

}  // namespace

void MergeOrder::begin_run(bool is_flush) {
  is_flush_ = is_flush;
  has_bound_ = has_last_ = false;
}

void MergeOrder::note_clock(std::uint64_t now) {
  if (std::exchange(has_bound_, true)) return;
  bound_ = now > slack_ ? now - slack_ : 0;
}

std::optional<Violation> MergeOrder::check_order(const KeyedEvent& timed) {
  const std::uint64_t key = timed.key;
  const bool late = key < newest_;
  ++delivered_;
  if (event->late != late) {
    return Violation{Invariant::late, fmt::format("is marked as {}, with the key {} after {}",
                                                  event->late ? "late" : "in time", key, newest_)};
  }
  if (!is_flush_ && key >= bound_) {
    return Violation{
        Invariant::merged,
        fmt::format("was delivered with the key {}, which is not lower than the bound, {}", key,
                    bound_)};
  }
  if (!late) {
    const bool stands_before =
        event->ring < last_ring_ ||
        (event->ring == last_ring_ && oracle::after(last_position_, timed.position));  // may wrap
    const bool ahead = has_last_ && key == last_key_ && stands_before;
    last_ring_ = event->ring;
    last_position_ = timed.position;
    has_last_ = true;
    newest_ = last_key_ = key;
    if (!ahead) return std::nullopt;
    return Violation{Invariant::merged, "was delivered after a later event with the same key"};
  }
  ++late_;
  worst_late_ = std::max(worst_late_, newest_ - key);
  const std::uint64_t delay = timed.published > key ? timed.published - key : 0;
  if (delay > slack_ || timed.displaced_by >= kMergeWindow) return std::nullopt;
  return Violation{Invariant::late,
                   fmt::format("is late by {}, although its writer took {} and the slack is {}",
                               newest_ - key, delay, slack_)};
}

std::optional<Violation> MergeOrder::settle(const MergeCounts& counts) const {
  if (counts.delivered == delivered_ && counts.late == late_ && counts.worst_late == worst_late_ &&
      counts.ahead == 0 && counts.longest_delay <= longest_delay_) {
    return std::nullopt;
  }
  return Violation{
      Invariant::late,
      fmt::format("the merge counted {} events, {} late by at most {}, {} ahead and a delay of {}; "
                  "it delivered {}, {} late by at most {}, and the longest delay was {}",
                  counts.delivered, counts.late, counts.worst_late, counts.ahead,
                  counts.longest_delay, delivered_, late_, worst_late_, longest_delay_)};
}

std::unique_ptr<MergeJudge> judge_of_merge(const perf_event_mmap_page& page, Bytes data,
                                           oracle::Ledger& ledger, MergeOrder& order,
                                           MergeClock clock) {
  return std::make_unique<RingOfMerge>(page, data, ledger, order, std::move(clock));
}

}  // namespace perfring::simulator
