#ifndef HARNESS_CONFORMANCE_SUBJECTS_H_
#define HARNESS_CONFORMANCE_SUBJECTS_H_

// Runs consumers on a case: perfring and the faulty ones of harness/faults, in this process;
// adapters, which are programs in any language; and unmodified programs.

#include <cstdint>
#include <expected>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "harness/conformance/cases/case_producer.h"
#include "harness/conformance/cases/cases.h"
#include "harness/conformance/cases/judge.h"
#include "harness/conformance/cases/vector.h"

namespace perfring::conformance {

// Runs perfring: Ring if samples have RAW only, otherwise Cursor with lib/perfring/record.
Cell run_perfring(const Vector& vector);

// The faults of memories and consumers, each planted. Their consumers take RAW samples only.
std::span<const std::string_view> planted_faults();
// Precondition: a fault has this name.
Cell run_fault(std::string_view name, const Vector& vector);

// Runs `command FILE PAGES SAMPLE_TYPE` once for each turn, by the shell, in a process group of its
// own, and judges its output (README.md has the protocol). Throws CannotRun.
Cell run_adapter(const std::string& command, const Vector& vector,
                 const ProcessLimits& limits = {});

// The events and the tail that a program printed. The error is the first line that is neither.
struct Printed {
  std::vector<Event> events;
  std::optional<std::uint64_t> tail;  // the last one
  bool ends_with_tail = false;        // no event follows it
};
std::expected<Printed, std::string> parse_printed(std::string_view out);

// Unmodified programs run on a simulated kernel. Seccomp's user notification passes a program's
// perf and BPF calls to this process (P15), ptrace maps its rings between guard pages (P18), and
// each of its waits is the producer's turn. No privilege is needed. Programs may be x86-64, or i386
// on an x86-64 machine.

// A format of a program's output, and properties of the program.
struct Reader {
  std::string_view name;
  // Turns the output into events. The error quotes the first line that is not one.
  std::expected<std::vector<Event>, std::string> (*read)(const std::string& out) = nullptr;
  Echo echo = Echo::Bytes;
  std::uint64_t least = 0;      // shortest payload: of a shorter one it prints other bytes too
  bool loads_programs = false;  // it loads BPF programs, so the machine's kernel must know its map
  bool begins_at_0 = false;     // whatever data_tail is when it maps a ring
  bool is_entered = false;      // another program enters its events in a map, once they are enabled
};
// The first reads the lines that an adapter prints (README.md); `tail` may be left out.
std::span<const Reader> readers();
// Precondition: a reader has this name.
const Reader& reader_of(std::string_view name);

// The writer. The machine's own kernel writes only records that it can be made to write, and only
// if this process may run BPF programs. The program's calls are then watched, not emulated.
enum class KernelKind : std::uint8_t { SimulatedKernel, LiveKernel };

// Runs the command once with the case's script. Replaces in the command's words {pages} by the
// pages of the case's ring, {wakeup_events} and {wakeup_watermark} by the case's wakeup or 0,
// {sample_type} and {sample_id_all} by the event's. Throws CannotRun.
Cell run_supervised(const std::vector<std::string>& command, const Case& of, const Reader& reader,
                    const ProcessLimits& limits = {}, KernelKind by = KernelKind::SimulatedKernel);

}  // namespace perfring::conformance

#endif  // HARNESS_CONFORMANCE_SUBJECTS_H_
