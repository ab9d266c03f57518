#include "harness/record/encoder.h"

#include <cstring>

namespace perfring::record {
namespace {

// kernel/events/core.c at v6.18: __perf_event__output_id_sample().
void output_id_sample(Output& out, std::uint64_t sample_type) {
  out.begin("sample_id");
  if (sample_type & PERF_SAMPLE_TID) {
    out.u32("pid");
    out.u32("tid");
  }
  if (sample_type & PERF_SAMPLE_TIME) out.u64("time");
  if (sample_type & PERF_SAMPLE_ID) out.u64("id");
  if (sample_type & PERF_SAMPLE_STREAM_ID) out.u64("stream_id");
  if (sample_type & PERF_SAMPLE_CPU) {
    out.u32("cpu");
    out.put("res", std::uint32_t{0});
  }
  if (sample_type & PERF_SAMPLE_IDENTIFIER) out.u64("identifier");
  out.end();
}

constexpr std::uint64_t kIdSample = PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ID |
                                    PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_CPU |
                                    PERF_SAMPLE_IDENTIFIER;

// perf_event_mmap_output()
void output_mmap(Output& out, const perf_event_attr& attr, const Shape& shape) {
  out.u32("pid");
  out.u32("tid");
  out.u64("addr");
  out.u64("len");
  out.u64("pgoff");
  if (shape.type == PERF_RECORD_MMAP2) {
    if (attr.build_id && shape.has_build_id) {
      out.put("build_id_size", static_cast<std::uint8_t>(shape.build_id));
      for (int i = 0; i < 3; ++i) out.add(std::uint8_t{0});
      out.data("build_id", shape.build_id);
      for (std::size_t i = shape.build_id; i < 20; ++i) out.add(std::uint8_t{0});
    } else {
      out.u32("maj");
      out.u32("min");
      out.u64("ino");
      out.u64("ino_generation");
    }
    out.u32("prot");
    out.u32("flags");
  }
  out.text("filename", shape.text);
}

// perf_event_namespaces_output()
void output_namespaces(Output& out, std::size_t nr) {
  out.u32("pid");
  out.u32("tid");
  out.put("nr_namespaces", std::uint64_t{nr});
  out.begin("namespaces", Json::array());
  for (std::size_t i = 0; i < nr; ++i) {
    out.begin("");
    out.u64("dev");
    out.u64("inode");
    out.end();
  }
  out.end();
}

// perf_event_text_poke_output()
void output_text_poke(Output& out, const Shape& shape) {
  out.u64("addr");
  out.put("old_len", static_cast<std::uint16_t>(shape.old_len));
  out.put("new_len", static_cast<std::uint16_t>(shape.new_len));
  out.data("old_bytes", shape.old_len);
  out.data("new_bytes", shape.new_len);
  out.align();
}

// The records of tasks: perf_event_task_output(), _comm_output(), _switch_output(),
// _cgroup_output(), perf_event_read_event(). Returns false if the type is not one of these.
bool output_task(Output& out, const perf_event_attr& attr, const Shape& shape) {
  switch (shape.type) {
    case PERF_RECORD_COMM:
      out.u32("pid");
      out.u32("tid");
      out.text("comm", shape.text);
      return true;
    case PERF_RECORD_EXIT:
    case PERF_RECORD_FORK:
      for (const char* const name : {"pid", "ppid", "tid", "ptid"}) out.u32(name);
      out.u64("time");
      return true;
    case PERF_RECORD_READ:
      out.u32("pid");
      out.u32("tid");
      output_read(out, attr.read_format, shape.siblings);
      return true;
    case PERF_RECORD_ITRACE_START:
      out.u32("pid");
      out.u32("tid");
      return true;
    case PERF_RECORD_SWITCH:
      return true;
    case PERF_RECORD_SWITCH_CPU_WIDE:
      out.u32("next_prev_pid");
      out.u32("next_prev_tid");
      return true;
    case PERF_RECORD_CGROUP:
      out.u64("id");
      out.text("path", shape.text);
      return true;
    default:
      return false;
  }
}

// The records of events and rings: perf_output_begin() (LOST), perf_log_throttle(),
// perf_log_lost_samples(), perf_event_aux_event(), perf_event_ksymbol_output() and so on.
void output_other(Output& out, const Shape& shape) {
  constexpr std::uint32_t kCallchainDeferred = 22;  // perf_event_callchain_deferred(), v6.19
  switch (shape.type) {
    case PERF_RECORD_LOST:
      out.u64("id");
      return out.u64("lost");
    case PERF_RECORD_THROTTLE:
    case PERF_RECORD_UNTHROTTLE:
      for (const char* const name : {"time", "id", "stream_id"}) out.u64(name);
      return;
    case PERF_RECORD_AUX:
      for (const char* const name : {"aux_offset", "aux_size", "flags"}) out.u64(name);
      return;
    case PERF_RECORD_LOST_SAMPLES:
      return out.u64("lost");
    case PERF_RECORD_NAMESPACES:
      return output_namespaces(out, shape.namespaces);
    case PERF_RECORD_KSYMBOL:
      out.u64("addr");
      out.u32("len");
      out.u16("ksym_type");
      out.u16("flags");
      return out.text("name", shape.text);
    case PERF_RECORD_BPF_EVENT:
      out.u16("type");
      out.u16("flags");
      out.u32("id");
      return out.data("tag", 8);
    case PERF_RECORD_TEXT_POKE:
      return output_text_poke(out, shape);
    case PERF_RECORD_AUX_OUTPUT_HW_ID:
      return out.u64("hw_id");
    case kCallchainDeferred:
      out.u64("cookie");
      return output_ips(out, shape.callchain);
    default:
      return;
  }
}

// R28: for every listener but the first, the record ends with bytes that the kernel does not write.
bool is_lengthened(std::uint32_t type) {
  return type == PERF_RECORD_KSYMBOL || type == PERF_RECORD_BPF_EVENT ||
         type == PERF_RECORD_TEXT_POKE;
}

}  // namespace

Encoded encode(const perf_event_attr& attr, const Shape& shape,
               const std::function<std::uint64_t()>& value) {
  Output out{value};
  perf_event_header header{shape.type, shape.misc, 0};
  const bool is_mmap = shape.type == PERF_RECORD_MMAP || shape.type == PERF_RECORD_MMAP2;
  if (shape.type == PERF_RECORD_MMAP2) {
    // All listeners share one header. For a file with a build id, another listener may have set the
    // bit (R14); for a file without one, no listener sets it.
    if (!shape.has_build_id) header.misc &= ~PERF_RECORD_MISC_MMAP_BUILD_ID & 0xffff;
    if (shape.has_build_id && attr.build_id) header.misc |= PERF_RECORD_MISC_MMAP_BUILD_ID;
  }
  out.add(header);
  if (shape.type == PERF_RECORD_SAMPLE) {
    output_sample(out, attr, shape);
  } else if (is_mmap) {
    output_mmap(out, attr, shape);
  } else if (!output_task(out, attr, shape)) {
    output_other(out, shape);
  }
  const bool has_sample_id =
      shape.type != PERF_RECORD_SAMPLE && attr.sample_id_all && (attr.sample_type & kIdSample) != 0;
  const bool is_too_long = has_sample_id && is_lengthened(shape.type);
  if (shape.future != 0 && !is_too_long) out.data("rest", shape.future);
  // perf_event__output_id_sample()
  if (has_sample_id) output_id_sample(out, attr.sample_type);
  if (shape.future != 0 && is_too_long) out.data("rest", shape.future);
  header.size = static_cast<std::uint16_t>(out.bytes().size());
  std::memcpy(out.bytes().data(), &header, sizeof header);
  return {out.bytes(), out.fields()};
}

}  // namespace perfring::record
