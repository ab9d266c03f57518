#include "harness/oracle/checker.h"

#include <fmt/format.h>

#include <string>
#include <variant>

#include "harness/oracle/payload.h"

namespace perfring::oracle {
namespace {

// Returns true if header.size was truncated, which makes the record malformed (K6 to K8).
bool is_oversize(const Written& written) {
  return record_size(written.payload.length) != written.size;
}

}  // namespace

Checker::Checker(const perf_event_mmap_page& page, Bytes data, Ledger& ledger)
    : data_{data},
      ledger_{ledger},
      watch_{page, data},
      at_{ledger.position()},
      released_{ledger.position()} {}

void Checker::check_delivery(const PerfEvent& event) {
  watch_.check_event(event);
  if (violation()) return;
  if (phase_ == Phase::Skipped) return resolve_skip(std::get_if<Sample>(&event));
  if (is_overwritten()) phase_ = Phase::Desynchronized;
  if (phase_ == Phase::Synchronized) {
    expect(event);
  } else {
    ++received_.desynchronized_events;
  }
}

void Checker::expect(const PerfEvent& event) {
  if (const auto* given = std::get_if<Sample>(&event)) return sample(*given);
  if (const auto* given = std::get_if<Lost>(&event)) return lost(*given);
  malformed(std::get<Malformed>(event));
}

const Written* Checker::due() const {
  return ledger_.empty() || !after(ledger_.shown(), at_) ? nullptr : &ledger_.front();
}

void Checker::sample(const Sample& sample) {
  const Written* const written = due();
  const bool fits = written != nullptr && (!written->has_lost || lost_delivered_) &&
                    holds(sample, written->payload);
  if (!fits) return unexpected(sample);
  if (!is_at(sample.head, written->sample_at() + 12)) {
    return violate(
        Invariant::once,
        name(written->payload) + " was delivered from a place other than where it was written");
  }
  ++received_.delivered;
  last_ = written->payload;
  last_at_ = written->sample_at();
  consume_due();
}

void Checker::check_finished(const PerfEvent& event) {
  const auto* const sample = std::get_if<Sample>(&event);
  if (sample == nullptr || violation() || phase_ != Phase::Synchronized || is_overwritten()) return;
  if (after(ledger_.overwritten_until(), last_at_)) return;  // overwritten since its delivery (K10)
  if (!holds(*sample, last_)) {
    violate(Invariant::no_early_release,
            name(last_) + " was overwritten while the consumer read it");
  }
}

void Checker::consume_due() {
  at_ = ledger_.front().end();
  lost_delivered_ = false;
  ledger_.pop();
}

// Finds the invariant that a sample other than the due one violates.
void Checker::unexpected(const Sample& sample) {
  const auto claim = claimed_payload(sample);
  const bool whole = claim && holds(sample, *claim);
  const Written* const written = due();
  const std::string due_name = written == nullptr ? "nothing" : name(written->payload);
  if (written != nullptr && whole && ledger_.contains(*claim)) {
    if (*claim != written->payload) {
      skipped_ = written->payload;
      phase_ = Phase::Skipped;
      return;
    }
    return violate(Invariant::no_loss, "the LOST before " + due_name + " was not delivered");
  }
  if (written != nullptr && is_at(sample.head, written->sample_at() + 12)) {
    return violate(Invariant::intact, due_name + " was delivered with wrong bytes");
  }
  const bool past_head = written == nullptr && is_at(sample.head, at_ + 12);
  if (whole && !past_head) {
    return violate(Invariant::once, name(*claim) + " was delivered again; expected " + due_name);
  }
  violate(
      Invariant::no_invention,
      fmt::format("a sample of {} bytes that nobody wrote; expected {}", sample.size(), due_name));
}

// If the skipped record comes next, the two records were swapped. Otherwise one was lost.
void Checker::resolve_skip(const Sample* next) {
  if (next != nullptr && holds(*next, skipped_)) {
    return violate(Invariant::order,
                   name(skipped_) + " was delivered after the record that follows it");
  }
  violate(Invariant::no_loss, name(skipped_) + " was skipped");
}

void Checker::lost(const Lost& lost) {
  const Written* const written = due();
  if (written == nullptr || !written->has_lost || lost_delivered_) {
    return violate(Invariant::no_invention, fmt::format("an unexpected LOST of {}", lost.count));
  }
  if (lost.count != written->lost) {
    return violate(Invariant::no_loss, fmt::format("a LOST of {} was delivered, but {} were lost",
                                                   lost.count, written->lost));
  }
  received_.lost += lost.count;
  at_ += kLostSize;
  lost_delivered_ = true;
  if (written->size == 0) consume_due();  // K7
}

void Checker::malformed(const Malformed& malformed) {
  const Written* const written = due();
  const std::uint64_t size = malformed.size();
  const bool fits = written != nullptr && is_oversize(*written) &&
                    (!written->has_lost || lost_delivered_) &&
                    malformed.defect == Defect::BadSample && size == written->size;
  if (!fits) {
    return violate(Invariant::intact,
                   fmt::format("{} of {} bytes; expected {}", to_string(malformed.defect), size,
                               written == nullptr ? "nothing" : name(written->payload)));
  }
  ++received_.malformed;
  consume_due();
}

void Checker::end_drain() {
  watch_.end_drain();
  if (phase_ == Phase::Skipped) resolve_skip(nullptr);
  received_.bytes += watch_.moved();
  if (violation()) return;
  if (phase_ != Phase::Desynchronized) {
    if (watch_.tail() != at_) {
      violate(
          Invariant::tail_honest,
          fmt::format("data_tail is {} after a drain whose events end at {}", watch_.tail(), at_));
    }
  } else {
    resynchronize();
  }
  released_ = watch_.tail();
}

// Pops the records that data_tail has passed. If data_tail is now at the start of a record, or just
// after its LOST, the next event is known again.
void Checker::resynchronize() {
  const std::uint64_t tail = watch_.tail();
  while (!ledger_.empty() && !after(ledger_.front().end(), tail)) {
    const Written& written = ledger_.front();
    ++received_.overwritten;
    if (written.has_lost && !lost_delivered_) received_.overwritten_lost += written.lost;
    lost_delivered_ = false;
    ledger_.pop();
  }
  const bool at_sample =
      !ledger_.empty() && ledger_.front().has_lost && ledger_.front().sample_at() == tail;
  const bool at_record = ledger_.empty() || ledger_.front().position == tail;
  at_ = tail;
  if (!at_record && !at_sample) return;
  if (at_sample) {
    received_.overwritten_lost += ledger_.front().lost;
    lost_delivered_ = true;
  }
  phase_ = Phase::Synchronized;  // until the next event, if more bytes are overwritten
}

void Checker::settle() {
  if (violation()) return;
  const Totals& totals = ledger_.totals();
  if (ledger_.pending() != 0) {
    return violate(
        Invariant::no_loss,
        fmt::format("the ring reports empty, but records are still in it: {}, the first of them {}",
                    ledger_.pending(), name(ledger_.front().payload)));
  }
  const std::uint64_t reported = received_.lost + received_.overwritten_lost + ledger_.unreported();
  if (reported != totals.lost) {
    return violate(
        Invariant::no_loss,
        fmt::format("{} were refused, but {} reported as lost and {} not yet", totals.lost,
                    received_.lost + received_.overwritten_lost, ledger_.unreported()));
  }
  // A LOST that is alone is not an accepted record (K7), but counts as one in `is_overwritten`.
  const std::uint64_t visible = totals.accepted - totals.invisible;
  const std::uint64_t received = received_.delivered + received_.malformed;
  if (received + received_.overwritten < visible) {
    violate(Invariant::no_loss,
            fmt::format("{} were accepted, but {} delivered, {} malformed and {} overwritten",
                        visible, received_.delivered, received_.malformed, received_.overwritten));
  }
}

// Returns true if the slice starts at this position of the ring. An empty slice is at any position.
bool Checker::is_at(Bytes head, std::uint64_t position) const {
  return head.empty() || head.data() == data_.data() + (position & (data_.size() - 1));
}

const std::optional<Violation>& Checker::violation() const {
  if (FirstViolation::violation()) return FirstViolation::violation();
  if (watch_.violation()) return watch_.violation();
  return ledger_.violation();
}

}  // namespace perfring::oracle
