#ifndef PERFRING_TESTING_RINGS_H_
#define PERFRING_TESTING_RINGS_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <ostream>
#include <tuple>
#include <vector>

#include "perfring/rings/merge.h"
#include "perfring/testing/fake_ring.h"
#include "perfring/testing/seen.h"

namespace perfring::testing {

// An event as a merge delivered it.
struct Got {
  std::size_t ring;
  std::uint64_t key;
  bool late;
  Seen seen;

  bool operator==(const Got&) const = default;
};

inline std::ostream& operator<<(std::ostream& out, const Got& got) {
  return out << "ring " << got.ring << " key " << got.key << (got.late ? " late " : " ")
             << got.seen;
}

inline Got copy(const Ordered& ordered) {
  return {ordered.ring, ordered.key, ordered.late, copy(ordered.event)};
}

// A payload: its key, and a number.
inline std::vector<std::byte> keyed(std::uint64_t key, std::uint32_t number = 0) {
  std::vector<std::byte> bytes(sizeof(key) + sizeof(number));
  std::memcpy(bytes.data(), &key, sizeof(key));
  std::memcpy(bytes.data() + sizeof(key), &number, sizeof(number));
  return bytes;
}
inline constexpr std::size_t kKeyedSize = 24;  // of such a record

// What a merge delivers of it.
inline Got sample(std::size_t ring, std::uint64_t key, std::uint32_t number = 0,
                  bool late = false) {
  return {ring, key, late, Seen::sample(keyed(key, number))};
}
inline Got late(std::size_t ring, std::uint64_t key, std::uint32_t number = 0) {
  return sample(ring, key, number, true);
}

// Rings to write to by hand, and a merge of them.
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

  // What a run delivers while the clock stands at `now`.
  std::vector<Got> run(std::uint64_t now, std::uint64_t limit = ~std::uint64_t{0}) {
    std::vector<Got> got;
    end = merge.run(
        KeyAt{}, [now] { return now; }, [&](const Ordered& each) { got.push_back(copy(each)); },
        limit);
    return got;
  }
  std::vector<Got> flush(std::uint64_t limit = ~std::uint64_t{0}) {
    std::vector<Got> got;
    end = merge.flush(KeyAt{}, [&](const Ordered& each) { got.push_back(copy(each)); }, limit);
    return got;
  }

  Merge<M, kWindow> merge;
  MergeEnd end{};  // of the last run

 private:
  std::vector<std::unique_ptr<FakeRing>> fakes_;
};

}  // namespace perfring::testing

#endif  // PERFRING_TESTING_RINGS_H_
