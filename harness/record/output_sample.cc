// perf_output_sample() in kernel/events/core.c (v6.18), and the functions that it calls.

#include "harness/record/encoder.h"

namespace perfring::record {
namespace {

// perf_output_read_one()
void output_read_one(Output& out, std::uint64_t read_format) {
  out.u64("value");
  if (read_format & PERF_FORMAT_TOTAL_TIME_ENABLED) out.u64("time_enabled");
  if (read_format & PERF_FORMAT_TOTAL_TIME_RUNNING) out.u64("time_running");
  if (read_format & PERF_FORMAT_ID) out.u64("id");
  if (read_format & PERF_FORMAT_LOST) out.u64("lost");
}

// perf_output_read_group(): the leader, then for_each_sibling_event().
void output_read_group(Output& out, std::uint64_t read_format, std::size_t siblings) {
  out.put("nr", std::uint64_t{1 + siblings});
  if (read_format & PERF_FORMAT_TOTAL_TIME_ENABLED) out.u64("time_enabled");
  if (read_format & PERF_FORMAT_TOTAL_TIME_RUNNING) out.u64("time_running");
  out.begin("cntr", Json::array());
  for (std::size_t i = 0; i < 1 + siblings; ++i) {
    out.begin("");
    out.u64("value");
    if (read_format & PERF_FORMAT_ID) out.u64("id");
    if (read_format & PERF_FORMAT_LOST) out.u64("lost");
    out.end();
  }
  out.end();
}

}  // namespace

// perf_output_read()
void output_read(Output& out, std::uint64_t read_format, std::size_t siblings) {
  out.begin("values");
  if (read_format & PERF_FORMAT_GROUP) {
    output_read_group(out, read_format, siblings);
  } else {
    output_read_one(out, read_format);
  }
  out.end();
}

void output_ips(Output& out, std::size_t nr) {
  out.put("nr", std::uint64_t{nr});
  out.begin("ips", Json::array());
  for (std::size_t i = 0; i < nr; ++i) out.u64("");
  out.end();
}

namespace {

// perf_output_sample(): the sum of a fragment's size and the u32 before it is a multiple of 8
// (perf_prepare_sample()).
void output_raw(Output& out, std::size_t written) {
  const std::size_t size = (written + sizeof(std::uint32_t) + 7) / 8 * 8 - sizeof(std::uint32_t);
  out.begin("raw");
  out.put("size", static_cast<std::uint32_t>(size));
  out.data("data", size);
  out.end();
}

void output_branch_entry(Output& out) {
  perf_branch_entry entry{};
  entry.from = out.value();
  entry.to = out.value();
  const std::uint64_t bits = out.value();
  entry.mispred = bits & 1;
  entry.predicted = bits >> 1 & 1;
  entry.in_tx = bits >> 2 & 1;
  entry.abort = bits >> 3 & 1;
  entry.cycles = bits >> 4 & 0xffff;
  entry.type = bits >> 20 & 0xf;
  entry.spec = bits >> 24 & 3;
  entry.new_type = bits >> 26 & 0xf;
  entry.priv = bits >> 30 & 7;
  out.begin("");
  out.field("from", std::uint64_t{entry.from});
  out.field("to", std::uint64_t{entry.to});
  out.field("mispred", bits & 1);
  out.field("predicted", bits >> 1 & 1);
  out.field("in_tx", bits >> 2 & 1);
  out.field("abort", bits >> 3 & 1);
  out.field("cycles", bits >> 4 & 0xffff);
  out.field("type", bits >> 20 & 0xf);
  out.field("spec", bits >> 24 & 3);
  out.field("new_type", bits >> 26 & 0xf);
  out.field("priv", bits >> 30 & 7);
  out.end();
  out.add(entry);
}

// perf_output_sample(): without a branch stack only nr = 0 is written (T14).
void output_branches(Output& out, const Shape& shape, std::uint64_t branch_sample_type) {
  constexpr std::uint64_t kHwIndex = 1U << 17;   // PERF_SAMPLE_BRANCH_HW_INDEX
  constexpr std::uint64_t kCounters = 1U << 19;  // PERF_SAMPLE_BRANCH_COUNTERS
  const std::size_t nr = shape.has_branches ? shape.branches : 0;
  out.begin("branch_stack");
  out.put("nr", std::uint64_t{nr});
  if (shape.has_branches && (branch_sample_type & kHwIndex) != 0) out.u64("hw_idx");
  out.begin("lbr", Json::array());
  for (std::size_t i = 0; i < nr; ++i) output_branch_entry(out);
  out.end();
  if (nr != 0 && (branch_sample_type & kCounters) != 0) {
    out.begin("counters", Json::array());
    for (std::size_t i = 0; i < nr; ++i) out.u64("");
    out.end();
  }
  out.end();
}

// perf_output_sample_regs(): a register for each bit that is set in the mask (for_each_set_bit()),
// but none if abi is 0.
void output_regs(Output& out, const char* name, std::uint64_t abi, std::uint64_t mask) {
  out.begin(name);
  out.put("abi", abi);
  out.field("mask", mask);
  out.begin("regs", Json::array());
  for (unsigned bit = 0; bit < 64 && abi != 0; ++bit) {
    if (mask >> bit & 1) out.u64("");
  }
  out.end();
  out.end();
}

// perf_output_sample_ustack()
void output_ustack(Output& out, std::size_t size) {
  out.begin("stack_user");
  out.put("size", std::uint64_t{size});
  out.data("data", size);
  if (size != 0) out.put("dyn_size", std::uint64_t{out.value() % (size + 1)});
  out.end();
}

void output_weight(Output& out, std::uint64_t sample_type) {
  perf_sample_weight weight;
  weight.full = out.value();
  out.begin("weight");
  if (sample_type & PERF_SAMPLE_WEIGHT_STRUCT) {
    out.field("var1_dw", std::uint32_t{weight.var1_dw});
    out.field("var2_w", std::uint16_t{weight.var2_w});
    out.field("var3_w", std::uint16_t{weight.var3_w});
  } else {
    out.field("full", std::uint64_t{weight.full});
  }
  out.end();
  out.add(weight);
}

// The part of perf_output_sample() before READ: the fields of fixed size.
void output_sample_head(Output& out, std::uint64_t sample_type) {
  if (sample_type & PERF_SAMPLE_IDENTIFIER) out.u64("identifier");
  if (sample_type & PERF_SAMPLE_IP) out.u64("ip");
  if (sample_type & PERF_SAMPLE_TID) {
    out.u32("pid");
    out.u32("tid");
  }
  if (sample_type & PERF_SAMPLE_TIME) out.u64("time");
  if (sample_type & PERF_SAMPLE_ADDR) out.u64("addr");
  if (sample_type & PERF_SAMPLE_ID) out.u64("id");
  if (sample_type & PERF_SAMPLE_STREAM_ID) out.u64("stream_id");
  if (sample_type & PERF_SAMPLE_CPU) {
    out.u32("cpu");
    out.put("res", std::uint32_t{0});
  }
  if (sample_type & PERF_SAMPLE_PERIOD) out.u64("period");
}

}  // namespace

// perf_output_sample()
void output_sample(Output& out, const perf_event_attr& attr, const Shape& shape) {
  const std::uint64_t sample_type = attr.sample_type;
  output_sample_head(out, sample_type);
  if (sample_type & PERF_SAMPLE_READ) output_read(out, attr.read_format, shape.siblings);
  if (sample_type & PERF_SAMPLE_CALLCHAIN) {
    out.begin("callchain");
    output_ips(out, shape.callchain);
    out.end();
  }
  if (sample_type & PERF_SAMPLE_RAW) output_raw(out, shape.raw);
  if (sample_type & PERF_SAMPLE_BRANCH_STACK) output_branches(out, shape, attr.branch_sample_type);
  if (sample_type & PERF_SAMPLE_REGS_USER) {
    output_regs(out, "regs_user", shape.abi_user, attr.sample_regs_user);
  }
  if (sample_type & PERF_SAMPLE_STACK_USER) output_ustack(out, shape.stack);
  if (sample_type & PERF_SAMPLE_WEIGHT_TYPE) output_weight(out, sample_type);
  if (sample_type & PERF_SAMPLE_DATA_SRC) out.u64("data_src");
  if (sample_type & PERF_SAMPLE_TRANSACTION) out.u64("transaction");
  if (sample_type & PERF_SAMPLE_REGS_INTR) {
    output_regs(out, "regs_intr", shape.abi_intr, attr.sample_regs_intr);
  }
  if (sample_type & PERF_SAMPLE_PHYS_ADDR) out.u64("phys_addr");
  if (sample_type & PERF_SAMPLE_CGROUP) out.u64("cgroup");
  if (sample_type & PERF_SAMPLE_DATA_PAGE_SIZE) out.u64("data_page_size");
  if (sample_type & PERF_SAMPLE_CODE_PAGE_SIZE) out.u64("code_page_size");
  if (sample_type & PERF_SAMPLE_AUX) {
    out.begin("aux");
    out.put("size", std::uint64_t{shape.aux});
    out.data("data", shape.aux);
    out.end();
  }
}

}  // namespace perfring::record
