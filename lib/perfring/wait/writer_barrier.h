#ifndef PERFRING_WAIT_WRITER_BARRIER_H_
#define PERFRING_WAIT_WRITER_BARRIER_H_
#include <version>
#ifndef __cpp_lib_expected
#error "perfring needs C++23: compile with -std=c++23 (g++ 12, clang 19 or later)"
#else

#include <expected>
#include <utility>

#include "perfring/export.h"
#include "perfring/os/fd.h"
#include "perfring/rings_error.h"

namespace perfring {

// Waits until every BPF program that was running on any CPU has ended. The output of such a program
// is then in its ring. Of all that user space can do, only two things wait for a writer (W12, W13,
// in the project's harness/RINGS_FACTS.md): an update of a map of maps, after which the kernel
// waits for programs by design, and membarrier(MEMBARRIER_CMD_GLOBAL). A pause, an interrupt of the
// CPU or a read of data_head does not.
//
// Units: it takes about 8 ms; up to 33 ms were observed.
// Lifetime: move-only. It owns two small maps. If moved from, or if the maps could not be created,
// wait() uses membarrier.
// Threads: any number at a time.
// Errors: SyscallError, if the kernel allows neither of the two.
// Limits: waits for a sleepable program only while that is in the helper.
// Kernel: kernel/bpf/syscall.c: maybe_wait_bpf_programs(); kernel/sched/membarrier.c at v6.18.
class PERFRING_EXPORT WriterBarrier {
 public:
  static WriterBarrier create() noexcept;

  std::expected<void, RingsError> wait() const;

 private:
  WriterBarrier(os::Fd inner, os::Fd outer) noexcept
      : inner_{std::move(inner)}, outer_{std::move(outer)} {}

  os::Fd inner_;
  os::Fd outer_;  // none if the maps could not be created
};

}  // namespace perfring

#endif
#endif  // PERFRING_WAIT_WRITER_BARRIER_H_
