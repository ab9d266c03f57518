#ifndef HARNESS_BENCH_PACED_WRITER_H_
#define HARNESS_BENCH_PACED_WRITER_H_

#include <cstdint>
#include <expected>
#include <functional>
#include <string>
#include <utility>

#include "harness/bench/beat_args.h"
#include "perfring/os/fd.h"
#include "perfring/os/mapping.h"

namespace perfring::bench {

// A writer on the machine's own kernel that keeps a rate (beat.bpf.c), with an events map of its
// own.
class PacedWriter {
 public:
  static std::expected<PacedWriter, std::string> load();

  // The map of type BPF_MAP_TYPE_PERF_EVENT_ARRAY that it writes to.
  int events_fd() const { return events_.get(); }

  // Writes `per_second` records, from the CPU that the caller is pinned to, until `done` says so,
  // which it is asked every millisecond, or when a record is due.
  std::expected<void, std::string> write(std::uint32_t cpu, std::uint64_t per_second,
                                         const std::function<bool()>& done);

  // Of all writes.
  beat_counts counts() const;

 private:
  PacedWriter(os::Fd program, os::Fd events, os::Mapping counts)
      : program_{std::move(program)}, events_{std::move(events)}, counts_{std::move(counts)} {}

  os::Fd program_;
  os::Fd events_;
  os::Mapping counts_;
};

}  // namespace perfring::bench

#endif  // HARNESS_BENCH_PACED_WRITER_H_
