#include "perfring/record/fields.h"

#include <cstddef>

#include "perfring/record/branch_stack.h"

namespace perfring::record::internal {
namespace {

class SampleFields : public FieldWriter {
 public:
  using FieldWriter::FieldWriter;

  void of(const Sample& sample);

 private:
  using FieldWriter::of;
  void of(const BranchStack& branches);
  void of(const perf_branch_entry& entry);
  void of(std::string_view name, const Regs& regs);
  void memory(const Sample& sample);
};

void SampleFields::of(const perf_branch_entry& entry) {
  to_.address("from", entry.from);
  to_.address("to", entry.to);
  to_.number("mispred", entry.mispred);
  to_.number("predicted", entry.predicted);
  to_.number("in_tx", entry.in_tx);
  to_.number("abort", entry.abort);
  to_.number("cycles", entry.cycles);
  to_.number("type", entry.type);
  to_.number("spec", entry.spec);
  to_.number("new_type", entry.new_type);
  to_.number("priv", entry.priv);
  if (entry.reserved != 0) to_.number("reserved", entry.reserved);
}

void SampleFields::of(const BranchStack& branches) {
  to_.begin_object("branch_stack");
  to_.number("nr", branches.size());
  number("hw_idx", branches.hw_idx());
  to_.begin_array("lbr");
  for (std::size_t i = 0; i < branches.size(); ++i) {
    to_.begin_object({});
    of(branches[i]);
    to_.end_object();
  }
  to_.end_array();
  if (!branches.counters().empty()) words("counters", branches.counters(), false);
  to_.end_object();
}

void SampleFields::of(std::string_view name, const Regs& regs) {
  to_.begin_object(name);
  to_.number("abi", regs.abi());
  to_.address("mask", regs.mask());
  words("regs", regs.regs(), true);
  to_.end_object();
}

void SampleFields::of(const Sample& sample) {
  number("identifier", sample.identifier());
  address("ip", sample.ip());
  number("pid", sample.pid());
  number("tid", sample.tid());
  number("time", sample.time());
  address("addr", sample.addr());
  number("id", sample.id());
  number("stream_id", sample.stream_id());
  number("cpu", sample.cpu());
  number("res", sample.res());
  number("period", sample.period());
  if (const auto values = sample.values()) {
    to_.begin_object("values");
    of(*values);
    to_.end_object();
  }
  if (const auto callchain = sample.callchain()) {
    to_.begin_object("callchain");
    of(*callchain);
    to_.end_object();
  }
  if (const auto raw = sample.raw()) {
    to_.begin_object("raw");
    to_.number("size", raw->size());
    to_.bytes("data", *raw);
    to_.end_object();
  }
  if (const auto branches = sample.branch_stack()) of(*branches);
  if (const auto regs = sample.regs_user()) of("regs_user", *regs);
  if (const auto stack = sample.stack_user()) {
    to_.begin_object("stack_user");
    to_.number("size", stack->data.size());
    to_.bytes("data", stack->data);
    if (!stack->data.empty()) to_.number("dyn_size", stack->dyn_size);
    to_.end_object();
  }
  memory(sample);
}

void SampleFields::memory(const Sample& sample) {
  if (const auto weight = sample.weight()) {
    to_.begin_object("weight");
    if (sample.layout().has(PERF_SAMPLE_WEIGHT_STRUCT)) {
      to_.number("var1_dw", weight->var1_dw);
      to_.number("var2_w", weight->var2_w);
      to_.number("var3_w", weight->var3_w);
    } else {
      to_.number("full", weight->full);
    }
    to_.end_object();
  }
  if (const auto source = sample.data_src()) to_.address("data_src", source->val);
  address("transaction", sample.transaction());
  if (const auto regs = sample.regs_intr()) of("regs_intr", *regs);
  address("phys_addr", sample.phys_addr());
  number("cgroup", sample.cgroup());
  number("data_page_size", sample.data_page_size());
  number("code_page_size", sample.code_page_size());
  if (const auto aux = sample.aux()) {
    to_.begin_object("aux");
    to_.number("size", aux->size());
    to_.bytes("data", *aux);
    to_.end_object();
  }
}

}  // namespace

void visit_sample(const Sample& sample, FieldVisitor& visitor) {
  SampleFields{visitor}.of(sample);
}

}  // namespace perfring::record::internal
