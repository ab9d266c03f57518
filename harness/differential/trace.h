#ifndef HARNESS_DIFFERENTIAL_TRACE_H_
#define HARNESS_DIFFERENTIAL_TRACE_H_

#include <cstddef>
#include <cstdint>
#include <expected>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "harness/differential/reference_kernel.h"
#include "harness/rig/simulated_ring.h"
#include "harness/script/script.h"

namespace perfring::differential {

// The effect of one step on the ring: the bytes that changed. If the change is too long to keep,
// only the digest of the whole ring after the step.
struct Change {
  std::size_t offset = 0;
  std::vector<std::byte> bytes;
  std::optional<std::uint64_t> digest;
};

struct TracedStep {
  ReferenceStep step;
  Change change;
};

// A script, and what a real kernel showed after each of its steps.
//
// The text form consists of comments; a line `trace NAME` at the start of each trace if the text
// holds several; the lines `byte_order` (of the records), `page_size`, `cpu`, `pid`, `tid` and
// `ids`; the script's settings; and the steps, each with its results:
//   output 5 => 0 head 24 tail 0 lost 0 0 time 0 bytes 0 0900000001001800...
struct KernelTrace {
  std::string name;  // no blanks and no '#'; may be empty
  script::Script script;
  rig::Identity identity;
  std::uint64_t page_size = 4096;
  bool little_endian = true;
  std::vector<TracedStep> steps;  // one for each step of the script
};

std::string to_text(const KernelTrace& trace);
// Parses the traces in a text: at least one, each with at least one step and a unique name. An
// error names the line and the reason.
std::expected<std::vector<KernelTrace>, std::string> parse_traces(std::string_view text);

// Runs a script on a live kernel and records every step. `ring` is the kernel's ring.
KernelTrace record(const std::string& name, const script::Script& script, ReferenceKernel& kernel,
                   std::span<const std::byte> ring);

// Replays a recorded kernel. Precondition: the trace has this machine's byte order.
class RecordedReference final : public ReferenceKernel {
 public:
  explicit RecordedReference(const KernelTrace& trace);

  const rig::Identity& identity() const override { return trace_.identity; }
  unsigned page_shift() const override;
  ReferenceStep run(const script::Step& step) override;
  std::optional<std::string> ring_difference(std::span<const std::byte> ring) override;

 private:
  const KernelTrace& trace_;
  std::size_t next_ = 0;
  std::vector<std::byte> ring_;
};

// The checked-in traces, compiled into the library `recorded`.
std::vector<KernelTrace> recorded_traces();
// Returns the traces of all texts. Throws std::runtime_error if a text does not parse.
std::vector<KernelTrace> traces_of(std::initializer_list<std::string_view> texts);

}  // namespace perfring::differential

#endif  // HARNESS_DIFFERENTIAL_TRACE_H_
