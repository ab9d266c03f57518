#include "harness/kernel/ring_memory.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <iterator>
#include <system_error>
#include <utility>

namespace perfring::kernel {
namespace {

TEST(RingMemoryTest, AFreshMappingIsZeroAndBeginsWithThePage) {
  const RingMemory memory{4};
  EXPECT_EQ(memory.bytes().size(), 5u * 4096);
  EXPECT_TRUE(std::ranges::all_of(memory.bytes(), [](std::byte b) { return b == std::byte{}; }));
  EXPECT_EQ((RingMemory{1, 65536}.bytes().size()), 2u * 65536);
  EXPECT_EQ(RingMemory{0}.bytes().size(), 4096u);
}

TEST(RingMemoryTest, ASecondMappingOfTheDescriptorSeesTheSameBytes) {
  const RingMemory memory{1};
  void* const mapped = ::mmap(nullptr, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, memory.fd(), 0);
  ASSERT_NE(mapped, MAP_FAILED);
  auto* const other = static_cast<std::byte*>(mapped);
  memory.bytes()[5000] = std::byte{7};
  EXPECT_EQ(other[5000], std::byte{7});
  other[1] = std::byte{8};
  EXPECT_EQ(memory.bytes()[1], std::byte{8});
  ::munmap(mapped, 8192);
}

std::ptrdiff_t descriptors() {
  using Iterator = std::filesystem::directory_iterator;
  return std::distance(Iterator{"/proc/self/fd"}, Iterator{});
}

TEST(RingMemoryTest, AMovedMappingIsUnmappedOnce) {
  const std::ptrdiff_t before = descriptors();
  std::byte* base = nullptr;
  {
    RingMemory memory{1};
    base = memory.bytes().data();
    const RingMemory moved{std::move(memory)};
    EXPECT_EQ(moved.bytes().data(), base);
    EXPECT_EQ(descriptors(), before + 1);
  }
  EXPECT_EQ(descriptors(), before);
  unsigned char resident = 0;
  EXPECT_NE(::mincore(base, 8192, &resident), 0);  // not mapped any more
}

TEST(RingMemoryTest, ThrowsWhatTheMachineRefuses) {
  EXPECT_THROW((RingMemory{static_cast<std::size_t>(-1) / 2 / 4096 + 1}), std::system_error);
}

}  // namespace
}  // namespace perfring::kernel
