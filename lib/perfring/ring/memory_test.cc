// The policies' values. fences_test.sh checks the instructions of their fences; ring_ordering_test
// checks that the fences suffice.

#include "perfring/ring/memory.h"

#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <type_traits>

#include "perfring/ring/default_memory.h"
#include "perfring/ring/hardware_memory.h"

namespace perfring {
namespace {

static_assert(std::is_same_v<SharedPosition, __u64>);
static_assert(sizeof(Position) == 4 && std::is_unsigned_v<Position>);

// The concept requires every part.
struct NoHeadFence {
  static Position read_once(const SharedPosition& field);
  static void write_once(SharedPosition& field, SharedPosition value);
  static void fence_before_write_of(const SharedPosition&);
  template <class T>
  static T read(const std::byte* address);
};
struct ReadsWholeHeads : HardwareMemory {
  static SharedPosition read_once(const SharedPosition& field);
};
struct NoTailFence : HardwareMemory {
  static void fence_before_write_of(const SharedPosition&) = delete;
};
struct WritesNothing : HardwareMemory {
  static void write_once(SharedPosition& field, SharedPosition value) = delete;
};
template <std::size_t kSize>
struct ReadsOnly : HardwareMemory {
  template <class T>
    requires(sizeof(T) == kSize)
  static T read(const std::byte* address);
};
static_assert(Memory<HardwareMemory> && Memory<DefaultMemory>);
static_assert(!Memory<NoHeadFence> && !Memory<NoTailFence> && !Memory<WritesNothing>);
static_assert(!Memory<ReadsOnly<4>> && !Memory<ReadsOnly<8>>);
static_assert(!Memory<ReadsWholeHeads>, "positions are compared modulo 2^32");

template <class M>
class MemoryTest : public ::testing::Test {};
using Policies = ::testing::Types<HardwareMemory, DefaultMemory>;
TYPED_TEST_SUITE(MemoryTest, Policies);

TYPED_TEST(MemoryTest, ReadOnceIsTheLowWord) {
  SharedPosition field = 0x1122'3344'5566'7788;
  EXPECT_EQ(TypeParam::read_once(field), 0x5566'7788U);
  field = 0xffff'ffff;
  EXPECT_EQ(TypeParam::read_once(field), 0xffff'ffffU);
}

TYPED_TEST(MemoryTest, WriteOnceWritesExactlyOneField) {
  SharedPosition fields[]{7, 7, 7};
  TypeParam::write_once(fields[1], 0x1122'3344'5566'7788);
  EXPECT_EQ(fields[0], 7U);
  EXPECT_EQ(fields[1], 0x1122'3344'5566'7788U);
  EXPECT_EQ(fields[2], 7U);
}

TYPED_TEST(MemoryTest, ReadsBytesInNativeOrder) {
  alignas(8) std::byte bytes[16];
  for (std::size_t i = 0; i < sizeof(bytes); ++i) bytes[i] = static_cast<std::byte>(i + 1);
  constexpr bool little = std::endian::native == std::endian::little;
  EXPECT_EQ(TypeParam::template read<std::uint32_t>(bytes + 4),
            little ? 0x0807'0605U : 0x0506'0708U);
  EXPECT_EQ(TypeParam::template read<std::uint64_t>(bytes + 8),
            little ? 0x100f'0e0d'0c0b'0a09U : 0x090a'0b0c'0d0e'0f10U);
}

TYPED_TEST(MemoryTest, FencesLeaveThePositionsAlone) {
  SharedPosition field = 42;
  TypeParam::fence_after_read_of(field);
  TypeParam::fence_before_write_of(field);
  EXPECT_EQ(field, 42U);
}

}  // namespace
}  // namespace perfring
