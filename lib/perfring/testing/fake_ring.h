#ifndef PERFRING_TESTING_FAKE_RING_H_
#define PERFRING_TESTING_FAKE_RING_H_

#include <linux/perf_event.h>
#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

#include "perfring/perf_event.h"
#include "perfring/ring/default_memory.h"
#include "perfring/ring/ring.h"
#include "perfring/testing/copied_events.h"

namespace perfring::testing {

// A control page and `size` bytes of data, each between inaccessible pages. `size` is a
// multiple of the page size.
class GuardedMemory {
 public:
  explicit GuardedMemory(std::size_t size) : size_{size} {
    void* mapped = ::mmap(nullptr, 3 * kGuard + kControl + size, PROT_NONE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapped == MAP_FAILED) std::abort();
    base_ = static_cast<std::byte*>(mapped);
    if (::mprotect(base_ + kGuard, kControl, PROT_READ | PROT_WRITE) != 0 ||
        ::mprotect(base_ + kData, size, PROT_READ | PROT_WRITE) != 0) {
      std::abort();
    }
  }
  ~GuardedMemory() { ::munmap(base_, 3 * kGuard + kControl + size_); }
  GuardedMemory(const GuardedMemory&) = delete;
  GuardedMemory& operator=(const GuardedMemory&) = delete;

  perf_event_mmap_page& page() const {
    return *reinterpret_cast<perf_event_mmap_page*>(base_ + kGuard);
  }
  std::span<std::byte> data() const { return {base_ + kData, size_}; }

 private:
  static constexpr std::size_t kGuard = 65536;  // a multiple of every architecture's page size
  static constexpr std::size_t kControl = 65536;
  static constexpr std::size_t kData = kGuard + kControl + kGuard;

  std::size_t size_;
  std::byte* base_;
};

// Writes records into a ring as a kernel lays them out (or as no kernel would), one byte at a time.
class FakeRing {
 public:
  // An empty ring, with both positions at `start`.
  explicit FakeRing(std::size_t size, std::uint64_t start = 0) : memory_{size}, head_{start} {
    page().data_head = start;
    page().data_tail = start;
  }

  perf_event_mmap_page& page() const { return memory_.page(); }
  std::span<std::byte> data() const { return memory_.data(); }
  std::uint64_t head() const { return head_; }

  // Writes a SAMPLE with these raw bytes; its size is 12 + raw.size() unless given.
  void sample(std::span<const std::byte> raw, std::size_t size = 0) {
    if (size == 0) size = 12 + raw.size();
    header(PERF_RECORD_SAMPLE, size);
    const auto length = static_cast<std::uint32_t>(raw.size());
    put(head_ + 8, &length, sizeof(length));
    put(head_ + 12, raw.data(), raw.size());
    advance(size);
  }

  // Does the same with PERF_SAMPLE_TIME before the raw size.
  void timed_sample(std::uint64_t time, std::span<const std::byte> raw) {
    const std::size_t size = (20 + raw.size() + 7) / 8 * 8;
    header(PERF_RECORD_SAMPLE, size);
    const auto length = static_cast<std::uint32_t>(raw.size());
    put(head_ + 8, &time, sizeof(time));
    put(head_ + 16, &length, sizeof(length));
    put(head_ + 20, raw.data(), raw.size());
    advance(size);
  }

  // Writes a LOST with this count; larger sizes leave room for the sample_id fields that may
  // follow.
  void lost(std::uint64_t count, std::size_t size = 24, std::uint64_t id = 0x1111'2222'3333'4444) {
    header(PERF_RECORD_LOST, size);
    if (size >= 16) put(head_ + 8, &id, sizeof(id));
    if (size >= 24) put(head_ + 16, &count, sizeof(count));
    advance(size);
  }

  // Writes any header, followed by `body`; the head moves by `advance_by`.
  void raw_record(std::uint32_t type, std::size_t size, std::span<const std::byte> body,
                  std::size_t advance_by) {
    header(type, size);
    put(head_ + 8, body.data(), body.size());
    advance(advance_by);
  }

  void advance(std::uint64_t size) {
    head_ += size;
    page().data_head = head_;
  }

  void put(std::uint64_t position, const void* from, std::size_t length) {
    for (std::size_t i = 0; i < length; ++i) {
      data()[static_cast<std::size_t>((position + i) % data().size())] =
          static_cast<const std::byte*>(from)[i];
    }
  }

  // Returns the ring's bytes from one position to another, in order.
  std::vector<std::byte> bytes(std::uint64_t from, std::uint64_t to) const {
    std::vector<std::byte> copy;
    for (; from != to; ++from)
      copy.push_back(data()[static_cast<std::size_t>(from % data().size())]);
    return copy;
  }

 private:
  void header(std::uint32_t type, std::size_t size) {
    const perf_event_header fields{type, PERF_RECORD_MISC_KERNEL, static_cast<std::uint16_t>(size)};
    put(head_, &fields, sizeof(fields));
  }

  GuardedMemory memory_;
  std::uint64_t head_;
};

// Returns `length` bytes that depend on `seed` and on their place.
inline std::vector<std::byte> payload(std::size_t length, unsigned seed = 0) {
  std::vector<std::byte> bytes(length);
  for (std::size_t i = 0; i < length; ++i) {
    bytes[i] = static_cast<std::byte>((i * 7 + i / 251 + seed * 31 + 1) & 0xff);
  }
  return bytes;
}

// A FakeRing that remembers, for each record that it writes, the event that a drain must deliver
// and the position where the record ends.
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
  const std::vector<CopiedEvent>& expected() const { return expected_; }
  const std::vector<std::uint64_t>& ends() const { return ends_; }

  void sample(const std::vector<std::byte>& raw, std::size_t size = 0) {
    const std::uint64_t at = fake_.head();
    fake_.sample(raw, size);
    wrote(CopiedEvent::sample(raw, before_end(at + 12, raw.size())));
  }

  void lost(std::uint64_t count, std::size_t size = 24) {
    fake_.lost(count, size);
    wrote(CopiedEvent::lost(count));
  }

  // Writes a record that is skipped by itself.
  void bad(Defect defect, std::uint32_t type, std::size_t size,
           const std::vector<std::byte>& body = {}) {
    const std::uint64_t at = fake_.head();
    fake_.raw_record(type, size, body, size);
    wrote(CopiedEvent::malformed(defect, fake_.bytes(at, fake_.head()), before_end(at, size)));
  }

  // Writes a SAMPLE of `size` bytes that claims to hold `raw` bytes, which are too many.
  void bad_raw(std::uint32_t raw, std::size_t size) {
    std::vector<std::byte> body = payload(size - 8);
    std::memcpy(body.data(), &raw, sizeof(raw));
    bad(Defect::BadSample, PERF_RECORD_SAMPLE, size, body);
  }

  // Writes a header that ends the drain, and moves the head by `length`: these bytes are skipped.
  void bad_size(std::uint32_t type, std::size_t size, std::size_t length) {
    const std::uint64_t at = fake_.head();
    fake_.raw_record(type, size, {}, length);
    wrote(CopiedEvent::malformed(Defect::BadSize, fake_.bytes(at, at + length),
                                 before_end(at, length)));
  }

 private:
  std::size_t before_end(std::uint64_t position, std::size_t length) const {
    const std::size_t to_end =
        fake_.data().size() - static_cast<std::size_t>(position % fake_.data().size());
    return length < to_end ? length : to_end;
  }

  void wrote(CopiedEvent event) {
    expected_.push_back(std::move(event));
    ends_.push_back(fake_.head());
  }

  FakeRing fake_;
  std::vector<CopiedEvent> expected_;
  std::vector<std::uint64_t> ends_;
};

// Returns a consumer of the ring that a test writes to.
template <class M = DefaultMemory>
Ring<M> ring_over(const FakeRing& fake) {
  return *Ring<M>::over(fake.page(), fake.data());
}

template <class M = DefaultMemory>
Ring<M> ring_over(KnownRing& known) {
  return ring_over<M>(known.fake());
}

}  // namespace perfring::testing

#endif  // PERFRING_TESTING_FAKE_RING_H_
