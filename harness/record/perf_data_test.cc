// perf.data files made by hand: whole, cut at every byte, damaged, of others.

#include "harness/record/perf_data.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "perfring/record/testing/decoded.h"

namespace perfring::record {
namespace {

using testing::Made;
using testing::trailing;

std::string text_of(const std::vector<std::byte>& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

PerfDataEvent event_of(std::uint64_t sample_type, std::vector<std::uint64_t> ids) {
  PerfDataEvent event{trailing(sample_type), std::move(ids)};
  event.attr.size = sizeof event.attr;
  return event;
}

// A COMM of the event with id 7, a SAMPLE of that with id 9, and a FINISHED_ROUND, which is perf's.
std::string records() {
  return text_of(Made{PERF_RECORD_COMM}.u32(1).u32(2).text("sh").u64(33).u64(7).bytes()) +
         text_of(Made{PERF_RECORD_SAMPLE}.u64(9).u64(0x1000).bytes()) + text_of(Made{68}.bytes());
}
const std::vector<PerfDataEvent> kEvents{
    event_of(PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TIME, {5, 7}),
    event_of(PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP, {9})};

std::string file_of(const std::vector<PerfDataEvent>& events, const std::string& data) {
  return perf_data_header(events, data.size()) + data;
}

TEST(PerfDataTest, EachRecordIsDecodedAsItsEventSays) {
  const std::string file = file_of(kEvents, records());
  const auto read = PerfData::over(file);
  ASSERT_TRUE(read) << read.error();
  EXPECT_EQ(read->cut_off(), "");
  ASSERT_EQ(read->events().size(), 2U);
  EXPECT_EQ(read->events()[0].ids, (std::vector<std::uint64_t>{5, 7}));
  ASSERT_EQ(read->records().size(), 3U);
  const Any comm = read->decoded(read->records()[0]);
  EXPECT_EQ(std::get<Comm>(comm).sample_id().time(), 33U);
  EXPECT_EQ(read->event_of(comm), 0U);
  const Any sample = read->decoded(read->records()[1]);
  EXPECT_EQ(std::get<Sample>(sample).ip(), 0x1000U);
  EXPECT_EQ(read->event_of(sample), 1U);
  EXPECT_TRUE(std::holds_alternative<Unknown>(read->decoded(read->records()[2])));
}

TEST(PerfDataTest, AFileThatIsCutOffAnywhereIsSaidToBe) {
  const std::string file = file_of(kEvents, records());
  const std::size_t begin = file.size() - records().size();
  for (std::size_t size = 0; size < file.size(); ++size) {
    const std::string cut = file.substr(0, size);
    const auto read = PerfData::over(cut);
    if (size < begin) {
      EXPECT_FALSE(read) << size;
      continue;
    }
    ASSERT_TRUE(read) << size;
    EXPECT_NE(read->cut_off(), "") << size;
    EXPECT_LT(read->records().size(), 3U) << size;
  }
}

TEST(PerfDataTest, AnyWordOfAFileMayBeWrong) {
  const std::string file = file_of(kEvents, records());
  for (std::size_t word = 8; word + 8 <= file.size(); word += 8) {
    for (const std::uint64_t value : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{1} << 32,
                                      ~std::uint64_t{0}, ~std::uint64_t{0} - 7}) {
      std::vector<char> damaged{file.begin(), file.end()};
      std::memcpy(&damaged[word], &value, sizeof value);
      const auto read = PerfData::over({damaged.data(), damaged.size()});
      if (!read) continue;
      for (const auto& each : read->records()) static_cast<void>(read->decoded(each));
    }
  }
}

TEST(PerfDataTest, WhatIsNotReadIsNamed) {
  const std::string file = file_of(kEvents, records());
  const auto error = [](const std::string& text) {
    const auto read = PerfData::over(text);
    return read ? std::string{"read"} : read.error();
  };
  std::string swapped = file;
  std::reverse(swapped.begin(), swapped.begin() + 8);
  EXPECT_NE(error(swapped).find("other byte order"), std::string::npos);
  EXPECT_NE(error("PERFFILE" + file.substr(8)).find("before Linux 3.1"), std::string::npos);
  EXPECT_NE(error("PERFDATA" + file.substr(8)).find("no perf.data"), std::string::npos);
  std::string piped = file;
  const std::uint64_t size = 16;
  std::memcpy(&piped[8], &size, sizeof size);
  EXPECT_NE(error(piped).find("pipe"), std::string::npos);
  const std::vector<PerfDataEvent> apart{event_of(PERF_SAMPLE_TIME, {1}),
                                         event_of(PERF_SAMPLE_IP, {2})};
  EXPECT_NE(error(file_of(apart, records())).find("whose they are"), std::string::npos);
}

TEST(PerfDataTest, AuxDataBehindARecordArePassedOver) {
  const std::string aux = text_of(Made{71}.u64(16).u64(0).bytes()) + std::string(16, '\xff');
  const std::string file = file_of(kEvents, aux + records());
  const auto read = PerfData::over(file);
  ASSERT_TRUE(read) << read.error();
  EXPECT_EQ(read->cut_off(), "");
  EXPECT_EQ(read->records().size(), 4U);
}

}  // namespace
}  // namespace perfring::record
