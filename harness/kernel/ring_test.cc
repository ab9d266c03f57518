#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <iterator>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "harness/kernel/kernel_testing.h"
#include "harness/kernel/perf_event.h"
#include "harness/kernel/ring_buffer.h"
#include "harness/kernel/ring_memory.h"

namespace perfring::kernel {
namespace {

TEST(RingMemoryTest, FreshMappingIsZeroIncludingUserPage) {
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

TEST(RingMemoryTest, TheMemoryCannotBeResized) {
  const RingMemory memory{1};
  const std::string path = "/proc/self/fd/" + std::to_string(memory.fd());
  EXPECT_EQ(::ftruncate(memory.fd(), 0), -1);
  EXPECT_EQ(::ftruncate(memory.fd(), 8191), -1);
  EXPECT_EQ(::ftruncate(memory.fd(), 8193), -1);
  EXPECT_EQ(::truncate(path.c_str(), 0), -1);
  EXPECT_EQ(::open(path.c_str(), O_RDWR | O_CLOEXEC | O_TRUNC), -1);
  EXPECT_EQ(memory.bytes()[8191], std::byte{});
}

TEST(RingMemoryTest, AFileIsGivenItsLengthOnce) {
  const int fd = ::memfd_create("of a test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  EXPECT_EQ(give_length(fd, 8192), 0);
  EXPECT_EQ(give_length(fd, 4096), EPERM);
  EXPECT_EQ(::fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE), -1) << "nor may it become one to be read only";
  ::close(fd);
  EXPECT_EQ(give_length(-1, 4096), EBADF);
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
  EXPECT_NE(::mincore(base, 8192, &resident), 0);  // no longer mapped
}

// 0 is the lowest free descriptor when standard input is closed.
TEST(RingMemoryTest, DescriptorZeroIsClosed) {
  const int input = ::dup(0);
  ::close(0);
  {
    const RingMemory memory{1};
    EXPECT_EQ(memory.fd(), 0);
    RingMemory copy{1};
    const RingMemory moved{std::move(copy)};
    EXPECT_EQ(moved.bytes().size(), 8192u);
  }
  EXPECT_EQ(::fcntl(0, F_GETFD), -1) << "it was not closed";
  if (input >= 0) {
    ::dup2(input, 0);
    ::close(input);
  }
}

TEST(RingMemoryTest, AMovedFromMappingUnmapsNothing) {
  std::optional<RingMemory> memory{std::in_place, 1};
  const RingMemory moved{*std::move(memory)};
  memory.reset();
  unsigned char resident[2]{};
  EXPECT_EQ(::mincore(moved.bytes().data(), 8192, resident), 0) << "it is still mapped";
}

TEST(RingMemoryTest, ThrowsWhatTheMachineRefuses) {
  const std::ptrdiff_t before = descriptors();
  EXPECT_THROW((RingMemory{static_cast<std::size_t>(-1) / 2 / 4096 + 1}), std::system_error);
  EXPECT_EQ(descriptors(), before) << "and keeps nothing open";
}

// The capacity of a ring, and when it is full: K12, K13, K17, K18, K39, K40, K47.

using Bytes = std::vector<std::byte>;

// K12
TEST(PerfOutputBeginTest, AFullRingHoldsAsManyRecordsAsFit) {
  struct {
    std::size_t payload;
    std::size_t records;
  } const rows[] = {{4, 255}, {12, 170}, {20, 127}, {52, 63}};
  for (const Word word : {Word::k32, Word::k64}) {
    for (const bool backward : {false, true}) {
      for (const auto& [payload, records] : rows) {
        RingSetup setup{.word = word};
        setup.attr.write_backward = backward;
        TestRing ring{setup};
        EXPECT_EQ(ring.fill(payload), records);
      }
    }
  }
}

// K12: the ring's size minus 8 fits, and no more.
TEST(PerfOutputBeginTest, ARingNeverTakesItsLastEightBytes) {
  for (const bool backward : {false, true}) {
    RingSetup setup;
    setup.attr.write_backward = backward;
    TestRing ring{setup};
    EXPECT_EQ(ring.output(kPage - 12), -ENOSPC);
    TestRing other{setup};
    EXPECT_EQ(other.output(kPage - 8 - 12), 0);
    EXPECT_EQ(other.rb().head, backward ? 0 - __u64{kPage - 8} : kPage - 8);
  }
}

// K13, K16
TEST(PerfOutputBeginTest, FullRingCountsRefusals) {
  TestRing ring;
  ASSERT_EQ(ring.output(4000), 0);
  for (unsigned i = 1; i <= 3; ++i) {
    EXPECT_EQ(ring.output(200), -ENOSPC);
    EXPECT_EQ(ring.head(), 4016u);
    EXPECT_EQ(ring.rb().lost, i);
    EXPECT_EQ(ring.event->lost_samples, i);
    EXPECT_EQ(ring.rb().nest, 0u);
  }
}

// K17
TEST(PerfOutputBeginTest, TheTailCountsModuloTheRing) {
  for (const Word word : {Word::k32, Word::k64}) {
    for (const std::uint64_t tail : {256ull, 4352ull, (1ull << 32) + 256}) {
      TestRing ring{{.word = word}};
      ASSERT_EQ(ring.output(4076), 0);
      ring.tail(tail);
      EXPECT_EQ(ring.output(256 - 12), 0) << tail;
      EXPECT_EQ(ring.output(0), -ENOSPC);
    }
    for (const std::uint64_t tail : {257ull, 264ull}) {
      TestRing ring{{.word = word}};
      ASSERT_EQ(ring.output(244), 0);
      ring.tail(tail);
      EXPECT_EQ(ring.output(244), -ENOSPC) << tail;
    }
  }
}

// K12, K17: with a tail off the 8-byte grid, the free space can match the record to the byte.
TEST(PerfOutputBeginTest, AnUnalignedTailLeavesRoomThatFitsExactly) {
  for (const bool backward : {false, true}) {
    RingSetup setup;
    setup.attr.write_backward = backward;
    TestRing ring{setup};
    ASSERT_EQ(ring.output(4), 0);
    ring.tail(backward ? 0 - std::uint64_t{32} : 32);
    EXPECT_EQ(ring.output(4), -ENOSPC);  // 15 bytes free
    ring.rb().lost = 0;
    ring.tail(backward ? 0 - std::uint64_t{33} : 33);
    EXPECT_EQ(ring.output(4), 0);  // 16 bytes free
    EXPECT_EQ(ring.output(4), -ENOSPC);
  }
}

// K18
TEST(PerfOutputBeginTest, TheUserPageIsNotBelieved) {
  TestRing ring;
  ASSERT_EQ(ring.output(4), 0);
  ring.page().data_head = 0x1234'5678;
  ring.page().data_size = 1;
  ring.page().data_offset = 1;
  ASSERT_EQ(ring.output(4), 0);
  EXPECT_EQ(ring.head(), 32u);
  EXPECT_EQ(ring.size_at(16), 16);
}

// K39
TEST(PerfOutputBeginTest, AnOverwritingRingIsNeverFull) {
  TestRing ring{{.writable = false}};
  for (int i = 0; i < 1000; ++i) ASSERT_EQ(ring.output(52), 0);
  ASSERT_EQ(ring.output(kPage), 0);
  EXPECT_EQ(ring.head(), 64000u + kPage + 16);
  EXPECT_EQ(ring.rb().lost, 0u);
}

// K40
TEST(PerfOutputBeginTest, ABackwardRingGrowsDownwardInTheKernelsWord) {
  for (const Word word : {Word::k32, Word::k64}) {
    RingSetup setup{.word = word};
    setup.attr.write_backward = 1;
    TestRing ring{setup};
    ASSERT_EQ(ring.output(4), 0);
    const bool is64 = word == Word::k64;
    EXPECT_EQ(ring.head(), is64 ? 0xffff'ffff'ffff'fff0 : 0x0000'0000'ffff'fff0);
    EXPECT_EQ(ring.at(kPage - 16, 16),
              Bytes(Expected{}.header(9, 1, 16).u32(4).bytes({1, 2, 3, 4})));
    ASSERT_EQ(ring.output(5), 0);
    EXPECT_EQ(ring.head(), is64 ? 0xffff'ffff'ffff'ffd8 : 0x0000'0000'ffff'ffd8);
    EXPECT_EQ(ring.at(kPage - 40, 12), Bytes(Expected{}.header(9, 1, 24).u32(12)));
    EXPECT_EQ(ring.at(kPage - 16, 4), Bytes(Expected{}.u32(9)));
  }
}

// K47
TEST(PerfOutputBeginTest, A32BitKernelWrapsItsHead) {
  TestRing ring{{.pages = 32, .word = Word::k32}};
  start_at(ring.rb(), 0xffff'fff0);
  EXPECT_EQ(ring.head(), 0xffff'fff0u);
  ASSERT_EQ(ring.output(0x14860 - 12 + 16 - 65536), 0);
  EXPECT_EQ(ring.head(), 0x4860u);
  ring.consume();
  ASSERT_EQ(ring.output(65524 - 12), 0);
  EXPECT_EQ(ring.head(), 0x4860u + 65528u);
}

// K47, K50: start_at() sets the data_head that a 32-bit kernel would show, and a 64-bit data_tail.
TEST(PerfOutputBeginTest, ARingStartsAtAnyPosition) {
  const std::uint64_t position = 0x1'0001'4860;
  TestRing narrow{{.word = Word::k32}};
  start_at(narrow.rb(), position);
  EXPECT_EQ(narrow.head(), 0x14860u);
  EXPECT_EQ(narrow.rb().head, 0x14860u);
  EXPECT_EQ(narrow.page().data_tail, position);
  EXPECT_EQ(narrow.fill(4), 255u);
  EXPECT_EQ(narrow.head(), 0x14860u + 4080);
  TestRing wide;
  start_at(wide.rb(), position);
  EXPECT_EQ(wide.head(), position);
  EXPECT_EQ(wide.fill(4), 255u);
  EXPECT_EQ(wide.head(), position + 4080);
}

}  // namespace
}  // namespace perfring::kernel
