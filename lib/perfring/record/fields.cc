#include "perfring/record/fields.h"

#include <optional>
#include <type_traits>
#include <variant>

namespace perfring::record {
namespace {

class Fields {
 public:
  explicit Fields(FieldVisitor& visitor) : to_{visitor} {}

  // The record's own.
  void of(const Mmap& mmap) {
    of_mapping(mmap);
    to_.text("filename", mmap.filename());
  }
  void of(const Mmap2& mmap) {
    of_mapping(mmap);
    number("maj", mmap.maj());
    number("min", mmap.min());
    number("ino", mmap.ino());
    number("ino_generation", mmap.ino_generation());
    if (const auto id = mmap.build_id()) {
      to_.number("build_id_size", id->size());
      to_.bytes("build_id", *id);
    }
    to_.number("prot", mmap.prot());
    to_.number("flags", mmap.flags());
    to_.text("filename", mmap.filename());
  }
  void of(const Lost& lost) {
    to_.number("id", lost.id());
    to_.number("lost", lost.lost());
  }
  void of(const Comm& comm) {
    of_task(comm);
    to_.text("comm", comm.comm());
  }
  void of(const Task& task) {
    to_.number("pid", task.pid());
    to_.number("ppid", task.ppid());
    to_.number("tid", task.tid());
    to_.number("ptid", task.ptid());
    to_.number("time", task.time());
  }
  void of(const Throttling& throttling) {
    to_.number("time", throttling.time());
    to_.number("id", throttling.id());
    to_.number("stream_id", throttling.stream_id());
  }
  void of(const Read& read) {
    of_task(read);
    to_.begin_object("values");
    of(read.values());
    to_.end_object();
  }
  void of(const ReadValues& values);
  void of(const Aux& aux) {
    to_.number("aux_offset", aux.aux_offset());
    to_.number("aux_size", aux.aux_size());
    to_.address("flags", aux.flags());
  }
  void of(const ItraceStart& start) { of_task(start); }
  void of(const LostSamples& lost) { to_.number("lost", lost.lost()); }
  void of(const Switch&) {}
  void of(const SwitchCpuWide& change) {
    to_.number("next_prev_pid", change.next_prev_pid());
    to_.number("next_prev_tid", change.next_prev_tid());
  }
  void of(const Namespaces& namespaces);
  void of(const Ksymbol& symbol) {
    to_.address("addr", symbol.addr());
    to_.number("len", symbol.len());
    to_.number("ksym_type", symbol.ksym_type());
    to_.number("flags", symbol.flags());
    to_.text("name", symbol.name());
  }
  void of(const BpfEvent& event) {
    to_.number("type", event.type());
    to_.number("flags", event.flags());
    to_.number("id", event.id());
    to_.bytes("tag", event.tag());
  }
  void of(const Cgroup& cgroup) {
    to_.number("id", cgroup.id());
    to_.text("path", cgroup.path());
  }
  void of(const TextPoke& poke) {
    to_.address("addr", poke.addr());
    to_.number("old_len", poke.old_len());
    to_.number("new_len", poke.new_len());
    to_.bytes("old_bytes", poke.old_bytes());
    to_.bytes("new_bytes", poke.new_bytes());
  }
  void of(const AuxOutputHwId& id) { to_.number("hw_id", id.hw_id()); }
  void of(const CallchainDeferred& deferred) {
    to_.number("cookie", deferred.cookie());
    of(deferred.callchain());
  }
  void of(const Unknown&) {}
  void of(const Sample& sample);

  void sample_id(const SideBand& record);
  void rest(const View& record) {
    if (!record.rest().empty()) to_.bytes("rest", record.rest());
  }

 private:
  template <class T>
  void number(std::string_view name, const std::optional<T>& value) {
    if (value) to_.number(name, *value);
  }
  void address(std::string_view name, const std::optional<std::uint64_t>& value) {
    if (value) to_.address(name, *value);
  }
  template <class T>
  void of_task(const T& record) {
    to_.number("pid", record.pid());
    to_.number("tid", record.tid());
  }
  void of_mapping(const AnyMmap& mmap) {
    of_task(mmap);
    to_.address("addr", mmap.addr());
    to_.number("len", mmap.len());
    to_.address("pgoff", mmap.pgoff());
  }
  void words(std::string_view name, const U64s& words, bool addresses) {
    to_.begin_array(name);
    for (const std::uint64_t word : words) {
      if (addresses) {
        to_.address({}, word);
      } else {
        to_.number({}, word);
      }
    }
    to_.end_array();
  }
  void of(const Callchain& callchain) {
    to_.number("nr", callchain.ips().size());
    words("ips", callchain.ips(), true);
  }
  void of(const BranchStack& branches);
  void of(const perf_branch_entry& entry);
  void of(std::string_view name, const Regs& regs);
  void memory(const Sample& sample);

  FieldVisitor& to_;
};

void Fields::of(const ReadValues& values) {
  const auto one = [this](const ReadValue& value) {
    to_.number("value", value.value);
    number("id", value.id);
    number("lost", value.lost);
  };
  if (values.is_group()) to_.number("nr", values.size());
  number("time_enabled", values.time_enabled());
  number("time_running", values.time_running());
  if (!values.is_group()) return one(values[0]);
  to_.begin_array("cntr");
  for (std::size_t i = 0; i < values.size(); ++i) {
    to_.begin_object({});
    one(values[i]);
    to_.end_object();
  }
  to_.end_array();
}

void Fields::of(const Namespaces& namespaces) {
  of_task(namespaces);
  to_.number("nr_namespaces", namespaces.size());
  to_.begin_array("namespaces");
  for (std::size_t i = 0; i < namespaces.size(); ++i) {
    to_.begin_object({});
    to_.number("dev", namespaces[i].dev);
    to_.number("inode", namespaces[i].inode);
    to_.end_object();
  }
  to_.end_array();
}

void Fields::of(const perf_branch_entry& entry) {
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

void Fields::of(const BranchStack& branches) {
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

void Fields::of(std::string_view name, const Regs& regs) {
  to_.begin_object(name);
  to_.number("abi", regs.abi());
  to_.address("mask", regs.mask());
  words("regs", regs.regs(), true);
  to_.end_object();
}

void Fields::of(const Sample& sample) {
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

void Fields::memory(const Sample& sample) {
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

void Fields::sample_id(const SideBand& record) {
  if (record.sample_id_size() == 0) return;
  const SampleId id = record.sample_id();
  to_.begin_object("sample_id");
  number("pid", id.pid());
  number("tid", id.tid());
  number("time", id.time());
  number("id", id.id());
  number("stream_id", id.stream_id());
  number("cpu", id.cpu());
  number("res", id.res());
  number("identifier", id.identifier());
  to_.end_object();
}

}  // namespace

void visit_fields(const Any& record, FieldVisitor& visitor) {
  std::visit(
      [&visitor](const auto& view) {
        using T = std::remove_cvref_t<decltype(view)>;
        if constexpr (std::is_same_v<T, Malformed>) {
          visitor.text("malformed", view.field);
          visitor.bytes("bytes", view.bytes);
        } else {
          Fields fields{visitor};
          fields.of(view);
          if constexpr (std::is_base_of_v<SideBand, T>) fields.sample_id(view);
          fields.rest(view);
        }
      },
      record);
}

void visit_fields(const ReadValues& values, FieldVisitor& visitor) {
  Fields{visitor}.of(values);
}

const perf_event_header& header_of(const Any& record) noexcept {
  const auto of = [](const auto& view) -> const perf_event_header& {
    if constexpr (std::is_same_v<decltype(view), const Malformed&>) {
      return view.header;
    } else {
      return view.header();
    }
  };
  return std::visit(of, record);
}

}  // namespace perfring::record
