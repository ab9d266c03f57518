#ifndef HARNESS_BENCH_RACE_H_
#define HARNESS_BENCH_RACE_H_

// Measures contenders against each other on a machine that also does other work, and checks that
// each drain delivered the right events.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <optional>
#include <random>
#include <string>
#include <vector>

namespace perfring::bench {

// The events that a drain delivered, for comparison with those in the ring.
struct Tally {
  std::uint64_t events = 0;
  std::uint64_t bytes = 0;  // raw data, including the kernel's padding
  std::uint64_t sum = 0;    // sum of the payloads' words, if the callback reads them
  std::uint64_t odd = 0;    // LOST and malformed events: none expected

  bool operator==(const Tally&) const = default;
  Tally& operator+=(const Tally& other) {
    events += other.events;
    bytes += other.bytes;
    sum += other.sum;
    odd += other.odd;
    return *this;
  }
};

inline Tally times(const Tally& tally, std::uint64_t n) {
  return {tally.events * n, tally.bytes * n, tally.sum * n, tally.odd * n};
}

// The measured callbacks.
enum class Callback { Count, Sum };

// Adds one event's raw data. The padding at the end is not part of a whole word.
template <Callback kCallback>
[[gnu::always_inline]] inline void add(Tally& tally, const std::byte* raw, std::size_t size) {
  ++tally.events;
  tally.bytes += size;
  if constexpr (kCallback == Callback::Sum) {
    const std::byte* const end = raw + size / sizeof(std::uint64_t) * sizeof(std::uint64_t);
    for (; raw != end; raw += sizeof(std::uint64_t)) {
      std::uint64_t word;
      std::memcpy(&word, raw, sizeof(word));
      tally.sum += word;
    }
  }
}

// One way to drain a ring.
struct Contender {
  std::string name;
  // Drains the full ring `passes` times. Returns everything delivered.
  std::function<Tally(unsigned passes)> drain;
};

// Contenders for the same events. They take turns of some 20 us, so that a disturbance affects all
// of them. Each result is the median of a contender's turns, which ignores disturbed turns. Each
// round has its own order, so that what a turn leaves in the caches (much, if the ring is larger
// than the caches) does not always favor the same contender.
class Race {
 public:
  // `expected`: what one pass must deliver.
  Race(std::vector<Contender> contenders, const Tally& expected);

  // Runs one turn of each contender, in a newly drawn order. Every race draws the same orders.
  void round();

  // The name of a contender that delivered other events than expected.
  const std::optional<std::string>& wrong() const { return wrong_; }

  // The median ns per event, over all rounds so far. NaN if there is no round or no such contender.
  double ns(const std::string& name) const;

  const std::vector<Contender>& contenders() const { return contenders_; }

 private:
  struct Lane {
    unsigned passes = 0;  // in a turn; 0 before the first one
    std::vector<double> ns;
  };

  double turn_ns(std::size_t index, unsigned passes);

  std::vector<Contender> contenders_;
  std::vector<Lane> lanes_;
  Tally expected_;
  std::vector<std::size_t> order_;
  std::minstd_rand draw_;
  std::optional<std::string> wrong_;
};

// Returns the middle value, or the mean of the middle two, or NaN if there are no values.
double median(std::vector<double> values);

}  // namespace perfring::bench

#endif  // HARNESS_BENCH_RACE_H_
