#include "harness/simulator/judge.h"

#include <algorithm>
#include <utility>

#include "harness/oracle/drain_watch.h"

namespace perfring::simulator {
namespace {

class LedgerJudge final : public Judge {
 public:
  LedgerJudge(const perf_event_mmap_page& page, Bytes data, oracle::Ledger& ledger)
      : checker_{page, data, ledger} {}

  void drain_begins() override { checker_.drain_begins(); }
  void delivered(const PerfEvent& event) override { checker_.delivered(event); }
  void finished_with(const PerfEvent& event) override { checker_.finished_with(event); }
  void drain_ends(std::optional<std::uint32_t>) override { checker_.drain_ends(); }
  void reads(const std::byte* address, std::size_t size) override { checker_.reads(address, size); }
  void settle() override { checker_.settle(); }

  const oracle::Received& received() const override { return checker_.received(); }
  std::uint64_t released() const override { return checker_.released(); }
  bool knows_the_bytes() const override { return !checker_.desynchronized(); }

 private:
  const std::optional<oracle::Violation>& noticed() const override { return checker_.violation(); }

  oracle::Checker checker_;
};

class HostileJudge final : public Judge {
 public:
  HostileJudge(const perf_event_mmap_page& page, Bytes data)
      : ring_size_{data.size()}, watch_{page, data} {}

  void drain_begins() override { watch_.begins(); }
  void delivered(const PerfEvent& event) override {
    watch_.event(event);
    received_.delivered += std::holds_alternative<Sample>(event) ? 1 : 0;
    received_.malformed += std::holds_alternative<Malformed>(event) ? 1 : 0;
  }
  void finished_with(const PerfEvent&) override {}
  void drain_ends(std::optional<std::uint32_t> head) override {
    const auto available = static_cast<std::uint32_t>(head.value_or(0) - watch_.tail());
    watch_.ends(head ? std::optional{available} : std::nullopt);
    // Bytes of ring: the drain skips to an impossible position, however far away it is.
    received_.bytes += std::min<std::uint64_t>(watch_.moved(), ring_size_);
  }
  void reads(const std::byte* address, std::size_t size) override { watch_.reads(address, size); }
  void settle() override {}

  const oracle::Received& received() const override { return received_; }
  std::uint64_t released() const override { return watch_.tail(); }
  bool knows_the_bytes() const override { return false; }

 private:
  const std::optional<oracle::Violation>& noticed() const override { return watch_.violation(); }

  const std::size_t ring_size_;
  oracle::DrainWatch watch_;
  oracle::Received received_;
};

}  // namespace

void Judge::violate(oracle::Invariant invariant, std::string message) {
  if (!reported_) reported_ = oracle::Violation{invariant, std::move(message)};
}

std::unique_ptr<Judge> judge_by_ledger(const perf_event_mmap_page& page, Bytes data,
                                       oracle::Ledger& ledger) {
  return std::make_unique<LedgerJudge>(page, data, ledger);
}

std::unique_ptr<Judge> judge_of_hostile_ring(const perf_event_mmap_page& page, Bytes data) {
  return std::make_unique<HostileJudge>(page, data);
}

}  // namespace perfring::simulator
