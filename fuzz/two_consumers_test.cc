// The targets judge what they should, and their seeds are what they are named for.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <string>

#include "fuzz/record.h"
#include "fuzz/two_consumers.h"
#include "harness/faults/memory_faults.h"

namespace perfring::fuzz {
namespace {

template <Memory M>
void compare(const std::string& name) {
  std::ifstream in{"fuzz/two_consumers_seeds/" + name, std::ios::binary};
  const std::string bytes{std::istreambuf_iterator<char>{in}, {}};
  if (!in) ADD_FAILURE() << name << " cannot be read";
  const Input input{reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()};
  TwoConsumers<M>{input}.run();
}

// No fault of harness/faults does this: the drain sees no record.
struct SeesNothing : DefaultMemory {
  static Position read_once(const SharedPosition& field) {
    return DefaultMemory::read_once(field) & 0;
  }
};

TEST(TwoConsumersTest, TheDrainSeesWhatTheReferenceSees) {
  compare<DefaultMemory>("breaks_and_throws");
  compare<DefaultMemory>("wrap_at_size_prefix");
}

TEST(TwoConsumersTest, AFaultyConsumerDiffersFromTheReference) {
  EXPECT_DEATH(compare<faults::ShortensSamples<DefaultMemory>>("outputs_and_drains"),
               "event 0 is not the reference's");
  EXPECT_DEATH(compare<faults::TailAhead<DefaultMemory>>("outputs_and_drains"),
               "data_tail is not the reference's");
  EXPECT_DEATH(compare<faults::NeverCommits<DefaultMemory>>("outputs_and_drains"),
               "data_tail is not the reference's");
  EXPECT_DEATH(compare<SeesNothing>("outputs_and_drains"), "the reference has more events");
}

std::map<std::string, std::string> decoded_seeds() {
  std::map<std::string, std::string> texts;
  for (const auto& entry : std::filesystem::directory_iterator{"fuzz/record_seeds"}) {
    std::ifstream in{entry.path(), std::ios::binary};
    const std::string bytes{std::istreambuf_iterator<char>{in}, {}};
    const Input input{reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()};
    texts[entry.path().filename()] = AnyRecord{input}.run();
  }
  return texts;
}

TEST(FuzzRecordTest, TheSeedsAreRecordsOfEveryType) {
  if (std::endian::native == std::endian::big) GTEST_SKIP() << "they are in little endian";
  std::set<std::string> types;
  for (const auto& [name, text] : decoded_seeds()) {
    EXPECT_EQ(text.find("malformed"), std::string::npos) << name << ": " << text;
    types.insert(text.substr(0, text.find(' ')));
  }
  // All of the 22 but AUX, ITRACE_START and LOST_SAMPLES; and an unknown one, `type`.
  EXPECT_EQ(types.size(), 20U);
}

TEST(FuzzRecordTest, AnEmptyInputIsMalformed) {
  EXPECT_NE((AnyRecord{Input{nullptr, 0}}.run().find("malformed")), std::string::npos);
}

}  // namespace
}  // namespace perfring::fuzz
