// A merge of a ring of any bytes and of a sound one.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "harness/faults/memory_faults.h"
#include "harness/rig/checked_memory.h"
#include "perfring/ring/testing/reference.h"
#include "perfring/rings/merge.h"
#include "perfring/rings/testing/rings.h"
#include "proptests/hostile_ring.h"
#include "proptests/property.h"
#include "proptests/scripts.h"

namespace perfring::proptests {
namespace {

using testing::Got;
using testing::keyed;
using testing::Seen;

constexpr std::uint64_t kNone = ~std::uint64_t{0};

// What is read lies in what was unread of one of the rings.
class OnlyUnread final : public rig::MemoryObserver {
 public:
  void watch(const testing::FakeRing& ring) {
    parts_.push_back({&ring, ring.page().data_tail, ring.page().data_head});
  }
  void watch(perf_event_mmap_page& page, std::span<std::byte> data) {
    hostile_ = {&page, data, page.data_tail, page.data_head};
  }
  void on_commit(SharedPosition) override {}
  void on_read(const std::byte* address, std::size_t size) override {
    const auto in = [&](const auto* from, std::size_t length) {
      const auto* begin = reinterpret_cast<const std::byte*>(from);
      return address >= begin && address + size <= begin + length;
    };
    bool inside = hostile_.reads(address, size) ||
                  in(&hostile_.page->data_tail, sizeof(hostile_.page->data_tail));
    for (const Part& part : parts_) {
      inside |=
          in(&part.ring->page().data_tail, sizeof(part.ring->page().data_tail)) ||
          in(part.ring->data().data() + part.tail, static_cast<std::size_t>(part.head - part.tail));
    }
    violated |= !inside;
  }
  bool violated = false;

 private:
  struct Part {
    const testing::FakeRing* ring;
    std::uint64_t tail;
    std::uint64_t head;
  };
  struct Hostile {
    perf_event_mmap_page* page;
    std::span<std::byte> data;
    std::uint64_t tail;
    std::uint64_t head;
    bool reads(const std::byte* address, std::size_t size) const {
      if (address < data.data() || address + size > data.data() + data.size()) return false;
      const auto index = static_cast<std::uint64_t>(address - data.data());
      const std::uint32_t unread = static_cast<std::uint32_t>(head - tail);
      if (unread > data.size()) return true;
      return ((index - tail) & (data.size() - 1)) + size <= unread;
    }
  };
  std::vector<Part> parts_;
  Hostile hostile_{};
};

// A hostile ring beside a sound one: of the first all that Ring delivers, of the second all, and in
// order.
template <class M>
void stays_inside() {
  const RingImage hostile = *ring_images(one_of<std::size_t>({4096, 8, 64, 1024, 16384}));
  perf_event_mmap_page page{};
  std::vector<std::uint64_t> words(hostile.size / 8);
  const auto data = std::as_writable_bytes(std::span{words});
  hostile.write_to(page, data);
  testing::Rings<M> rings{1, {.slack = 0, .learns = false}};
  rings.merge.add(page, data);
  const auto many = *rc::gen::inRange<std::uint32_t>(0, 100);
  for (std::uint32_t i = 0; i < many; ++i) rings.write(0, std::uint64_t{i} << 56, i);
  OnlyUnread watch;
  watch.watch(rings[0]);
  watch.watch(page, data);
  auto expected = testing::Reference{data, page.data_tail, page.data_head}.events();
  {
    const rig::Observing observing{watch};
    std::vector<Got> got;
    const auto take = [&](std::vector<Got> some) {
      got.insert(got.end(), some.begin(), some.end());
    };
    const std::uint64_t clock = *one_of<std::uint64_t>({0, 1, kNone / 2, kNone});
    const auto bounded = *rc::gen::inRange<std::uint64_t>(0, 200);
    take(rings.run(clock, bounded));
    take(rings.run(clock));
    take(rings.flush());
    std::uint32_t next = 0;
    for (const Got& each : got) {
      if (each.ring == 0) {
        RC_ASSERT(each.seen == Seen::sample(keyed(std::uint64_t{next} << 56, next)));
        ++next;
        continue;
      }
      const auto at = std::ranges::find(expected, each.seen);
      RC_ASSERT(at != expected.end());
      expected.erase(at);
    }
    RC_ASSERT(next == many);
  }
  RC_ASSERT(expected.empty());
  RC_ASSERT(!watch.violated);
  RC_ASSERT(static_cast<Position>(page.data_tail) == static_cast<Position>(page.data_head));
}

TEST(MergeHostileTest, AHostileRingBesideASoundOne) {
  always(stays_inside<rig::CheckedMemory>, 1000);
}
TEST(MergeHostileTest, FindsAMemoryThatReadsAhead) {
  EXPECT_TRUE(counterexample(stays_inside<faults::ReadsAhead<rig::CheckedMemory>>));
}

}  // namespace
}  // namespace perfring::proptests
