#ifndef PERFRING_RINGS_WRITER_BARRIER_H_
#define PERFRING_RINGS_WRITER_BARRIER_H_
#include <version>
#ifndef __cpp_lib_expected
#error "perfring needs C++23: compile with -std=c++23 (g++ 12, clang 19 or later)"
#else

#include <expected>
#include <utility>

#include "perfring/export.h"
#include "perfring/os/fd.h"
#include "perfring/rings/rings_error.h"

namespace perfring {

// Waits until every BPF program that was running has ended, on any CPU: what such a program output
// is then in its ring. Of all that user space can do, two things wait for a writer (W12, W13, in
// the project's harness/RINGS_FACTS.md): the update of a map of maps, after which the kernel waits
// for programs by design, and membarrier(MEMBARRIER_CMD_GLOBAL). Neither a pause, nor an interrupt
// of the CPU, nor a look at data_head does.
//
// Units: it takes about 8 ms, and up to 33 were seen.
// Lifetime: move-only; it owns two small maps. Moved from, or where they may not be created, wait()
// takes the other way.
// Threads: any, at once.
// Errors: SyscallError, if the kernel allows neither of the two.
// Limits: a sleepable program is waited for only while it is in the helper.
// Kernel: kernel/bpf/syscall.c: maybe_wait_bpf_programs(); kernel/sched/membarrier.c at v6.18.
class PERFRING_EXPORT WriterBarrier {
 public:
  static WriterBarrier create() noexcept;

  std::expected<void, RingsError> wait() const;

 private:
  WriterBarrier(os::Fd inner, os::Fd outer) noexcept
      : inner_{std::move(inner)}, outer_{std::move(outer)} {}

  os::Fd inner_;
  os::Fd outer_;  // none where maps may not be created
};

}  // namespace perfring

#endif
#endif  // PERFRING_RINGS_WRITER_BARRIER_H_
