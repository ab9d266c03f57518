#include "harness/simulator/judge.h"

#include <fmt/format.h>

#include <algorithm>
#include <variant>

#include "harness/oracle/checker.h"
#include "harness/oracle/drain_watch.h"
#include "harness/oracle/payload.h"

namespace perfring::simulator {
namespace {

class LedgerJudge final : public Judge {
 public:
  LedgerJudge(const perf_event_mmap_page& page, Bytes data, oracle::Ledger& ledger)
      : checker_{page, data, ledger} {}

  void begin_drain() override { checker_.begin_drain(); }
  void check_delivery(const PerfEvent& event) override { checker_.check_delivery(event); }
  void check_finished(const PerfEvent& event) override { checker_.check_finished(event); }
  void end_drain(std::optional<std::uint32_t>) override { checker_.end_drain(); }
  void check_read(const std::byte* address, std::size_t size) override {
    checker_.check_read(address, size);
  }
  void settle() override { checker_.settle(); }

  const oracle::Received& received() const override { return checker_.received(); }
  std::uint64_t released() const override { return checker_.released(); }
  bool has_known_bytes() const override { return !checker_.desynchronized(); }

 private:
  const std::optional<oracle::Violation>& own_violation() const override {
    return checker_.violation();
  }

  oracle::Checker checker_;
};

class HostileJudge final : public Judge {
 public:
  HostileJudge(const perf_event_mmap_page& page, Bytes data)
      : ring_size_{data.size()}, watch_{page, data} {}

  void begin_drain() override { watch_.begin_drain(); }
  void check_delivery(const PerfEvent& event) override {
    watch_.check_event(event);
    received_.delivered += std::holds_alternative<Sample>(event) ? 1 : 0;
    received_.malformed += std::holds_alternative<Malformed>(event) ? 1 : 0;
  }
  void check_finished(const PerfEvent&) override {}
  void end_drain(std::optional<std::uint32_t> head) override {
    watch_.end_drain(head ? std::optional{oracle::unread(ring_size_, watch_.tail(), *head)}
                          : std::nullopt);
    // Counts bytes of the ring: the drain skips to an impossible position, however far away.
    received_.bytes += std::min<std::uint64_t>(watch_.moved(), ring_size_);
  }
  void check_read(const std::byte* address, std::size_t size) override {
    watch_.check_read(address, size);
  }
  void settle() override {}

  const oracle::Received& received() const override { return received_; }
  std::uint64_t released() const override { return watch_.tail(); }
  bool has_known_bytes() const override { return false; }

 private:
  const std::optional<oracle::Violation>& own_violation() const override {
    return watch_.violation();
  }

  const std::size_t ring_size_;
  oracle::DrainWatch watch_;
  oracle::Received received_;
};

}  // namespace

std::unique_ptr<Judge> judge_by_ledger(const perf_event_mmap_page& page, Bytes data,
                                       oracle::Ledger& ledger) {
  return std::make_unique<LedgerJudge>(page, data, ledger);
}

std::unique_ptr<Judge> judge_of_hostile_ring(const perf_event_mmap_page& page, Bytes data) {
  return std::make_unique<HostileJudge>(page, data);
}

void Drains::begin_drain() {
  ++count_;
  open_ = true;
  reads_ = 0;
  head_.reset();
  tail_before_ = judge_->released();
  judge_->begin_drain();
}

void Drains::check_delivery(const PerfEvent& event) {
  reads_ = 0;
  judge_->check_delivery(event);
  if (!judge_->violation()) note(event);
}

// If the bytes are unknown, adds only their number: their values depend on the machine's byte
// order.
void Drains::note(const PerfEvent& event) {
  const bool known = judge_->has_known_bytes();
  digest_.add(event.index());
  if (const auto* sample = std::get_if<Sample>(&event)) {
    digest_.add(sample->head.size());
    digest_.add(sample->tail.size());
    if (const auto claim = known ? oracle::claimed_payload(*sample) : std::nullopt) {
      digest_.add(claim->sequence);
    }
  } else if (const auto* bad = std::get_if<Malformed>(&event)) {
    digest_.add(static_cast<std::uint64_t>(bad->defect));
    digest_.add(bad->head.size());
    digest_.add(bad->tail.size());
  } else if (known) {
    digest_.add(std::get<Lost>(event).count);
  }
}

void Drains::end_drain() {
  open_ = false;
  reads_ = 0;
  const std::uint64_t tail = page_.data_tail;
  digest_.add(tail);
  judge_->end_drain(head_);
  // A writer may still be writing to bytes that a faulty consumer has released.
  if (!judge_->violation()) poison_.note_release(tail_before_, tail - tail_before_);
}

bool Drains::stop_endless() {
  judge_->violate(
      oracle::Invariant::bounded,
      fmt::format("the consumer has read {} times without delivering an event", reads_ - 1));
  return false;
}

}  // namespace perfring::simulator
