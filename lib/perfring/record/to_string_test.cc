#include "perfring/record/to_string.h"

#include <gtest/gtest.h>

#include "perfring/record/testing/decoded.h"

namespace perfring::record {
namespace {

using testing::Decoded;
using testing::Made;
using testing::sampling;
using testing::trailing;

TEST(RecordToStringTest, NamesEachFieldAsTheUapiDoes) {
  Made made{PERF_RECORD_MMAP, 2};
  made.u32(1).u32(2).u64(0x30).u64(4).u64(0x50).text("/a").u64(6);
  EXPECT_EQ(to_string(Decoded{made, trailing(PERF_SAMPLE_TIME)}.any()),
            "MMAP misc 0x2 size 56: pid 1, tid 2, addr 0x30, len 4, pgoff 0x50, filename \"/a\", "
            "sample_id {time 6}");
}

TEST(RecordToStringTest, ShowsWhatIsNested) {
  perf_event_attr attr = sampling(PERF_SAMPLE_READ | PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_RAW);
  attr.read_format = PERF_FORMAT_GROUP | PERF_FORMAT_ID;
  Made made{PERF_RECORD_SAMPLE};
  made.u64(2).u64(5).u64(6).u64(7).u64(8).u64(1).u64(0x99).u32(4).run(4, 0xa0).run(8, 0);
  EXPECT_EQ(to_string(Decoded{made, attr}.any()),
            "SAMPLE misc 0x0 size 80: values {nr 2, cntr [{value 5, id 6}, {value 7, id 8}]}, "
            "callchain {nr 1, ips [0x99]}, raw {size 4, data a0a1a2a3}, rest 0001020304050607");
}

TEST(RecordToStringTest, NoByteOfANameActsOnATerminal) {
  Made made{PERF_RECORD_COMM};
  made.u32(1).u32(2).text("\x1b[2J\"\\\n\x80");
  EXPECT_EQ(to_string(Decoded{made, sampling(0)}.any()),
            "COMM misc 0x0 size 32: pid 1, tid 2, comm \"\\x1b[2J\\x22\\x5c\\x0a\\x80\"");
}

TEST(RecordToStringTest, ARecordWithoutFieldsIsItsHeader) {
  EXPECT_EQ(to_string(Decoded{Made{PERF_RECORD_SWITCH, 0x2000}, sampling(0)}.any()),
            "SWITCH misc 0x2000 size 8");
}

TEST(RecordToStringTest, UnknownAndMalformedRecordsAreShownAsBytes) {
  EXPECT_EQ(to_string(Decoded{Made{4711}.run(2, 1), sampling(0)}.any()),
            "type 4711 misc 0x0 size 10: rest 0102");
  const std::string text = to_string(Decoded{Made{PERF_RECORD_LOST}.u32(1), sampling(0)}.any());
  EXPECT_EQ(text.substr(0, text.find(", bytes")), "LOST misc 0x0 size 12: malformed \"id\"");
}

TEST(RecordToStringTest, EveryTypeOfTheUapiHasItsName) {
  EXPECT_STREQ(type_name(PERF_RECORD_MMAP), "MMAP");
  EXPECT_STREQ(type_name(PERF_RECORD_SAMPLE), "SAMPLE");
  EXPECT_STREQ(type_name(PERF_RECORD_SWITCH_CPU_WIDE), "SWITCH_CPU_WIDE");
  EXPECT_STREQ(type_name(PERF_RECORD_AUX_OUTPUT_HW_ID), "AUX_OUTPUT_HW_ID");
  EXPECT_STREQ(type_name(kCallchainDeferred), "CALLCHAIN_DEFERRED");
  EXPECT_EQ(type_name(0), nullptr);
  EXPECT_EQ(type_name(23), nullptr);
}

}  // namespace
}  // namespace perfring::record
