// The seeds of the target `record` are what they are named for.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <string>

#include "fuzz/record.h"

namespace perfring::fuzz {
namespace {

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
