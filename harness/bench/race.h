#ifndef HARNESS_BENCH_RACE_H_
#define HARNESS_BENCH_RACE_H_

// Measures contenders against each other on a machine that is doing other things as well, and
// checks that each drain delivered the right events.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <optional>
#include <random>
#include <string>
#include <vector>

namespace perfring::bench {

// The events that a drain delivered, to be compared with those in the ring.
struct Tally {
  std::uint64_t events = 0;
  std::uint64_t bytes = 0;  // of raw data, the kernel's padding included
  std::uint64_t sum = 0;    // of the payload's words, if the callback reads them
  std::uint64_t odd = 0;    // LOST and malformed events: there are none

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

// The callbacks that are measured.
enum class Callback { Count, Sum };

// One event's raw data. The padding that ends it is not part of any whole word.
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

// One way of draining a ring.
struct Contender {
  std::string name;
  // Drains the full ring `passes` times, and says what that delivered in all.
  std::function<Tally(unsigned passes)> drain;
};

// Contenders for the same events. They take turns of some 20 us, so that what disturbs one
// disturbs the others; a figure is the median of its turns, which forgets the disturbed ones. Each
// round has an order of its own: what a turn leaves in the caches, which is much where a ring is
// larger than they are, does not always favour the same contender.
class Race {
 public:
  // `expected` is what one pass must deliver.
  Race(std::vector<Contender> contenders, const Tally& expected);

  // One turn for each, in an order that is drawn anew, in every race the same.
  void round();

  // The name of a contender that once delivered something else than expected.
  const std::optional<std::string>& wrong() const { return wrong_; }

  // Median ns for each event, of all rounds so far. NaN if there are none, or no such contender.
  double ns(const std::string& name) const;

  const std::vector<Contender>& contenders() const { return contenders_; }

 private:
  struct Lane {
    unsigned passes = 0;  // in a turn; 0 until the first one
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

// The middle value, or the mean of the middle two; NaN without values.
double median(std::vector<double> values);

}  // namespace perfring::bench

#endif  // HARNESS_BENCH_RACE_H_
