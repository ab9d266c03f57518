#include "harness/oracle/ledger.h"

#include <fmt/format.h>

#include <cerrno>
#include <stdexcept>
#include <utility>

namespace perfring::oracle {
namespace {

constexpr std::uint64_t kUnused = 8;  // bytes that a full ring leaves unused (K12)

}  // namespace

Ledger::Ledger(std::uint64_t size, Keep keep, std::uint64_t start, unsigned word_bits)
    : size_{size},
      mask_{word_bits == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << word_bits) - 1},
      keep_{keep},
      position_{start},
      overwritten_until_{start},
      records_(keep == Keep::Records ? 64 : 0) {}

void Ledger::begin_attempt(const Payload& payload) {
  if (depth_ == attempts_.size()) throw std::logic_error{"attempts nested too deep"};
  note_interruption();
  attempts_[depth_] = {};
  attempts_[depth_].payload = payload;
  attempts_[depth_].saw_losses = unreported_ != 0;
  attempts_[depth_].saw_none = unreported_ == 0;
  ++depth_;
}

void Ledger::end_attempt(int rc) {
  if (depth_ == 0) throw std::logic_error{"an attempt ended that did not begin"};
  const Attempt& attempt = attempts_[--depth_];
  const unsigned reservations = rc == 0 ? 1 : 0;
  const unsigned refusals = rc == -ENOSPC ? 1 : 0;
  if (attempt.reservations != reservations || attempt.refusals != refusals) {
    violate(Invariant::no_loss,
            fmt::format("{} returned {}, but reserved {} times and counted as lost {} times",
                        name(attempt.payload), rc, attempt.reservations, attempt.refusals));
  }
  if (attempt.lost_count_pending) {
    violate(Invariant::no_loss, name(attempt.payload) + " reserved a LOST but did not write it");
  }
  if (rc == 0) {
    ++totals_.accepted;
  } else if (rc == -ENOSPC) {
    ++totals_.lost;
  } else {
    ++totals_.failed;
  }
}

void Ledger::note_publication(std::uint64_t data_head) {
  published_ = position_ - ((position_ - data_head) & mask_);
  if (!shown_ || after(*published_, *shown_)) shown_ = published_;
}

// The kernel truncates data_tail to the width of its own positions.
void Ledger::note_tail_read(std::uint64_t data_tail) {
  if (depth_ == 0) throw std::logic_error{"a read of data_tail outside any attempt"};
  attempts_[depth_ - 1].unread = (position_ - data_tail) & mask_;
}

void Ledger::note_interruption() {
  for (std::size_t i = 0; i < depth_; ++i) attempts_[i].interrupted = true;
}

void Ledger::note_refusal(bool paused) {
  if (depth_ != 0) {
    Attempt& attempt = attempts_[depth_ - 1];
    const auto why = unjustified_refusal({.length = attempt.payload.length,
                                          .unread = attempt.unread,
                                          .paused = paused,
                                          .interrupted = attempt.interrupted});
    if (why) violate(Invariant::no_loss, *why);
    ++attempt.refusals;
  }
  unreported(unreported_ + 1);
}

// Before it was interrupted, the output may have found the ring paused, or losses that the
// interrupt has reported since.
std::optional<std::string> Ledger::unjustified_refusal(const Refusal& refusal) const {
  if (!refusal.unread) {
    if (refusal.paused || refusal.interrupted) return std::nullopt;
    return "refused, though the ring is not paused";
  }
  const bool lost_due = unreported_ != 0 || refusal.interrupted;
  const std::uint64_t need = record_size(refusal.length) % 65536 + (lost_due ? kLostSize : 0);
  // More bytes unread than the ring holds: the data_tail of a faulty consumer.
  if (*refusal.unread > size_ || *refusal.unread + need > size_ - kUnused) return std::nullopt;
  return fmt::format("{} bytes were refused, with {} of {} unread", need, *refusal.unread, size_);
}

void Ledger::unreported(std::uint64_t lost) {
  unreported_ = lost;
  for (std::size_t i = 0; i < depth_; ++i) {
    (lost != 0 ? attempts_[i].saw_losses : attempts_[i].saw_none) = true;
  }
}

// A LOST reports all losses so far, or 0 if an interrupt has reported them since the reservation.
void Ledger::note_report(std::uint64_t lost) {
  if (depth_ == 0) throw std::logic_error{"a LOST outside any attempt"};
  Attempt& attempt = attempts_[depth_ - 1];
  if (!std::exchange(attempt.lost_count_pending, false) || lost != unreported_) {
    violate(Invariant::no_loss,
            fmt::format("a LOST of {}, but {} were refused", lost, unreported_));
  }
  unreported(0);
  // A faulty kernel may have published the record already, and the Checker may have popped it.
  const bool pending = attempt.record - first_ < last_ - first_;
  if (pending) records_[slot(attempt.record)].lost = lost;
}

void Ledger::note_reservation(std::uint64_t position, std::uint64_t size, std::uint64_t data_tail) {
  if (depth_ == 0) throw std::logic_error{"a reservation outside any attempt"};
  Attempt& attempt = attempts_[depth_ - 1];
  ++attempt.reservations;
  const std::uint64_t sample = record_size(attempt.payload.length) % 65536;  // K6
  const bool has_lost = size != sample;
  // The kernel decides whether to add a LOST some time before it reserves. An interrupt in between
  // may have reported the losses, or added to them.
  const bool may = has_lost ? attempt.saw_losses : attempt.saw_none;
  const std::uint64_t expected = sample + (has_lost == may ? kLostSize : 0);
  if ((position & mask_) != (position_ & mask_) || size != expected) {
    violate(Invariant::no_loss, fmt::format("{} bytes reserved at {}; expected {} at {}", size,
                                            position, expected, position_ & mask_));
  }
  const std::uint64_t unread = (position_ - data_tail) & mask_;
  if (unread + size > size_ - kUnused) {
    violate(Invariant::no_early_release,
            fmt::format("{} bytes reserved at {} with {} unread: a ring of {} holds {}", size,
                        position_, unread, size_, size_ - kUnused));
  }
  attempt.lost_count_pending = has_lost;
  attempt.record = last_;
  if (sample == 0) ++totals_.invisible;
  if (size != 0 && keep_ == Keep::Records) {
    if (pending() == records_.size()) lengthen();
    records_[slot(last_++)] = {position_, 0, attempt.payload, static_cast<std::uint32_t>(sample),
                               has_lost};
  }
  position_ += size;
  note_spill(attempt, size, data_tail);
}

// Conservative: as soon as any unread byte may be overwritten, every unread record counts as
// overwritten.
void Ledger::note_spill(Attempt& attempt, std::uint64_t size, std::uint64_t data_tail) {
  const std::uint64_t length = record_size(attempt.payload.length);
  if (length > 65535) {
    const std::uint64_t sample_at = position_ - length % 65536;
    attempt.spills = true;
    attempt.spills_to = sample_at + length;
    const std::uint64_t unread = (sample_at - data_tail) & mask_;
    if (unread + length > size_) overwritten_until_ = position_;
  }
  // An outer output that was interrupted in the middle of its spill resumes it, over this record.
  for (std::size_t i = 0; i + 1 < depth_; ++i) {
    const Attempt& outer = attempts_[i];
    if (outer.spills && after(outer.spills_to, position_ - size)) overwritten_until_ = position_;
  }
}

void Ledger::lengthen() {
  std::vector<Written> in_order;
  for (std::uint64_t i = first_; i != last_; ++i) in_order.push_back(at(i));
  records_.resize(2 * records_.size());
  for (std::uint64_t i = first_; i != last_; ++i)
    records_[slot(i)] = in_order[static_cast<std::size_t>(i - first_)];
}

bool Ledger::contains(const Payload& payload) const {
  for (std::uint64_t i = first_; i != last_; ++i) {
    if (at(i).payload == payload) return true;
  }
  return false;
}

}  // namespace perfring::oracle
