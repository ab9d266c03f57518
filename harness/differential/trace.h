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

#include "harness/differential/reference.h"
#include "harness/script/script.h"

namespace perfring::differential {

// A step's change of the ring: nothing outside [offset, offset + bytes.size()); or one too long to
// be kept, and then only the digest of the whole ring after it.
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
// As text: comments; the line `trace NAME`, with which each of several in a text begins; the lines
// `byte_order` (of the records), `page_size`, `cpu`, `pid`, `tid` and `ids`; the script's settings;
// and the steps, each with what was seen:
//   output 5 => 0 head 24 tail 0 lost 0 0 time 0 bytes 0 0900000001001800...
struct KernelTrace {
  std::string name;  // without blanks and '#'; may be empty
  script::Script script;
  rig::Identity identity;
  std::uint64_t page_size = 4096;
  bool little_endian = true;
  std::vector<TracedStep> steps;  // one for each of the script
};

std::string to_text(const KernelTrace& trace);
// The traces that a text states, at least one, each with a step, and with a name of its own. Or an
// error, which names line and reason.
std::expected<std::vector<KernelTrace>, std::string> parse_traces(std::string_view text);

// Runs a script on a live kernel, and records every step. `ring` is the kernel's ring.
KernelTrace record(const std::string& name, const script::Script& script, ReferenceKernel& kernel,
                   std::span<const std::byte> ring);

// The kernel that was recorded. Precondition: the trace is of this machine's byte order.
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

// The checked-in traces, which are compiled into the library `recorded`.
std::vector<KernelTrace> recorded_traces();
// All that these texts state. Throws std::runtime_error for one that states none.
std::vector<KernelTrace> traces_of(std::initializer_list<std::string_view> texts);

}  // namespace perfring::differential

#endif  // HARNESS_DIFFERENTIAL_TRACE_H_
