#ifndef HARNESS_BENCH_RACE_H_
#define HARNESS_BENCH_RACE_H_

// Measures contenders against each other on a machine that is doing other things as well.

#include <cstddef>
#include <functional>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "harness/bench/tally.h"

namespace perfring::bench {

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
