#ifndef HARNESS_CONFORMANCE_SUBJECTS_H_
#define HARNESS_CONFORMANCE_SUBJECTS_H_

// Holds consumers to a case: perfring and the faulty ones of harness/faults, in this process;
// adapters, which are programs in any language; and programs as they are.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "harness/conformance/judge.h"
#include "harness/conformance/vector.h"

namespace perfring::conformance {

// perfring itself: Ring where samples are RAW alone, and Cursor with lib/perfring/record elsewhere.
Cell run_perfring(const Vector& vector);

// The faults of a memory and of a consumer, each planted. Their consumers take samples of RAW
// alone.
std::span<const std::string_view> planted_faults();
// Precondition: a fault has this name.
Cell run_fault(std::string_view name, const Vector& vector);

// Runs `command FILE PAGES SAMPLE_TYPE` once for each turn, by the shell, in a process group of its
// own, and judges what it prints (README.md has the protocol). Throws CannotRun.
Cell run_adapter(const std::string& command, const Vector& vector,
                 const ProcessLimits& limits = {});

// The events that a program printed, and the tail. An error is the first line that is neither.
struct Printed {
  std::vector<Event> events;
  std::optional<std::uint64_t> tail;  // the last of them
  bool ends_with_tail = false;        // no event is behind it
};
std::expected<Printed, std::string> parse_printed(std::string_view out);

// A program as it is, on a simulated kernel. Its perf and BPF calls are notified to this process
// (seccomp's user notification, P15), its rings are mapped between pages that may not be touched
// (ptrace, P18), and each of its waits is the producer's turn. No privilege is needed, and nothing
// of the program is changed. For x86-64 programs, and i386 ones on an x86-64 machine.

// A program whose output is not in the form of an adapter's.
struct Reader {
  std::string_view name;
  // Turns the output into events. An error quotes the first line that is not one.
  std::expected<std::vector<Event>, std::string> (*read)(const std::string& out) = nullptr;
  Echo echo = Echo::Bytes;
  std::uint64_t least = 0;      // bytes of a payload, of a shorter one it prints others too
  bool loads_programs = false;  // which the machine's kernel must know the map of
  bool begins_at_0 = false;     // whatever data_tail says when it maps a ring
  bool is_entered = false;      // another program enters its events in a map, once they are enabled
};
// The first is of the lines that an adapter prints (README.md); `tail` may be left out.
std::span<const Reader> readers();
// Precondition: a reader has this name.
const Reader& reader_of(std::string_view name);

// The writer: the machine's own kernel writes only what it can be made to write, and only if this
// process may run BPF programs. Then the program's calls are watched, not emulated.
enum class KernelKind : std::uint8_t { SimulatedKernel, LiveKernel };

// Runs the command once with the case's script. In its words {pages} is replaced by the pages of
// the case's ring, {wakeup_events} and {wakeup_watermark} by what it asks for, or 0, {sample_type}
// and {sample_id_all} by the event's. Throws CannotRun.
Cell run_supervised(const std::vector<std::string>& command, const Case& of, const Reader& reader,
                    const ProcessLimits& limits = {}, KernelKind by = KernelKind::SimulatedKernel);

}  // namespace perfring::conformance

#endif  // HARNESS_CONFORMANCE_SUBJECTS_H_
