// Ring and Cursor beside testing/reference.h, on a ring of 256 bytes with whatever in it, and
// positions wherever.

#include <gtest/gtest.h>
#include <linux/perf_event.h>

#include <array>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "perfring/ring/ring.h"
#include "perfring/ring/testing/cursor_splits.h"
#include "perfring/ring/testing/reference.h"
#include "perfring/ring/testing/seen.h"

namespace perfring {
namespace {

using testing::differs_by_cursor;
using testing::drain;
using testing::Reference;
using testing::Seen;

constexpr std::uint64_t kSmallSize = 256;

class Random {
 public:
  explicit Random(std::uint64_t seed) : engine_{seed} {}
  // One of 0 .. below - 1. (The standard distributions differ from library to library.)
  std::uint64_t below(std::uint64_t below) { return engine_() % below; }
  bool one_in(std::uint64_t n) { return below(n) == 0; }
  std::uint64_t any() { return engine_(); }

 private:
  std::mt19937_64 engine_;
};

// Mostly records that a kernel could have written, in runs; some that are not.
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
    fill(data, tail, random);
    page.data_tail = tail;
    // A 32-bit kernel's head, and one whose high half is torn, are as good.
    page.data_head = random.one_in(2) ? head : (head & 0xffff'ffff) | (random.any() << 32);

    const std::vector<Seen> expected = Reference{data, tail, head}.events();
    const std::string which = "seed " + std::to_string(seed);
    ASSERT_EQ(ring.readable(), !expected.empty()) << which;
    ASSERT_EQ(drain(ring, kSmallSize), expected) << which;
    ASSERT_LE(expected.size(), kSmallSize / 8) << which;
    ASSERT_EQ(page.data_tail, tail + (head - tail) % (std::uint64_t{1} << 32)) << which;
    ASSERT_EQ(differs_by_cursor(page, data, tail, expected, seed), "") << which;
  }
}

}  // namespace
}  // namespace perfring
