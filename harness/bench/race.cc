#include "harness/bench/race.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <numeric>
#include <ratio>
#include <utility>

namespace perfring::bench {
namespace {

constexpr double kTurnNs = 20'000;
constexpr double kPassesMax = 100'000;

}  // namespace

Race::Race(std::vector<Contender> contenders, const Tally& expected)
    : contenders_{std::move(contenders)},
      lanes_(contenders_.size()),
      expected_{expected},
      order_(contenders_.size()) {
  std::iota(order_.begin(), order_.end(), std::size_t{0});
}

double Race::turn_ns(std::size_t index, unsigned passes) {
  using Clock = std::chrono::steady_clock;
  const Contender& contender = contenders_[index];
  const auto start = Clock::now();
  const Tally tally = contender.drain(passes);
  const std::chrono::duration<double, std::nano> elapsed = Clock::now() - start;
  if (tally != times(expected_, passes)) wrong_ = contender.name;
  return elapsed.count();
}

void Race::round() {
  std::ranges::shuffle(order_, draw_);
  for (const std::size_t index : order_) {
    Lane& lane = lanes_[index];
    // Warm up the caches and predictors, which the other contenders have used. Twice, since a line
    // that missed once is not yet in every cache.
    turn_ns(index, 1);
    const double warm_ns = turn_ns(index, 1);
    if (lane.passes == 0) {
      lane.passes = static_cast<unsigned>(std::clamp(kTurnNs / (warm_ns + 1), 1.0, kPassesMax));
    }
    const double ns = turn_ns(index, lane.passes);
    lane.ns.push_back(ns / (static_cast<double>(expected_.events) * lane.passes));
    // The very first pass is too slow to tell how many passes make a turn.
    lane.passes =
        static_cast<unsigned>(std::clamp(kTurnNs * lane.passes / (ns + 1), 1.0, kPassesMax));
  }
}

double Race::ns(const std::string& name) const {
  for (std::size_t i = 0; i < lanes_.size(); ++i) {
    if (contenders_[i].name == name) return median(lanes_[i].ns);
  }
  return std::numeric_limits<double>::quiet_NaN();
}

double median(std::vector<double> values) {
  if (values.empty()) return std::numeric_limits<double>::quiet_NaN();
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  return (*middle + *std::max_element(values.begin(), middle)) / 2;
}

}  // namespace perfring::bench
