// What the kernel makes of a payload, and that a Sample is all of it (K1 to K3, S4).

#include <cstddef>

#include "harness/live/testing.h"

namespace perfring::live {
namespace {

class PayloadTest : public LiveTest {};

constexpr std::size_t kSizes[] = {0, 1, 3, 4, 5, 8, 12, 13, 100, 4096, 65507, 65508, 65515, 65516};

TEST_F(PayloadTest, EverySizeArrivesIntact) {
  auto buffer = open(64);
  for (const std::size_t size : kSizes) {
    fill_payload(size, static_cast<unsigned>(size));
    ASSERT_EQ(emit(size), 0) << size;
    const auto seen = drain(buffer);
    ASSERT_EQ(seen.size(), 1u) << size;
    EXPECT_TRUE(is_payload(seen[0], size)) << size;
  }
}

}  // namespace
}  // namespace perfring::live
