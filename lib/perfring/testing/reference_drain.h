#ifndef PERFRING_TESTING_REFERENCE_DRAIN_H_
#define PERFRING_TESTING_REFERENCE_DRAIN_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "perfring/perf_event.h"
#include "perfring/testing/copied_events.h"

namespace perfring::testing {

// The other consumer: computes the events that a drain must deliver from the rules S4, S5, S8, S9
// and
// S11 and the wire format, byte by byte, slowly. It copies, and shares nothing with the drain
// except the vocabulary. It accepts any ring with a size that is a power of two, any contents and
// any positions.
class ReferenceDrain {
 public:
  // An event, with its place in the ring instead of its bytes.
  struct Place {
    CopiedEvent::Kind kind;
    Defect defect;        // of a Malformed
    std::uint64_t at;     // position of the first delivered byte
    std::uint64_t size;   // number of delivered bytes
    std::uint64_t count;  // of a Lost
    std::uint64_t end;    // data_tail if the drain stops with this event
  };
  struct Event {
    CopiedEvent event;
    std::uint64_t end;
  };

  // `data` must outlive the ReferenceDrain.
  ReferenceDrain(Bytes data, std::uint64_t tail, std::uint64_t head)
      : data_{data}, at_{tail}, left_{unread(data.size(), tail, head)}, head_{head} {}

  // Returns the distance between the positions modulo 2^32 (S9). Returns 0 if data_head is behind,
  // both are multiples of 8, and the distance is at most the ring's size (S11).
  static std::uint64_t unread(std::uint64_t size, std::uint64_t tail, std::uint64_t head) {
    constexpr std::uint64_t kLap = std::uint64_t{1} << 32;
    const std::uint64_t forwards = (kLap + head % kLap - tail % kLap) % kLap;
    const std::uint64_t backwards = (kLap - forwards) % kLap;
    const bool went_back = backwards < forwards && backwards <= size;
    return went_back && head % 8 == 0 && tail % 8 == 0 ? 0 : forwards;
  }

  // Returns the next event that a drain delivers, or nullopt at the drain's end.
  std::optional<Place> next() {
    const std::uint64_t stop = at_ + left_;
    if (left_ == 0) return std::nullopt;
    if (left_ > data_.size()) {
      return last(Defect::BadPositions, head_ - data_.size(), data_.size(), stop);
    }
    if (at_ % 8 != 0 || head_ % 8 != 0) return last(Defect::BadPositions, at_, left_, stop);
    const std::uint64_t size = number<std::uint16_t>(at_ + 6);
    if (size < 8 || size % 8 != 0 || size > left_) return last(Defect::BadSize, at_, left_, stop);
    const Place place = record(size);
    at_ += size;
    left_ -= size;
    return place;
  }

  // Returns all events that a drain delivers if it is not stopped. Call it once.
  std::vector<Event> drain() {
    std::vector<Event> events;
    while (const std::optional<Place> place = next()) events.push_back({event(*place), place->end});
    return events;
  }

  std::vector<CopiedEvent> events() {
    std::vector<CopiedEvent> events;
    for (Event& event : drain()) events.push_back(std::move(event.event));
    return events;
  }

 private:
  Place last(Defect defect, std::uint64_t at, std::uint64_t size, std::uint64_t stop) {
    left_ = 0;
    return malformed(defect, at, size, stop);
  }

  Place record(std::uint64_t size) const {
    const std::uint64_t end = at_ + size;
    switch (number<std::uint32_t>(at_)) {
      case 9: {  // SAMPLE
        const std::uint64_t raw = size < 12 ? 0 : number<std::uint32_t>(at_ + 8);
        if (size < 12 || 12 + raw > size) return malformed(Defect::BadSample, at_, size, end);
        return {CopiedEvent::Kind::Sample, {}, at_ + 12, raw, 0, end};
      }
      case 2:  // LOST
        if (size < 24) return malformed(Defect::BadLost, at_, size, end);
        return {CopiedEvent::Kind::Lost, {}, at_, 0, number<std::uint64_t>(at_ + 16), end};
      default:
        return malformed(Defect::UnexpectedType, at_, size, end);
    }
  }

  static Place malformed(Defect defect, std::uint64_t at, std::uint64_t size, std::uint64_t end) {
    return {CopiedEvent::Kind::Malformed, defect, at, size, 0, end};
  }

  CopiedEvent event(const Place& place) const {
    if (place.kind == CopiedEvent::Kind::Lost) return CopiedEvent::lost(place.count);
    const std::size_t head_size = before_end(place.at, place.size);
    std::vector<std::byte> all = bytes(place.at, place.size);
    return place.kind == CopiedEvent::Kind::Sample
               ? CopiedEvent::sample(std::move(all), head_size)
               : CopiedEvent::malformed(place.defect, std::move(all), head_size);
  }

  std::byte byte(std::uint64_t at) const {
    return data_[static_cast<std::size_t>(at % data_.size())];
  }

  std::vector<std::byte> bytes(std::uint64_t at, std::uint64_t length) const {
    std::vector<std::byte> copy;
    for (std::uint64_t i = 0; i < length; ++i) copy.push_back(byte(at + i));
    return copy;
  }

  std::size_t before_end(std::uint64_t at, std::uint64_t length) const {
    std::size_t count = 0;
    while (count < length && (at % data_.size()) + count < data_.size()) ++count;
    return count;
  }

  template <class T>
  T number(std::uint64_t at) const {
    std::byte copy[sizeof(T)];
    for (std::size_t i = 0; i < sizeof(T); ++i) copy[i] = byte(at + i);
    T value;
    std::memcpy(&value, copy, sizeof(T));
    return value;
  }

  Bytes data_;
  std::uint64_t at_;
  std::uint64_t left_;
  std::uint64_t head_;
};

}  // namespace perfring::testing

#endif  // PERFRING_TESTING_REFERENCE_DRAIN_H_
