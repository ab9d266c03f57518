#include "harness/model/engine/state_key.h"

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "harness/model/engine/step.h"

namespace perfring::model {
namespace {

// Hashes a sequence of numbers.
class Hash {
 public:
  void add(std::uint64_t value) {
    key_.low = mix(key_.low + 0x9e37'79b9'7f4a'7c15 + value);
    key_.high = mix((key_.high ^ value) * 0xff51'afd7'ed55'8ccd + key_.low);
  }
  GraphKey key() const { return key_; }

 private:
  GraphKey key_;
};

// Packs several numbers into each hashed word. The hash already has the numbers' bounds.
class Digits {
 public:
  explicit Digits(Hash& hash) : hash_{hash} {}

  void add(std::uint64_t digit, std::uint64_t base) {
    word_ = word_ * base + digit;
    combinations_ *= base;
    if (combinations_ >> 48 != 0) flush();  // a base has at most 16 bits
  }
  void flush() {
    hash_.add(std::exchange(word_, 0));
    combinations_ = 1;
  }

 private:
  Hash& hash_;
  std::uint64_t word_ = 0;
  std::uint64_t combinations_ = 1;
};

// Hashed in place of a node's id, which is at least 1.
constexpr std::uint64_t kEnded = 0;
constexpr std::uint64_t kBlocked = ~std::uint64_t{0};

// Whether the thread's knowledge affects the future.
bool matters(const Thread& thread) {
  return !thread.is_finally && !thread.ended();
}

// The writes to each location that a thread may still read.
class ReadableWrites {
 public:
  explicit ReadableWrites(const Execution& x) : x_{x}, kept_(x.latest.size()) {
    for (std::size_t location = 0; location < kept_.size(); ++location) {
      std::vector<EventId>& kept = kept_[location];
      std::size_t oldest = 0;  // the furthest back that a thread may read
      for (EventId w = x.latest[location]; w != kNone; w = x.events[w].earlier) kept.push_back(w);
      for (const Thread& thread : x.threads) {
        if (matters(thread)) oldest = std::max(oldest, rank(thread.known, location));
      }
      kept.resize(oldest + 1);
    }
  }

  // Returns the number of kept writes that are newer than the newest one that this clock knows of.
  std::size_t rank(const Clock& clock, std::size_t location) const {
    const std::vector<EventId>& kept = kept_[location];
    std::size_t i = 0;
    while (i + 1 < kept.size() && !x_.knows(clock, kept[i])) ++i;
    return i;
  }

  void add_to(Digits& digits, const Clock& clock) const {
    for (std::size_t location = 0; location < kept_.size(); ++location) {
      const std::size_t writes = kept_[location].size();
      if (writes != 1) digits.add(rank(clock, location), writes);
    }
  }

  const std::vector<EventId>& kept(std::size_t location) const { return kept_[location]; }

 private:
  const Execution& x_;
  std::vector<std::vector<EventId>> kept_;  // newest first
};

// Returns the accesses that a later one could race with: for each thread, and each location with
// plain accesses, the last atomic read, plain read, atomic write and plain write.
std::vector<const Event*> last_accesses(const Execution& x, const std::vector<bool>& mixed,
                                        Hash& hash) {
  if (x.plain_locations == 0 && std::ranges::find(mixed, true) == mixed.end()) return {};
  std::vector<bool> plain = mixed;
  for (const Event& event : x.events) {
    if (event.order == Order::NonAtomic) plain[event.location] = true;
  }
  std::vector<const Event*> last(x.latest.size() * kThreads * 4, nullptr);
  for (const Event& event : x.events) {
    if (event.is_initial() || event.step->kind == Step::Kind::Fence) continue;
    if (!plain[event.location]) continue;
    const std::size_t kind = (event.writes ? 2u : 0u) + (event.order == Order::NonAtomic ? 1u : 0u);
    last[(event.location * kThreads + event.thread) * 4 + kind] = &event;
  }
  for (std::size_t i = 0; i < last.size(); ++i) {
    if (last[i] != nullptr) hash.add(i);
  }
  std::erase(last, nullptr);
  hash.add(last.size());
  return last;
}

// A clock may know of an update's store without its read, because smp_wmb() passes on the store
// alone.
std::uint64_t knowledge(const Clock& clock, const Event& event) {
  const bool all = clock.events[event.thread] >= event.index;
  const bool store = event.writes && clock.writes[event.thread] >= event.index;
  const bool needs_all = !event.writes || event.reads_from != kNone;
  return (needs_all && all ? 2u : 0u) + (store ? 1u : 0u);
}

}  // namespace

GraphKey future_key(const Execution& x, const std::vector<bool>& mixed) {
  Hash hash;
  const ReadableWrites window{x};
  for (std::size_t location = 0; location < x.latest.size(); ++location) {
    hash.add(window.kept(location).size());
  }
  const std::vector<const Event*> accesses = last_accesses(x, mixed, hash);
  const auto add_clock = [&](const Clock& clock) {
    Digits digits{hash};
    window.add_to(digits, clock);
    for (const Event* const access : accesses) digits.add(knowledge(clock, *access), 4);
    digits.flush();
  };
  for (const Thread& thread : x.threads) {
    if (!matters(thread)) {
      hash.add(!thread.is_finally && thread.blocked() ? kBlocked : kEnded);
      continue;
    }
    hash.add(thread.node->id);
    hash.add(thread.step);
    Clock acquirable = thread.acquirable;
    acquirable.join(thread.known);
    add_clock(thread.known);
    add_clock(acquirable);
    add_clock(thread.released);
  }
  for (std::size_t location = 0; location < x.latest.size(); ++location) {
    for (const EventId w : window.kept(location)) {
      const Event& event = x.events[w];
      hash.add(event.written);
      hash.add(event.later != kNone && x.events[event.later].reads_from == w ? 1 : 0);
      add_clock(event.released);
    }
  }
  return hash.key();
}

}  // namespace perfring::model
