#ifndef PERFRING_RING_TESTING_REFERENCE_H_
#define PERFRING_RING_TESTING_REFERENCE_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "perfring/perf_event.h"
#include "perfring/ring/testing/seen.h"

namespace perfring::testing {

// The other consumer: what a drain must deliver, read off the rules S4, S5, S8 and S9 and the wire
// format one by one, byte by byte, slowly. It copies, and shares nothing with the drain but the
// vocabulary. Of any ring whose size is a power of two, whatever is in it, and any positions.
class Reference {
 public:
  struct Event {
    Seen seen;
    std::uint64_t end;  // data_tail if the drain stops with it
  };

  // `data` must outlive it.
  Reference(Bytes data, std::uint64_t tail, std::uint64_t head)
      : data_{data}, at_{tail}, left_{(head - tail) % (std::uint64_t{1} << 32)}, head_{head} {}

  // What a drain delivers that does not stop. To be called once.
  std::vector<Event> drain() {
    const std::uint64_t stop = at_ + left_;
    if (left_ == 0) return {};
    if (left_ > data_.size()) {
      return {{malformed(Defect::BadPositions, head_ - data_.size(), data_.size()), stop}};
    }
    if (at_ % 8 != 0 || head_ % 8 != 0) {
      return {{malformed(Defect::BadPositions, at_, left_), stop}};
    }
    std::vector<Event> events;
    while (left_ != 0) {
      const std::uint64_t size = number<std::uint16_t>(at_ + 6);
      if (size < 8 || size % 8 != 0 || size > left_) {
        events.push_back({malformed(Defect::BadSize, at_, left_), stop});
        break;
      }
      events.push_back({record(size), at_ + size});
      at_ += size;
      left_ -= size;
    }
    return events;
  }

  std::vector<Seen> events() {
    std::vector<Seen> seen;
    for (Event& event : drain()) seen.push_back(std::move(event.seen));
    return seen;
  }

 private:
  Seen record(std::uint64_t size) const {
    switch (number<std::uint32_t>(at_)) {
      case 9: {  // SAMPLE
        const std::uint64_t raw = size < 12 ? 0 : number<std::uint32_t>(at_ + 8);
        if (size < 12 || 12 + raw > size) return malformed(Defect::BadSample, at_, size);
        return Seen::sample(bytes(at_ + 12, raw), before_end(at_ + 12, raw));
      }
      case 2:  // LOST
        if (size < 24) return malformed(Defect::BadLost, at_, size);
        return Seen::lost(number<std::uint64_t>(at_ + 16));
      default:
        return malformed(Defect::UnexpectedType, at_, size);
    }
  }

  Seen malformed(Defect defect, std::uint64_t at, std::uint64_t size) const {
    return Seen::malformed(defect, bytes(at, size), before_end(at, size));
  }

  std::vector<std::byte> bytes(std::uint64_t at, std::uint64_t length) const {
    std::vector<std::byte> copy;
    for (std::uint64_t i = 0; i < length; ++i)
      copy.push_back(data_[static_cast<std::size_t>((at + i) % data_.size())]);
    return copy;
  }

  std::size_t before_end(std::uint64_t at, std::uint64_t length) const {
    std::size_t count = 0;
    while (count < length && (at % data_.size()) + count < data_.size()) ++count;
    return count;
  }

  template <class T>
  T number(std::uint64_t at) const {
    const std::vector<std::byte> copy = bytes(at, sizeof(T));
    T value;
    std::memcpy(&value, copy.data(), sizeof(T));
    return value;
  }

  Bytes data_;
  std::uint64_t at_;
  std::uint64_t left_;
  std::uint64_t head_;
};

}  // namespace perfring::testing

#endif  // PERFRING_RING_TESTING_REFERENCE_H_
