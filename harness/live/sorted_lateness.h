#ifndef HARNESS_LIVE_SORTED_LATENESS_H_
#define HARNESS_LIVE_SORTED_LATENESS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace perfring::live {

// Counts the keys that follow a higher one, by sorting.
class SortedLateness {
 public:
  void add(std::uint64_t key) {
    keys_.emplace_back(key, keys_.size());
    if (keys_.size() == kChunk) sort();
  }
  std::uint64_t late() {
    sort();
    return late_;
  }

 private:
  static constexpr std::size_t kChunk = std::size_t{1} << 16;

  // Goes from the highest key down: a key is late if it follows a higher one.
  void sort() {
    if (keys_.empty()) return;
    std::sort(keys_.begin(), keys_.end(), [](const auto& a, const auto& b) {
      return a.first != b.first ? a.first > b.first : a.second < b.second;
    });
    std::size_t first_of_higher = keys_.size();
    for (auto from = keys_.begin(); from != keys_.end();) {
      auto to = from;
      for (; to != keys_.end() && to->first == from->first; ++to) {
        late_ += to->first < highest_ || to->second > first_of_higher;
      }
      first_of_higher = std::min(first_of_higher, from->second);
      from = to;
    }
    highest_ = std::max(highest_, keys_.front().first);
    keys_.clear();
  }

  std::vector<std::pair<std::uint64_t, std::size_t> > keys_;
  std::uint64_t highest_ = 0;  // of the earlier chunks
  std::uint64_t late_ = 0;
};

}  // namespace perfring::live

#endif  // HARNESS_LIVE_SORTED_LATENESS_H_
