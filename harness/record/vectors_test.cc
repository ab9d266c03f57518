// Genuine records: every value that is known of them is decoded; and cut and damaged anywhere, they
// are decoded to something, without a look outside.

#include "harness/record/vectors.h"

#include <gtest/gtest.h>

#include <bit>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <sstream>

#include "harness/record/known.h"
#include "harness/record/record_json.h"
#include "perfring/record/testing/made.h"
#include "perfring/record/to_string.h"

namespace perfring::record {
namespace {

using testing::Guarded;

std::string text_of_the_file() {
  const char* const path = std::getenv("VECTORS");
  std::stringstream text;
  text << std::ifstream{path == nullptr ? "" : path}.rdbuf();
  return text.str();
}

class RecordVectorsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (std::endian::native == std::endian::big) GTEST_SKIP() << "they are in little endian";
    auto vectors = parse_vectors(text_of_the_file());
    ASSERT_TRUE(vectors) << vectors.error();
    vectors_ = *std::move(vectors);
    ASSERT_EQ(vectors_.size(), 122U);
  }
  std::vector<Vector> vectors_;
};

TEST_F(RecordVectorsTest, EveryKnownValueIsDecoded) {
  std::size_t compared = 0;
  std::map<std::string, std::vector<std::string>> absent;
  for (const Vector& vector : vectors_) {
    const auto json = decoded(vector);
    const Comparison comparison = compare(vector, json);
    compared += comparison.compared;
    for (const Difference& difference : comparison.differences) {
      ADD_FAILURE() << vector.name << ": " << difference.field << " is known to be "
                    << difference.known << ", decoded as " << difference.decoded;
    }
    if (!comparison.absent.empty()) absent[vector.name] = comparison.absent;
    EXPECT_FALSE(json.contains("malformed")) << vector.name;
    EXPECT_EQ(json.contains("rest"), vector.name == "synthetic_future_fork_longer_sid" ||
                                         vector.name == "synthetic_future_type_23_sid")
        << vector.name << ": " << json.value("rest", "");
  }
  // The events' ids, which no field of these has.
  const std::vector<std::string> ids{"ids0", "ids1", "ids2"};
  const std::map<std::string, std::vector<std::string>> expected{{"read_rf0", {"id"}},
                                                                 {"read_rf2", {"id"}},
                                                                 {"read_rf8", {"id"}},
                                                                 {"read_syscall_group_rf8", ids},
                                                                 {"sample_read_group_rf8", ids}};
  EXPECT_EQ(absent, expected);
  EXPECT_EQ(compared, 964U);
}

// Decodes and looks at everything. Whatever comes of it, it is of the record.
void look_at(const Guarded& memory, const Layout& layout) {
  const Any any = decode(memory.bytes(), layout);
  const std::string text = to_string(any);
  EXPECT_FALSE(text.empty());
  const auto* const malformed = std::get_if<Malformed>(&any);
  EXPECT_TRUE(malformed == nullptr || malformed->field != std::string_view{});
}

void set_size(std::vector<std::byte>& record, std::size_t size) {
  const auto value = static_cast<std::uint16_t>(size);
  if (record.size() >= sizeof(perf_event_header)) std::memcpy(&record[6], &value, sizeof value);
}

TEST_F(RecordVectorsTest, CutAtAnyLengthTheyAreDecodedToWhatIsLeft) {
  Guarded memory{{}};
  for (const Vector& vector : vectors_) {
    if (vector.is_read) continue;
    const Layout layout{vector.attr};
    for (std::size_t size = 0; size < vector.bytes.size(); ++size) {
      std::vector<std::byte> cut = vector.bytes;
      cut.resize(size);
      memory.place(cut);  // header.size says more
      look_at(memory, layout);
      const Any as_said = decode(memory.bytes(), layout);
      ASSERT_TRUE(std::holds_alternative<Malformed>(as_said)) << vector.name << " of " << size;
      set_size(cut, size);
      memory.place(cut);
      look_at(memory, layout);
      memory.place(cut, Guarded::Against::First);
      look_at(memory, layout);
    }
  }
}

// A sample is never taken for a shorter one: cut by 8 bytes or more, it is malformed.
TEST_F(RecordVectorsTest, ASampleThatIsCutIsMalformed) {
  Guarded memory{{}};
  for (const Vector& vector : vectors_) {
    const Any whole = decode(vector.bytes, Layout{vector.attr});
    if (vector.is_read || !std::holds_alternative<Sample>(whole)) continue;
    const Layout layout{vector.attr};
    for (std::size_t size = sizeof(perf_event_header); size < vector.bytes.size(); ++size) {
      std::vector<std::byte> cut = vector.bytes;
      cut.resize(size);
      set_size(cut, size);
      memory.place(cut);
      const Any any = decode(memory.bytes(), layout);
      EXPECT_TRUE(std::holds_alternative<Malformed>(any)) << vector.name << " of " << size;
    }
  }
}

TEST_F(RecordVectorsTest, WithAnyWordDamagedTheyStayInside) {
  Guarded memory{{}};
  for (const Vector& vector : vectors_) {
    if (vector.is_read) continue;
    const Layout layout{vector.attr};
    for (std::size_t at = 0; at + 8 <= vector.bytes.size(); at += 4) {
      for (const std::uint64_t word : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{1} << 32,
                                       ~std::uint64_t{0}, std::uint64_t{1} << 61}) {
        std::vector<std::byte> damaged = vector.bytes;
        std::memcpy(&damaged[at], &word, sizeof word);
        memory.place(damaged);
        look_at(memory, layout);
      }
    }
  }
}

// Another event's layout, as for a ring whose events were mixed up.
TEST_F(RecordVectorsTest, DecodedByAnyOtherLayoutTheyStayInside) {
  Guarded memory{{}};
  for (const Vector& vector : vectors_) {
    memory.place(vector.bytes);
    for (const Vector& other : vectors_) look_at(memory, Layout{other.attr});
  }
}

}  // namespace
}  // namespace perfring::record
