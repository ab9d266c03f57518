#ifndef HARNESS_SIMULATOR_DRAINS_H_
#define HARNESS_SIMULATOR_DRAINS_H_

#include <linux/perf_event.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "harness/simulator/digest.h"
#include "harness/simulator/judge.h"
#include "harness/simulator/poison_map.h"
#include "perfring/perf_event.h"

namespace perfring::simulator {

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
