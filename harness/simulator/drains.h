#ifndef HARNESS_SIMULATOR_DRAINS_H_
#define HARNESS_SIMULATOR_DRAINS_H_

#include <linux/perf_event.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "harness/program/sanitizers.h"
#include "harness/simulator/judge.h"
#include "harness/simulator/random.h"
#include "perfring/perf_event.h"

namespace perfring::simulator {

// Under AddressSanitizer, the bytes of a ring that hold no live record, [data_tail, data_head)
// excepted, are poisoned: a read of one ends the program. Otherwise, and where it is off, nothing.
class PoisonMap {
 public:
  PoisonMap(Bytes data, bool on) : data_{data}, on_{on && kPoisons} { released(0, data.size()); }
  ~PoisonMap() { reserved(0, data_.size()); }
  PoisonMap(const PoisonMap&) = delete;
  PoisonMap& operator=(const PoisonMap&) = delete;

  // `size` bytes from `position` on are about to be written.
  void reserved(std::uint64_t position, std::uint64_t size) const {
    if (on_) each_piece(position, size, unpoison);
  }
  // No slice of these is valid any more.
  void released(std::uint64_t position, std::uint64_t size) const {
    if (on_) each_piece(position, size, poison);
  }

 private:
  // Calls `act` for the piece before the ring's end, and for the one that goes on at its beginning.
  template <class Act>
  void each_piece(std::uint64_t position, std::uint64_t size, Act act) const {
    const auto from = static_cast<std::size_t>(position % data_.size());
    const auto all = static_cast<std::size_t>(std::min<std::uint64_t>(size, data_.size()));
    const std::size_t before_end = std::min(all, data_.size() - from);
    act(data_.data() + from, before_end);
    act(data_.data(), all - before_end);
  }

  const Bytes data_;
  const bool on_;
};

// The drains of one ring: each access and each event goes to the judge and into the digest, and
// what a drain has released is poisoned.
class Drains {
 public:
  Drains(const perf_event_mmap_page& page, Bytes data, std::unique_ptr<Judge> judge,
         const PoisonMap& poison, Digest& digest)
      : page_{page}, data_{data}, judge_{std::move(judge)}, poison_{poison}, digest_{digest} {}

  void begins();
  void saw_head(std::uint32_t head) {
    if (!head_seen_) head_seen_ = head;
  }
  // Returns false if the consumer reads and reads, and delivers nothing: it violates `bounded`.
  bool reads(const std::byte* address, std::size_t size) {
    if (++reads_ > kReadsSpare + data_.size()) [[unlikely]]
      return is_endless();
    if (address != reinterpret_cast<const std::byte*>(&page_.data_tail)) {
      judge_->reads(address, size);
    }
    return true;
  }
  void delivered(const PerfEvent& event);
  void ends();
  bool is_open() const { return open_; }

  // Whether data_head has moved since the last drain looked at it.
  bool is_unseen() const { return head_seen_ != static_cast<std::uint32_t>(page_.data_head); }

  // That began.
  std::uint64_t count() const { return count_; }
  Judge& judge() { return *judge_; }
  const Judge& judge() const { return *judge_; }

 private:
  // A walk of the whole ring reads every record's header.
  static constexpr std::size_t kReadsSpare = 10'000;

  bool is_endless();
  void note(const PerfEvent& event);

  const perf_event_mmap_page& page_;
  const Bytes data_;
  const std::unique_ptr<Judge> judge_;
  const PoisonMap& poison_;
  Digest& digest_;
  std::uint64_t count_ = 0;
  bool open_ = false;
  std::size_t reads_ = 0;  // since an event was delivered, or a drain began or ended
  std::optional<std::uint32_t> head_seen_;  // by this drain
  std::uint64_t tail_before_ = 0;           // this drain
};

}  // namespace perfring::simulator

#endif  // HARNESS_SIMULATOR_DRAINS_H_
