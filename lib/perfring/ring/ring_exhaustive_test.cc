// The small scope, exhausted: a ring of one page, every start, every size that fits. And every
// place at which a run of equal records, which the drain guesses, can be interrupted.

#include <gtest/gtest.h>
#include <linux/perf_event.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "perfring/perf_event.h"
#include "perfring/ring/cursor.h"
#include "perfring/ring/ring.h"
#include "perfring/testing/copied_events.h"
#include "perfring/testing/cursor_splits.h"
#include "perfring/testing/fake_ring.h"
#include "perfring/testing/reference_drain.h"

namespace perfring {
namespace {

using testing::CopiedEvent;
using testing::cursor_difference;
using testing::drain;
using testing::FakeRing;
using testing::payload;

constexpr std::size_t kOnePage = 4096;

// How many of `length` bytes from `position` on are before the ring's end.
std::size_t part_before_end(std::uint64_t position, std::size_t length) {
  return std::min<std::size_t>(length, kOnePage - position % kOnePage);
}

// Compares without copying: this runs two hundred thousand times.
void expect_bytes(const FakeRing& fake, Bytes head, Bytes tail, std::uint64_t at,
                  const std::vector<std::byte>& raw) {
  ASSERT_EQ(head.size(), part_before_end(at, raw.size()));
  ASSERT_EQ(head.size() + tail.size(), raw.size());
  ASSERT_EQ(head.data(), fake.data().data() + at % kOnePage);
  if (!tail.empty()) {
    ASSERT_EQ(tail.data(), fake.data().data());
  }
  ASSERT_EQ(std::memcmp(head.data(), raw.data(), head.size()), 0);
  ASSERT_TRUE(tail.empty() || std::memcmp(tail.data(), raw.data() + head.size(), tail.size()) == 0);
}

// Checks that the Cursor hands out the ring's only record whole, and passes its event to `look_at`.
void expect_record(const FakeRing& fake, std::uint64_t start, std::size_t size,
                   const std::function<void(const PerfEvent&)>& look_at) {
  fake.page().data_tail = start;
  Cursor<> cursor = *Cursor<>::over(fake.page(), fake.data());
  ASSERT_EQ(cursor.look(), size);
  const auto record = cursor.next();
  ASSERT_TRUE(record);
  ASSERT_EQ(record->head().data(), fake.data().data() + start % kOnePage);
  ASSERT_EQ(record->head().size(), part_before_end(start, size));
  ASSERT_EQ(record->size(), size);
  ASSERT_TRUE(record->tail().empty() || record->tail().data() == fake.data().data());
  ASSERT_EQ(cursor.bytes().first.data(), record->head().data());
  ASSERT_EQ(cursor.bytes().first.size(), record->head().size());
  ASSERT_EQ(cursor.bytes().second.size(), record->tail().size());
  look_at(record->event());
  cursor.release();
  ASSERT_EQ(fake.page().data_tail, start + size);
}

TEST(RingExhaustiveTest, ASampleOfAnySizeAtAnyStartIsDelivered) {
  FakeRing fake{kOnePage};
  Ring<> ring = *Ring<>::over(fake.page(), fake.data());
  for (std::size_t size = 16; size <= kOnePage; size += 8) {
    const std::vector<std::byte> raw = payload(size - 12, static_cast<unsigned>(size));
    for (std::uint64_t start = 0; start < kOnePage; start += 8) {
      fake.advance(start - fake.head());
      fake.page().data_tail = start;
      fake.raw_record(PERF_RECORD_SAMPLE, size, {}, size);
      // Copied in two pieces rather than byte by byte, to save time.
      const auto length = static_cast<std::uint32_t>(raw.size());
      fake.put(start + 8, &length, sizeof(length));
      const std::size_t first = part_before_end(start + 12, raw.size());
      std::memcpy(fake.data().data() + (start + 12) % kOnePage, raw.data(), first);
      std::memcpy(fake.data().data(), raw.data() + first, raw.size() - first);
      int delivered = 0;
      const auto look_at = [&](const PerfEvent& event) {
        ++delivered;
        const auto& sample = std::get<Sample>(event);
        expect_bytes(fake, sample.head, sample.tail, start + 12, raw);
      };
      ring.for_each(look_at);
      ASSERT_EQ(delivered, 1);
      ASSERT_EQ(fake.page().data_tail, start + size);
      expect_record(fake, start, size, look_at);
      ASSERT_FALSE(HasFatalFailure()) << "size " << size << " at " << start;
    }
  }
}

TEST(RingExhaustiveTest, ALostOfAnySizeAtAnyStartIsDelivered) {
  FakeRing fake{kOnePage};
  Ring<> ring = *Ring<>::over(fake.page(), fake.data());
  for (std::size_t size = 24; size <= kOnePage; size += 8) {
    for (std::uint64_t start = 0; start < kOnePage; start += 8) {
      const std::uint64_t count = start * 0x1'0000'0001 + size;
      fake.advance(start - fake.head());
      fake.page().data_tail = start;
      fake.lost(count, size);
      int delivered = 0;
      const auto look_at = [&](const PerfEvent& event) {
        ++delivered;
        ASSERT_EQ(std::get<Lost>(event).count, count);
      };
      ring.for_each(look_at);
      ASSERT_EQ(delivered, 1) << "size " << size << " at " << start;
      ASSERT_EQ(fake.page().data_tail, start + size);
      expect_record(fake, start, size, look_at);
      ASSERT_FALSE(HasFatalFailure()) << "size " << size << " at " << start;
    }
  }
}

// A record that interrupts a run. write() returns the expected event.
struct Odd {
  const char* name;
  std::function<CopiedEvent(FakeRing&)> write;
};

CopiedEvent with_split(CopiedEvent event, std::uint64_t position) {
  event.head_size = part_before_end(position, event.bytes.size());
  return event;
}

CopiedEvent sample_at(FakeRing& fake, const std::vector<std::byte>& raw, std::size_t size = 0) {
  const std::uint64_t at = fake.head();
  fake.sample(raw, size);
  return with_split(CopiedEvent::sample(raw), at + 12);
}

CopiedEvent malformed_at(FakeRing& fake, Defect defect, const std::function<void()>& write) {
  const std::uint64_t at = fake.head();
  write();
  return with_split(CopiedEvent::malformed(defect, fake.bytes(at, fake.head())), at);
}

std::vector<Odd> odd_records() {
  return {
      {"another size", [](FakeRing& fake) { return sample_at(fake, payload(20, 50)); }},
      {"another raw size", [](FakeRing& fake) { return sample_at(fake, payload(5, 51), 24); }},
      {"no raw bytes", [](FakeRing& fake) { return sample_at(fake, {}, 24); }},
      {"a LOST of the same size",
       [](FakeRing& fake) {
         fake.lost(11);
         return CopiedEvent::lost(11);
       }},
      {"a raw size beyond the record, under the same header",
       [](FakeRing& fake) {
         return malformed_at(fake, Defect::BadSample, [&] {
           const std::uint32_t raw = 13;
           std::vector<std::byte> body = payload(16);
           std::memcpy(body.data(), &raw, sizeof(raw));
           const perf_event_header same{PERF_RECORD_SAMPLE, PERF_RECORD_MISC_KERNEL, 24};
           fake.put(fake.head(), &same, sizeof(same));
           fake.put(fake.head() + 8, body.data(), body.size());
           fake.advance(24);
         });
       }},
      {"another type",
       [](FakeRing& fake) {
         return malformed_at(fake, Defect::UnexpectedType,
                             [&] { fake.raw_record(3, 24, payload(16), 24); });
       }},
      {"a SAMPLE of 8",
       [](FakeRing& fake) {
         return malformed_at(fake, Defect::BadSample,
                             [&] { fake.raw_record(PERF_RECORD_SAMPLE, 8, {}, 8); });
       }},
  };
}

TEST(RingExhaustiveTest, ARunInterruptedByAnotherRecordIsDelivered) {
  for (const Odd& odd : odd_records()) {
    for (unsigned run = 0; run <= 24; ++run) {
      for (std::uint64_t start = 0; start < kOnePage; start += run % 5 == 0 ? 8 : 104) {
        FakeRing fake{kOnePage, start};
        std::vector<CopiedEvent> written;
        for (unsigned i = 0; i < run; ++i) written.push_back(sample_at(fake, payload(12, i)));
        written.push_back(odd.write(fake));
        for (unsigned i = 0; i < 12; ++i) written.push_back(sample_at(fake, payload(12, 60 + i)));
        ASSERT_EQ(drain(*Ring<>::over(fake.page(), fake.data())), written)
            << odd.name << " after " << run << " records, from " << start;
        ASSERT_EQ(fake.page().data_tail, fake.head());
        ASSERT_EQ(cursor_difference(fake.page(), fake.data(), start, written, run), "")
            << odd.name << " after " << run << " records, from " << start;
      }
    }
  }
}

// The last record of a run crosses data_head: less of it is left than its header states.
TEST(RingExhaustiveTest, ARunEndsWhereDataHeadDoes) {
  for (unsigned run = 0; run <= 24; ++run) {
    for (std::uint64_t cut = 8; cut < 24; cut += 8) {
      for (const std::uint64_t start :
           {std::size_t{0}, kOnePage - 24 * 10 - 8, kOnePage - 24 * run}) {
        FakeRing fake{kOnePage, start};
        std::vector<CopiedEvent> written;
        for (unsigned i = 0; i < run; ++i) written.push_back(sample_at(fake, payload(12, i)));
        const std::uint64_t at = fake.head();
        fake.sample(payload(12));
        fake.advance(std::uint64_t{0} - cut);  // data_head is inside the record
        written.push_back(
            with_split(CopiedEvent::malformed(Defect::BadSize, fake.bytes(at, at + 24 - cut)), at));
        ASSERT_EQ(drain(*Ring<>::over(fake.page(), fake.data())), written)
            << run << " records from " << start << ", the next cut by " << cut;
        ASSERT_EQ(cursor_difference(fake.page(), fake.data(), start, written, run), "")
            << run << " records from " << start << ", the next cut by " << cut;
      }
    }
  }
}

// Ring and Cursor compared with testing/reference_drain.h, on a ring of 256 bytes with random
// contents and random positions.

using testing::CopiedEvent;
using testing::cursor_difference;
using testing::drain;
using testing::ReferenceDrain;

constexpr std::uint64_t kSmallSize = 256;

class Random {
 public:
  explicit Random(std::uint64_t seed) : engine_{seed} {}
  // Returns a number in [0, below). (The standard distributions differ between libraries.)
  std::uint64_t below(std::uint64_t below) { return engine_() % below; }
  bool one_in(std::uint64_t n) { return below(n) == 0; }
  std::uint64_t any() { return engine_(); }

 private:
  std::mt19937_64 engine_;
};

// Fills the ring with runs of records that are mostly such as a kernel could have written.
void fill(std::array<std::byte, kSmallSize>& data, std::uint64_t tail, Random& random) {
  for (std::byte& each : data) each = static_cast<std::byte>(random.any());
  std::uint64_t size = 16;
  for (std::uint64_t at = tail; at < tail + kSmallSize;) {
    if (random.one_in(6)) size = 8 * (1 + random.below(6));
    const std::uint32_t types[]{9, 9, 9, 9, 9, 9, 2, static_cast<std::uint32_t>(random.any())};
    const perf_event_header header{
        types[random.below(8)], 0,
        static_cast<std::uint16_t>(random.one_in(40) ? random.any() : size)};
    const auto raw = static_cast<std::uint32_t>(random.one_in(10) ? random.below(size) : size - 12);
    std::byte bytes[12];
    std::memcpy(bytes, &header, 8);
    std::memcpy(bytes + 8, &raw, 4);
    for (std::uint64_t i = 0; i < 12; ++i) data[(at + i) % kSmallSize] = bytes[i];
    at += size;
  }
}

TEST(RingReferenceTest, AgreesOnEveryRing) {
  alignas(8) std::array<std::byte, kSmallSize> data;
  perf_event_mmap_page page{};
  Ring<> ring = *Ring<>::over(page, data);
  for (std::uint64_t seed = 0; seed < 10000; ++seed) {
    Random random{seed};
    const std::uint64_t bases[]{0, 512, (std::uint64_t{1} << 32) - 128, random.any() & ~7ULL};
    std::uint64_t tail = bases[random.below(4)] + 8 * random.below(64);
    if (random.one_in(50)) tail += random.below(8);
    std::uint64_t head = tail + 8 * random.below(kSmallSize / 8 + 1);
    if (random.one_in(50)) head = random.any();
    if (random.one_in(50)) head += random.below(300);
    if (random.one_in(50)) head = tail - 8 * random.below(kSmallSize / 8 + 2);  // S11, or just not
    fill(data, tail, random);
    page.data_tail = tail;
    // The high half does not matter: a 32-bit kernel's head has none, and a torn head a random one.
    page.data_head = random.one_in(2) ? head : (head & 0xffff'ffff) | (random.any() << 32);

    const std::vector<CopiedEvent> expected = ReferenceDrain{data, tail, head}.events();
    const std::string which = "seed " + std::to_string(seed);
    ASSERT_EQ(ring.readable(), !expected.empty()) << which;
    ASSERT_EQ(drain(ring, kSmallSize), expected) << which;
    ASSERT_LE(expected.size(), kSmallSize / 8) << which;
    ASSERT_EQ(page.data_tail, tail + ReferenceDrain::unread(kSmallSize, tail, head)) << which;
    ASSERT_EQ(cursor_difference(page, data, tail, expected, seed), "") << which;
  }
}

}  // namespace
}  // namespace perfring
