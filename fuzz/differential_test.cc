#include "fuzz/differential.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "harness/faults/memory_faults.h"

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

// No fault of harness/faults does this: the drain sees no record.
struct SeesNothing : DefaultMemory {
  static Position read_once(const SharedPosition& field) {
    return DefaultMemory::read_once(field) & 0;
  }
};

TEST(DifferentialTargetTest, TheDrainSeesWhatTheReferenceSees) {
  compare<DefaultMemory>("breaks_and_throws");
  compare<DefaultMemory>("wrap_at_size_prefix");
}

TEST(DifferentialTargetTest, AWrongConsumerDiffersFromTheReference) {
  EXPECT_DEATH(compare<faults::ShortensSamples<DefaultMemory>>("outputs_and_drains"),
               "event 0 is not the reference's");
  EXPECT_DEATH(compare<faults::TailAhead<DefaultMemory>>("outputs_and_drains"),
               "data_tail is not the reference's");
  EXPECT_DEATH(compare<faults::NeverCommits<DefaultMemory>>("outputs_and_drains"),
               "data_tail is not the reference's");
  EXPECT_DEATH(compare<SeesNothing>("outputs_and_drains"), "the reference has more events");
}

}  // namespace
}  // namespace perfring::fuzz
