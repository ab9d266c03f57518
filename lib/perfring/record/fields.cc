#include "perfring/record/fields.h"

#include <linux/perf_event.h>

#include <cstddef>
#include <optional>
#include <type_traits>
#include <variant>

#include "perfring/record/bytes.h"
#include "perfring/record/counts.h"
#include "perfring/record/mappings.h"
#include "perfring/record/read_values.h"
#include "perfring/record/sample.h"
#include "perfring/record/tasks.h"
#include "perfring/record/view.h"

namespace perfring::record {

void internal::FieldWriter::of(const ReadValues& values) {
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

void internal::FieldWriter::words(std::string_view name, const U64s& words, bool addresses) {
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

namespace {

class Fields : public internal::FieldWriter {
 public:
  using FieldWriter::FieldWriter;
  using FieldWriter::of;

  // The record's own fields.
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
  void of(const Sample& sample) { internal::visit_sample(sample, to_); }

  void sample_id(const SideBand& record);
  void rest(const View& record) {
    if (!record.rest().empty()) to_.bytes("rest", record.rest());
  }

 private:
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
};

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
