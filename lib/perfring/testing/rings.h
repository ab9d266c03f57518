#ifndef PERFRING_TESTING_RINGS_H_
#define PERFRING_TESTING_RINGS_H_

#include <linux/perf_event.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <ostream>
#include <span>
#include <tuple>
#include <vector>

#include "perfring/merge/key_at.h"
#include "perfring/merge/merge.h"
#include "perfring/merge/slack.h"
#include "perfring/ring/default_memory.h"
#include "perfring/snapshot/snapshot.h"
#include "perfring/testing/copied_events.h"
#include "perfring/testing/fake_ring.h"

namespace perfring::testing {

// An event as a merge delivered it.
struct MergedEvent {
  std::size_t ring;
  std::uint64_t key;
  bool late;
  CopiedEvent event;

  bool operator==(const MergedEvent&) const = default;
};

inline std::ostream& operator<<(std::ostream& out, const MergedEvent& merged) {
  return out << "ring " << merged.ring << " key " << merged.key << (merged.late ? " late " : " ")
             << merged.event;
}

inline MergedEvent copy(const Ordered& ordered) {
  return {ordered.ring, ordered.key, ordered.late, copy(ordered.event)};
}

// A payload: its key, followed by a number.
inline std::vector<std::byte> keyed(std::uint64_t key, std::uint32_t number = 0) {
  std::vector<std::byte> bytes(sizeof(key) + sizeof(number));
  std::memcpy(bytes.data(), &key, sizeof(key));
  std::memcpy(bytes.data() + sizeof(key), &number, sizeof(number));
  return bytes;
}
inline constexpr std::size_t kKeyedSize = 24;  // size of a record with such a payload

// The event of such a record, as a merge delivers it.
inline MergedEvent sample(std::size_t ring, std::uint64_t key, std::uint32_t number = 0,
                          bool late = false) {
  return {ring, key, late, CopiedEvent::sample(keyed(key, number))};
}
inline MergedEvent late(std::size_t ring, std::uint64_t key, std::uint32_t number = 0) {
  return sample(ring, key, number, true);
}

// Rings for a test to write to, and a merge of them.
template <class M = DefaultMemory, unsigned kWindow = 8>
class Rings {
 public:
  explicit Rings(std::size_t rings, const MergeOptions& options = {.slack = 0},
                 std::size_t size = 65536, std::uint64_t start = 0)
      : merge{options} {
    for (std::size_t i = 0; i != rings; ++i) {
      fakes_.push_back(std::make_unique<FakeRing>(size, start));
      merge.add(fakes_.back()->page(), fakes_.back()->data());
    }
  }

  FakeRing& operator[](std::size_t ring) { return *fakes_[ring]; }
  std::uint64_t tail(std::size_t ring) const { return fakes_[ring]->page().data_tail; }

  void write(std::size_t ring, std::uint64_t key, std::uint32_t number = 0) {
    fakes_[ring]->sample(keyed(key, number));
  }

  // Returns the events that a run delivers while the clock shows `now`.
  std::vector<MergedEvent> run(std::uint64_t now, std::uint64_t limit = ~std::uint64_t{0}) {
    std::vector<MergedEvent> merged;
    end = merge.run(
        KeyAt{}, [now] { return now; }, [&](const Ordered& each) { merged.push_back(copy(each)); },
        limit);
    return merged;
  }
  std::vector<MergedEvent> flush(std::uint64_t limit = ~std::uint64_t{0}) {
    std::vector<MergedEvent> merged;
    end = merge.flush(KeyAt{}, [&](const Ordered& each) { merged.push_back(copy(each)); }, limit);
    return merged;
  }

  Merge<M, kWindow> merge;
  MergeEnd end{};  // of the last run

 private:
  std::vector<std::unique_ptr<FakeRing>> fakes_;
};

// An overwritable ring of 4096 bytes between guard pages, written downwards. A test can make it
// read-only, like the kernel's mapping.
class Backward {
 public:
  static constexpr std::size_t kSize = 4096;

  explicit Backward(std::uint64_t start = 0) : head_{start} { publish(); }

  perf_event_mmap_page& page() const { return memory_.page(); }
  std::span<std::byte> data() const { return memory_.data(); }
  Snapshots<> snapshots() const {
    // The mapping is not in one piece here: the page, a guard, the data.
    return Snapshots<>::over(page(), data()).value();
  }

  // Writes and publishes a sample with this number, `size` bytes long in total.
  void write(std::uint64_t number, std::size_t size = 24) {
    reserve(number, size);
    publish();
  }
  // Writes the sample, but does not publish it.
  void reserve(std::uint64_t number, std::size_t size = 24) {
    head_ -= size;
    const perf_event_header header{PERF_RECORD_SAMPLE, 0, static_cast<__u16>(size)};
    const auto raw = static_cast<std::uint32_t>(size - 12);
    std::vector<std::byte> record(size, std::byte{0xab});
    std::memcpy(record.data(), &header, 8);
    std::memcpy(record.data() + 8, &raw, 4);
    std::memcpy(record.data() + 12, &number, 8);
    for (std::size_t i = 0; i != size; ++i) data()[(head_ + i) % kSize] = record[i];
  }
  void publish() { page().data_head = head_; }
  std::uint64_t head() const { return head_; }

  void set_header(std::uint64_t at, perf_event_header header) {
    std::memcpy(data().data() + at % kSize, &header, sizeof(header));
  }

 private:
  GuardedMemory memory_{kSize};
  std::uint64_t head_;
};

}  // namespace perfring::testing

#endif  // PERFRING_TESTING_RINGS_H_
