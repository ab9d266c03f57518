#include "fuzz/differential.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

namespace perfring::fuzz {
namespace {

template <Memory M>
void compare(const std::string& name) {
  std::ifstream in{"fuzz/differential_seeds/" + name, std::ios::binary};
  const std::string bytes{std::istreambuf_iterator<char>{in}, {}};
  if (!in) ADD_FAILURE() << name << " cannot be read";
  const Input input{reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()};
  Differential<M>{input}.run();
}

struct MistakesRawSize : DefaultMemory {
  template <class T>
  static T read(const std::byte* address) {
    const T value = DefaultMemory::read<T>(address);
    if constexpr (sizeof(T) == 4) return value - 1;
    return value;
  }
};
struct ReleasesTooMuch : DefaultMemory {
  static void write_once(SharedPosition& field, SharedPosition value) {
    DefaultMemory::write_once(field, value + 8);
  }
};
struct SeesNothing : DefaultMemory {
  static Position read_once(const SharedPosition& field) {
    return DefaultMemory::read_once(field) & 0;
  }
};
// As if there were always more: ready, though all is consumed.
struct WritesNothingBack : DefaultMemory {
  static void write_once(SharedPosition&, SharedPosition) {}
};

TEST(DifferentialTargetTest, TheDrainSeesWhatTheReferenceSees) {
  compare<DefaultMemory>("breaks_and_throws");
  compare<DefaultMemory>("wrap_at_size_prefix");
}

TEST(DifferentialTargetTest, AWrongConsumerDiffersFromTheReference) {
  EXPECT_DEATH(compare<MistakesRawSize>("outputs_and_drains"), "event 0 is not the reference's");
  EXPECT_DEATH(compare<ReleasesTooMuch>("outputs_and_drains"), "data_tail is not the reference's");
  EXPECT_DEATH(compare<WritesNothingBack>("outputs_and_drains"),
               "data_tail is not the reference's");
  EXPECT_DEATH(compare<SeesNothing>("outputs_and_drains"), "the reference has more events");
}

}  // namespace
}  // namespace perfring::fuzz
