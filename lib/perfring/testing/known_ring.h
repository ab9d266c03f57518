#ifndef PERFRING_TESTING_KNOWN_RING_H_
#define PERFRING_TESTING_KNOWN_RING_H_

#include <linux/perf_event.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "perfring/ring/ring.h"
#include "perfring/testing/fake_ring.h"
#include "perfring/testing/seen.h"

namespace perfring::testing {

// A FakeRing that keeps, of each record it writes, what a drain must deliver and where the record
// ends.
class KnownRing {
 public:
  explicit KnownRing(std::size_t size, std::uint64_t start = 0) : fake_{size, start} {}

  // Empties the ring, and puts both positions at `start`.
  void restart(std::uint64_t start) {
    fake_.advance(start - fake_.head());
    fake_.page().data_tail = start;
    expected_.clear();
    ends_.clear();
  }

  FakeRing& fake() { return fake_; }
  perf_event_mmap_page& page() const { return fake_.page(); }
  const std::vector<Seen>& expected() const { return expected_; }
  const std::vector<std::uint64_t>& ends() const { return ends_; }

  void sample(const std::vector<std::byte>& raw, std::size_t size = 0) {
    const std::uint64_t at = fake_.head();
    fake_.sample(raw, size);
    wrote(Seen::sample(raw, before_end(at + 12, raw.size())));
  }

  void lost(std::uint64_t count, std::size_t size = 24) {
    fake_.lost(count, size);
    wrote(Seen::lost(count));
  }

  // A record that is skipped by itself.
  void bad(Defect defect, std::uint32_t type, std::size_t size,
           const std::vector<std::byte>& body = {}) {
    const std::uint64_t at = fake_.head();
    fake_.raw_record(type, size, body, size);
    wrote(Seen::malformed(defect, fake_.bytes(at, fake_.head()), before_end(at, size)));
  }

  // A SAMPLE of `size` bytes that says it holds `raw` bytes, which are too many.
  void bad_raw(std::uint32_t raw, std::size_t size) {
    std::vector<std::byte> body = payload(size - 8);
    std::memcpy(body.data(), &raw, sizeof(raw));
    bad(Defect::BadSample, PERF_RECORD_SAMPLE, size, body);
  }

  // A header that ends the drain, and `length` bytes in all that go with it.
  void bad_size(std::uint32_t type, std::size_t size, std::size_t length) {
    const std::uint64_t at = fake_.head();
    fake_.raw_record(type, size, {}, length);
    wrote(Seen::malformed(Defect::BadSize, fake_.bytes(at, at + length), before_end(at, length)));
  }

 private:
  std::size_t before_end(std::uint64_t position, std::size_t length) const {
    const std::size_t to_end =
        fake_.data().size() - static_cast<std::size_t>(position % fake_.data().size());
    return length < to_end ? length : to_end;
  }

  void wrote(Seen seen) {
    expected_.push_back(std::move(seen));
    ends_.push_back(fake_.head());
  }

  FakeRing fake_;
  std::vector<Seen> expected_;
  std::vector<std::uint64_t> ends_;
};

// The consumer's end of what a test writes to.
template <class M = DefaultMemory>
Ring<M> ring_over(const FakeRing& fake) {
  return *Ring<M>::over(fake.page(), fake.data());
}

template <class M = DefaultMemory>
Ring<M> ring_over(KnownRing& known) {
  return ring_over<M>(known.fake());
}

}  // namespace perfring::testing

#endif  // PERFRING_TESTING_KNOWN_RING_H_
