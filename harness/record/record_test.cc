// Checks the decoder on genuine records: it decodes every known value, and where a record is cut or
// damaged, anywhere, it returns some result without reading outside the record.

#include <gtest/gtest.h>
#include <linux/perf_event.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <variant>
#include <vector>

#include "harness/program/read_file.h"
#include "harness/record/known_fields.h"
#include "harness/record/perf_data.h"
#include "harness/record/vectors.h"
#include "perfring/record/counts.h"
#include "perfring/record/decode.h"
#include "perfring/record/layout.h"
#include "perfring/record/sample.h"
#include "perfring/record/tasks.h"
#include "perfring/record/to_string.h"
#include "perfring/record/view.h"
#include "perfring/testing/hand_made_records.h"

namespace perfring::record {
namespace {

using testing::Guarded;

class RecordVectorsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (std::endian::native == std::endian::big) GTEST_SKIP() << "they are in little endian";
    auto vectors = parse_vectors(read_file(std::getenv("VECTORS")).value_or(""));
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
  // These records have no field for the events' ids.
  const std::vector<std::string> ids{"ids0", "ids1", "ids2"};
  const std::map<std::string, std::vector<std::string>> expected{{"read_rf0", {"id"}},
                                                                 {"read_rf2", {"id"}},
                                                                 {"read_rf8", {"id"}},
                                                                 {"read_syscall_group_rf8", ids},
                                                                 {"sample_read_group_rf8", ids}};
  EXPECT_EQ(absent, expected);
  EXPECT_EQ(compared, 964U);
}

// A READ has an id and so has its sample_id. `id` in `known` means the record's own.
TEST(KnownTest, AnIdIsTheRecordsOwnBeforeItsSampleIds) {
  if (std::endian::native == std::endian::big) GTEST_SKIP() << "it is in little endian";
  const auto compared = [](const std::string& known) {
    const auto vector = parse_vector(
        R"({"name": "read", "attr": {"sample_type": "0x40", "read_format": 4, "sample_id_all": 1},)"
        R"( "bytes": "080000000000280001000000020000000900000000000000)"
        R"(07000000000000005500000000000000", "known": )" +
        known + "}");
    return vector ? compare(*vector, decoded(*vector)) : Comparison{};
  };
  const Comparison right = compared(R"({"value": 9, "id": 7, "sid_id": 85})");
  EXPECT_EQ(right.of_known, 3U);
  EXPECT_TRUE(right.differences.empty()) << right.differences.front().field;
  EXPECT_EQ(compared(R"({"id": 85})").differences.size(), 1U);
}

// Decodes the record and reads every field. A view outside the record would fault.
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

TEST_F(RecordVectorsTest, DecodingTruncatedRecordStaysInBounds) {
  Guarded memory{{}};
  for (const Vector& vector : vectors_) {
    if (vector.is_read) continue;
    const Layout layout{vector.attr};
    for (std::size_t size = 0; size < vector.bytes.size(); ++size) {
      std::vector<std::byte> cut = vector.bytes;
      cut.resize(size);
      memory.place(cut);  // header.size is too large
      look_at(memory, layout);
      const Any as_stated = decode(memory.bytes(), layout);
      ASSERT_TRUE(std::holds_alternative<Malformed>(as_stated)) << vector.name << " of " << size;
      set_size(cut, size);
      memory.place(cut);
      look_at(memory, layout);
      memory.place(cut, Guarded::Against::First);
      look_at(memory, layout);
    }
  }
}

// A sample cut at any length is malformed: it must never pass for a shorter sample.
TEST_F(RecordVectorsTest, ASampleThatIsCutIsMalformed) {
  Guarded memory{{}};
  for (const Vector& vector : vectors_) {
    const Layout layout{vector.attr};
    const Any whole = decode(vector.bytes, layout);
    if (vector.is_read || !std::holds_alternative<Sample>(whole)) continue;
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

TEST_F(RecordVectorsTest, DecodingDamagedRecordStaysInBounds) {
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

// The layout of another event, as if a ring's events were mixed up.
TEST_F(RecordVectorsTest, AnyOtherLayoutDecodesWithinTheRecordsBytes) {
  Guarded memory{{}};
  for (const Vector& vector : vectors_) {
    memory.place(vector.bytes);
    for (const Vector& other : vectors_) look_at(memory, Layout{other.attr});
  }
}

// Hand-made perf.data files: whole, cut at every byte, damaged, and in other formats.

using testing::RecordBuilder;
using testing::trailing;

std::string text_of(const std::vector<std::byte>& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

PerfDataEvent event_of(std::uint64_t sample_type, std::vector<std::uint64_t> ids) {
  PerfDataEvent event{trailing(sample_type), std::move(ids)};
  event.attr.size = sizeof event.attr;
  return event;
}

// Returns a COMM from the event with id 7, a SAMPLE from the event with id 9, and perf's own
// FINISHED_ROUND.
std::string records() {
  return text_of(RecordBuilder{PERF_RECORD_COMM}.u32(1).u32(2).text("sh").u64(33).u64(7).bytes()) +
         text_of(RecordBuilder{PERF_RECORD_SAMPLE}.u64(9).u64(0x1000).bytes()) +
         text_of(RecordBuilder{68}.bytes());
}
const std::vector<PerfDataEvent> kEvents{
    event_of(PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TIME, {5, 7}),
    event_of(PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP, {9})};

// The records of a file, and the reason if they end too early.
struct Walked {
  std::vector<std::uint64_t> at;
  std::vector<Any> records;  // views of `kept`
  std::vector<std::vector<std::byte>> kept;
  std::string cut_off;
};
Walked walked(PerfData& file) {
  Walked all;
  all.cut_off = file.for_each([&](const PerfData::Record& each) {
    all.at.push_back(each.at);
    all.kept.emplace_back(each.bytes.begin(), each.bytes.end());
    all.records.push_back(file.decoded({each.at, all.kept.back()}));
    return true;
  });
  return all;
}

std::string file_of(const std::vector<PerfDataEvent>& events, const std::string& data) {
  return perf_data_header(events, data.size()) + data;
}

TEST(PerfDataTest, EachRecordIsDecodedByItsEvent) {
  const std::string file = file_of(kEvents, records());
  auto read = PerfData::over(file);
  ASSERT_TRUE(read) << read.error();
  ASSERT_EQ(read->events().size(), 2U);
  EXPECT_EQ(read->events()[0].ids, (std::vector<std::uint64_t>{5, 7}));
  const Walked all = walked(*read);
  EXPECT_EQ(all.cut_off, "");
  ASSERT_EQ(all.records.size(), 3U);
  EXPECT_EQ(all.at[0], file.size() - records().size());
  EXPECT_EQ(std::get<Comm>(all.records[0]).sample_id().time(), 33U);
  EXPECT_EQ(read->event_of(all.records[0]), 0U);
  EXPECT_EQ(std::get<Sample>(all.records[1]).ip(), 0x1000U);
  EXPECT_EQ(read->event_of(all.records[1]), 1U);
  EXPECT_TRUE(std::holds_alternative<Unknown>(all.records[2]));
}

TEST(PerfDataTest, TypesOfPerfsOwnHaveNames) {
  EXPECT_STREQ(perf_type_name(68), "FINISHED_ROUND");
  EXPECT_STREQ(perf_type_name(84), "BPF_METADATA");
  EXPECT_EQ(perf_type_name(85), nullptr);
  EXPECT_EQ(perf_type_name(PERF_RECORD_COMM), nullptr);
  EXPECT_EQ(perf_type_name(63), nullptr);
}

// /proc/self/mem is a regular file, and reading it at offset 0 fails.
TEST(PerfDataTest, AReadThatFailsIsNotTheEndOfTheFile) {
  const auto source = in_file("/proc/self/mem");
  ASSERT_TRUE(source.has_value());
  std::array<char, 8> room{};
  EXPECT_THROW(source->read(0, room), std::system_error);
}

TEST(PerfDataTest, TruncatedFileIsRefusedOrReportedAsCutOff) {
  const std::string file = file_of(kEvents, records());
  const std::size_t begin = file.size() - records().size();
  for (std::size_t size = 0; size < file.size(); ++size) {
    const std::string cut = file.substr(0, size);
    auto read = PerfData::over(cut);
    if (size < begin) {
      EXPECT_FALSE(read) << size;
      continue;
    }
    ASSERT_TRUE(read) << size;
    const Walked all = walked(*read);
    EXPECT_NE(all.cut_off, "") << size;
    EXPECT_LT(all.records.size(), 3U) << size;
  }
}

TEST(PerfDataTest, AnyWordOfAFileMayBeWrong) {
  const std::string file = file_of(kEvents, records());
  std::size_t records_read = 0, refused = 0;
  for (std::size_t word = 8; word + 8 <= file.size(); word += 8) {
    for (const std::uint64_t value : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{1} << 32,
                                      ~std::uint64_t{0}, ~std::uint64_t{0} - 7}) {
      std::vector<char> damaged{file.begin(), file.end()};
      std::memcpy(&damaged[word], &value, sizeof value);
      auto read = PerfData::over(std::string_view{damaged.data(), damaged.size()});
      if (read) records_read += walked(*read).records.size();
      if (!read) ++refused;
    }
  }
  EXPECT_GT(records_read, file.size() / 8) << "most words are of no consequence";
  EXPECT_GT(refused, 10u);
}

TEST(PerfDataTest, AFileThatCannotBeReadIsRefusedWithTheReason) {
  const std::string file = file_of(kEvents, records());
  const auto error = [](const std::string& text) {
    const auto read = PerfData::over(text);
    return read ? std::string{"read"} : read.error();
  };
  std::string swapped = file;
  std::reverse(swapped.begin(), swapped.begin() + 8);
  EXPECT_NE(error(swapped).find("other byte order"), std::string::npos);
  EXPECT_NE(error("PERFFILE" + file.substr(8)).find("before Linux 3.1"), std::string::npos);
  EXPECT_NE(error("PERFDATA" + file.substr(8)).find("not a perf.data"), std::string::npos);
  const std::vector<PerfDataEvent> apart{event_of(PERF_SAMPLE_TIME, {1}),
                                         event_of(PERF_SAMPLE_IP, {2})};
  EXPECT_NE(error(file_of(apart, records())).find("tell them apart"), std::string::npos);
}

TEST(PerfDataTest, AuxDataAfterARecordAreSkipped) {
  const std::string aux =
      text_of(RecordBuilder{71}.u64(16).u64(0).bytes()) + std::string(16, '\xff');
  const std::string file = file_of(kEvents, aux + records());
  auto read = PerfData::over(file);
  ASSERT_TRUE(read) << read.error();
  const Walked all = walked(*read);
  EXPECT_EQ(all.cut_off, "");
  EXPECT_EQ(all.records.size(), 4U);
}

// `perf record -o -`: a header of 16 bytes, and a HEADER_ATTR for each event. If there are
// tracepoints, a HEADER_TRACING_DATA (66) is followed by data that are not records.
TEST(PerfDataTest, TheFormOfAPipeIsRead) {
  std::string file = file_of(kEvents, "").substr(0, 16);
  const std::uint64_t size = 16;
  std::memcpy(&file[8], &size, sizeof size);
  std::size_t first = 0;  // the end of the first event
  for (const PerfDataEvent& each : kEvents) {
    RecordBuilder builder{64};
    for (std::size_t at = 0; at < sizeof each.attr; at += 8) {
      std::uint64_t word = 0;
      std::memcpy(&word, reinterpret_cast<const std::byte*>(&each.attr) + at, sizeof word);
      builder.u64(word);
    }
    for (const std::uint64_t id : each.ids) builder.u64(id);
    file += text_of(builder.bytes());
    if (first == 0) first = file.size();
  }
  file += text_of(RecordBuilder{66}.u32(16).u32(0).bytes()) + std::string(16, '\xff');
  file += records();
  auto read = PerfData::over(file);
  ASSERT_TRUE(read) << read.error();
  EXPECT_EQ(read->events()[0].ids, (std::vector<std::uint64_t>{5, 7}));
  const Walked all = walked(*read);
  EXPECT_EQ(all.cut_off, "");
  ASSERT_EQ(all.records.size(), 6U);
  EXPECT_EQ(std::get<Comm>(all.records[3]).sample_id().time(), 33U);
  EXPECT_EQ(std::get<Sample>(all.records[4]).ip(), 0x1000U);
  for (std::size_t cut = 16; cut < file.size(); ++cut) {
    auto part = PerfData::over(std::string_view{file}.substr(0, cut));
    EXPECT_EQ(part.has_value(), cut >= first) << cut;
    if (part) {
      EXPECT_LT(walked(*part).records.size(), 6U) << cut;
    }
  }
  std::string damaged = file;
  damaged[16 + 8 + 5] = '\x7f';  // attr.size
  EXPECT_FALSE(PerfData::over(damaged));
}

// PerfData reads the file in pieces. Records of many sizes straddle their boundaries.
TEST(PerfDataTest, AFileLargerThanOneReadIsReadCompletely) {
  std::string data;
  std::size_t expected = 0;
  for (std::size_t words = 1; data.size() < (5 << 20); words = words * 5 % 8191) {
    RecordBuilder builder{63};
    for (std::size_t i = 0; i < words; ++i) builder.u64(words);
    data += text_of(builder.bytes());
    ++expected;
  }
  const std::string file = file_of({kEvents.back()}, data);
  std::size_t longest = 0;
  PerfDataSource source = in_memory(file);
  source.read = [&, read = source.read](std::uint64_t offset, std::span<char> into) {
    longest = std::max(longest, into.size());
    return read(offset, into);
  };
  auto read = PerfData::over(source);
  ASSERT_TRUE(read) << read.error();
  const Walked all = walked(*read);
  EXPECT_EQ(all.cut_off, "");
  EXPECT_EQ(all.records.size(), expected);
  EXPECT_LE(longest, 1U << 20);
  for (const auto& each : all.kept) {
    std::uint64_t words = 0;
    std::memcpy(&words, &each[8], sizeof words);
    EXPECT_EQ(each.size(), 8 + 8 * words);
  }
}

// The file becomes shorter while it is read.
TEST(PerfDataTest, AFileThatShrinksIsCutOff) {
  const std::string file = file_of(kEvents, records());
  PerfDataSource source = in_memory(file);
  bool is_short = false;
  source.read = [&, read = source.read](std::uint64_t offset, std::span<char> into) {
    return is_short ? 0 : read(offset, into);
  };
  auto read = PerfData::over(source);
  ASSERT_TRUE(read) << read.error();
  is_short = true;
  EXPECT_NE(walked(*read).cut_off, "");
}

}  // namespace
}  // namespace perfring::record
