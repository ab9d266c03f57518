// A record as a line of text.

#include <gtest/gtest.h>
#include <linux/perf_event.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "perfring/record/to_string.h"
#include "perfring/record/uapi.h"
#include "perfring/testing/hand_made_records.h"

namespace perfring::record {
namespace {

using testing::DecodedRecord;
using testing::RecordBuilder;
using testing::sampling;
using testing::trailing;

TEST(RecordToStringTest, NamesEachFieldAsTheUapiDoes) {
  RecordBuilder builder{PERF_RECORD_MMAP, 2};
  builder.u32(1).u32(2).u64(0x30).u64(4).u64(0x50).text("/a").u64(6);
  EXPECT_EQ(to_string(DecodedRecord{builder, trailing(PERF_SAMPLE_TIME)}.any()),
            "MMAP misc 0x2 size 56: pid 1, tid 2, addr 0x30, len 4, pgoff 0x50, filename \"/a\", "
            "sample_id {time 6}");
}

TEST(RecordToStringTest, ShowsWhatIsNested) {
  perf_event_attr attr = sampling(PERF_SAMPLE_READ | PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_RAW);
  attr.read_format = PERF_FORMAT_GROUP | PERF_FORMAT_ID;
  RecordBuilder builder{PERF_RECORD_SAMPLE};
  builder.u64(2).u64(5).u64(6).u64(7).u64(8).u64(1).u64(0x99).u32(4).run(4, 0xa0).run(8, 0);
  EXPECT_EQ(to_string(DecodedRecord{builder, attr}.any()),
            "SAMPLE misc 0x0 size 80: values {nr 2, cntr [{value 5, id 6}, {value 7, id 8}]}, "
            "callchain {nr 1, ips [0x99]}, raw {size 4, data a0a1a2a3}, rest 0001020304050607");
}

TEST(RecordToStringTest, ShowsEachTypesFieldsInTheUapisOrder) {
  const auto text = [](const RecordBuilder& builder, std::uint64_t trailer = 0) {
    return to_string(DecodedRecord{builder, trailing(trailer)}.any());
  };
  EXPECT_EQ(text(RecordBuilder{PERF_RECORD_LOST}.u64(1).u64(2)),
            "LOST misc 0x0 size 24: id 1, lost 2");
  EXPECT_EQ(text(RecordBuilder{PERF_RECORD_EXIT}.u32(1).u32(2).u32(3).u32(4).u64(5)),
            "EXIT misc 0x0 size 32: pid 1, ppid 2, tid 3, ptid 4, time 5");
  EXPECT_EQ(text(RecordBuilder{PERF_RECORD_FORK}.u32(1).u32(2).u32(3).u32(4).u64(5)),
            "FORK misc 0x0 size 32: pid 1, ppid 2, tid 3, ptid 4, time 5");
  EXPECT_EQ(text(RecordBuilder{PERF_RECORD_THROTTLE}.u64(1).u64(2).u64(3)),
            "THROTTLE misc 0x0 size 32: time 1, id 2, stream_id 3");
  EXPECT_EQ(text(RecordBuilder{PERF_RECORD_UNTHROTTLE}.u64(1).u64(2).u64(3)),
            "UNTHROTTLE misc 0x0 size 32: time 1, id 2, stream_id 3");
  EXPECT_EQ(text(RecordBuilder{PERF_RECORD_READ}.u32(1).u32(2).u64(3)),
            "READ misc 0x0 size 24: pid 1, tid 2, values {value 3}");
  RecordBuilder mmap2{PERF_RECORD_MMAP2};
  mmap2.u32(1).u32(2).u64(0x30).u64(4).u64(0x50).u32(6).u32(7).u64(8).u64(9).u32(10).u32(11);
  EXPECT_EQ(text(mmap2.text("/a")),
            "MMAP2 misc 0x0 size 80: pid 1, tid 2, addr 0x30, len 4, pgoff 0x50, maj 6, min 7, "
            "ino 8, ino_generation 9, prot 10, flags 11, filename \"/a\"");
  perf_event_attr identified{};
  identified.build_id = 1;
  RecordBuilder with_id{PERF_RECORD_MMAP2, PERF_RECORD_MISC_MMAP_BUILD_ID};
  with_id.u32(1).u32(2).u64(0x30).u64(4).u64(0x50).u8(3).run(3, 0).run(20, 0xa0).u32(10).u32(11);
  EXPECT_EQ(to_string(DecodedRecord{with_id.text("/a"), identified}.any()),
            "MMAP2 misc 0x4000 size 80: pid 1, tid 2, addr 0x30, len 4, pgoff 0x50, "
            "build_id_size 3, build_id a0a1a2, prot 10, flags 11, filename \"/a\"");
  EXPECT_EQ(text(RecordBuilder{PERF_RECORD_AUX}.u64(1).u64(2).u64(0x13)),
            "AUX misc 0x0 size 32: aux_offset 1, aux_size 2, flags 0x13");
  EXPECT_EQ(text(RecordBuilder{PERF_RECORD_ITRACE_START}.u32(1).u32(2)),
            "ITRACE_START misc 0x0 size 16: pid 1, tid 2");
  EXPECT_EQ(text(RecordBuilder{PERF_RECORD_LOST_SAMPLES}.u64(1)),
            "LOST_SAMPLES misc 0x0 size 16: lost 1");
  EXPECT_EQ(text(RecordBuilder{PERF_RECORD_SWITCH_CPU_WIDE}.u32(1).u32(2)),
            "SWITCH_CPU_WIDE misc 0x0 size 16: next_prev_pid 1, next_prev_tid 2");
  EXPECT_EQ(
      text(RecordBuilder{PERF_RECORD_NAMESPACES}.u32(1).u32(2).u64(2).u64(3).u64(4).u64(5).u64(6)),
      "NAMESPACES misc 0x0 size 56: pid 1, tid 2, nr_namespaces 2, "
      "namespaces [{dev 3, inode 4}, {dev 5, inode 6}]");
  EXPECT_EQ(text(RecordBuilder{PERF_RECORD_KSYMBOL}.u64(0x1f).u32(2).u16(3).u16(4).text("f")),
            "KSYMBOL misc 0x0 size 32: addr 0x1f, len 2, ksym_type 3, flags 4, name \"f\"");
  EXPECT_EQ(text(RecordBuilder{PERF_RECORD_BPF_EVENT}.u16(1).u16(2).u32(3).run(8, 0x10)),
            "BPF_EVENT misc 0x0 size 24: type 1, flags 2, id 3, tag 1011121314151617");
  EXPECT_EQ(text(RecordBuilder{PERF_RECORD_CGROUP}.u64(1).text("/c")),
            "CGROUP misc 0x0 size 24: id 1, path \"/c\"");
  EXPECT_EQ(
      text(RecordBuilder{PERF_RECORD_TEXT_POKE}.u64(0x1f).u16(2).u16(2).run(2, 0x10).run(2, 0x20)),
      "TEXT_POKE misc 0x0 size 24: addr 0x1f, old_len 2, new_len 2, old_bytes 1011, "
      "new_bytes 2021");
  EXPECT_EQ(text(RecordBuilder{PERF_RECORD_AUX_OUTPUT_HW_ID}.u64(1)),
            "AUX_OUTPUT_HW_ID misc 0x0 size 16: hw_id 1");
  EXPECT_EQ(text(RecordBuilder{kCallchainDeferred}.u64(1).u64(1).u64(0x2f)),
            "CALLCHAIN_DEFERRED misc 0x0 size 32: cookie 1, nr 1, ips [0x2f]");
  RecordBuilder change{PERF_RECORD_SWITCH};
  EXPECT_EQ(text(testing::add_sample_id(change), testing::kTrailer),
            "SWITCH misc 0x0 size 56: sample_id {pid 11, tid 12, time 13, id 14, stream_id 15, "
            "cpu 16, res 17, identifier 18}");
}

TEST(RecordToStringTest, ShowsEachFieldOfASample) {
  perf_branch_entry branch{};
  branch.from = 0x20;
  branch.to = 0x21;
  branch.mispred = branch.in_tx = 1;
  branch.cycles = 22;
  branch.type = 9;
  branch.spec = 2;
  branch.new_type = 3;
  branch.priv = 1;
  branch.reserved = 6;
  perf_sample_weight weight{};
  weight.var1_dw = 51;
  weight.var2_w = 52;
  weight.var3_w = 53;
  const auto text = [&](std::uint64_t weight_bit) {
    perf_event_attr attr = sampling((PERF_SAMPLE_WEIGHT_STRUCT << 1) - 1);  // all of v6.18's
    attr.sample_type &= ~std::uint64_t{PERF_SAMPLE_WEIGHT_TYPE};
    attr.sample_type |= weight_bit;
    attr.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING |
                       PERF_FORMAT_ID | PERF_FORMAT_LOST;
    attr.branch_sample_type = PERF_SAMPLE_BRANCH_HW_INDEX | kBranchCounters;
    attr.sample_regs_user = 0b101;
    attr.sample_regs_intr = 0b10;
    RecordBuilder builder{PERF_RECORD_SAMPLE};
    builder.u64(1).u64(2).u32(3).u32(4).u64(5).u64(6).u64(7).u64(8).u32(9).u32(10).u64(11);
    builder.u64(12).u64(13).u64(14).u64(15).u64(16);  // values
    builder.u64(0);                                   // ips
    builder.u32(4).run(4, 0xa0);                      // raw
    builder.u64(1).u64(19);                           // lbr
    for (const std::byte byte : std::as_bytes(std::span{&branch, 1})) {
      builder.u8(std::to_integer<std::uint8_t>(byte));
    }
    builder.u64(23);                     // counters
    builder.u64(2).u64(0x24).u64(0x25);  // regs_user
    builder.u64(8).run(8, 0xb0).u64(6);  // stack_user
    builder.u64(weight.full).u64(0x26).u64(0x27);
    builder.u64(1).u64(0x28);  // regs_intr
    builder.u64(0x29).u64(30).u64(31).u64(32).u64(2).run(2, 0xc0);
    return to_string(DecodedRecord{builder, attr}.any());
  };
  const std::string before =
      "identifier 1, ip 0x2, pid 3, tid 4, time 5, addr 0x6, id 7, stream_id 8, cpu 9, res 10, "
      "period 11, values {time_enabled 13, time_running 14, value 12, id 15, lost 16}, "
      "callchain {nr 0, ips []}, raw {size 4, data a0a1a2a3}, branch_stack {nr 1, hw_idx 19, "
      "lbr [{from 0x20, to 0x21, mispred 1, predicted 0, in_tx 1, abort 0, cycles 22, type 9, "
      "spec 2, new_type 3, priv 1, reserved 6}], counters [23]}, "
      "regs_user {abi 2, mask 0x5, regs [0x24, 0x25]}, "
      "stack_user {size 8, data b0b1b2b3b4b5b6b7, dyn_size 6}, ";
  const std::string after =
      ", data_src 0x26, transaction 0x27, regs_intr {abi 1, mask 0x2, regs [0x28]}, "
      "phys_addr 0x29, cgroup 30, data_page_size 31, code_page_size 32, "
      "aux {size 2, data c0c1}";
  const auto fields = [](const std::string& line) { return line.substr(line.find(": ") + 2); };
  EXPECT_EQ(fields(text(PERF_SAMPLE_WEIGHT_STRUCT)),
            before + "weight {var1_dw 51, var2_w 52, var3_w 53}" + after);
  EXPECT_EQ(fields(text(PERF_SAMPLE_WEIGHT)),
            before + "weight {full " + std::to_string(weight.full) + "}" + after);
}

TEST(RecordToStringTest, NoByteOfANameActsOnATerminal) {
  RecordBuilder builder{PERF_RECORD_COMM};
  builder.u32(1).u32(2).text("\x1b[2J\"\\\n\x80");
  EXPECT_EQ(to_string(DecodedRecord{builder, sampling(0)}.any()),
            "COMM misc 0x0 size 32: pid 1, tid 2, comm \"\\x1b[2J\\x22\\x5c\\x0a\\x80\"");
}

TEST(RecordToStringTest, NamesOfAnyLanguageAreShownAsTheyAre) {
  RecordBuilder builder{PERF_RECORD_COMM};
  // Latin-1's i with diaeresis, the same in UTF-8, and the C1 control CSI, which acts on a
  // terminal.
  builder.u32(1).u32(2).text("\xef \xc3\xaf\xe2\x82\xac \xc2\x9b");
  EXPECT_EQ(to_string(DecodedRecord{builder, sampling(0)}.any()),
            "COMM misc 0x0 size 32: pid 1, tid 2, comm \"\\xef \xc3\xaf\xe2\x82\xac \\xc2\\x9b\"");
}

TEST(RecordToStringTest, ARecordWithoutFieldsIsItsHeader) {
  EXPECT_EQ(to_string(DecodedRecord{RecordBuilder{PERF_RECORD_SWITCH, 0x2000}, sampling(0)}.any()),
            "SWITCH misc 0x2000 size 8");
}

TEST(RecordToStringTest, UndecodedRecordsAreShownAsBytes) {
  EXPECT_EQ(to_string(DecodedRecord{RecordBuilder{4711}.run(2, 1), sampling(0)}.any()),
            "type 4711 misc 0x0 size 10: rest 0102");
  const std::string text =
      to_string(DecodedRecord{RecordBuilder{PERF_RECORD_LOST}.u32(1), sampling(0)}.any());
  EXPECT_EQ(text, "LOST misc 0x0 size 12: malformed \"id\", bytes " +
                      testing::hex(RecordBuilder{PERF_RECORD_LOST}.u32(1).bytes()));
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
