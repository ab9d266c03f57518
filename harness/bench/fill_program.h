#ifndef HARNESS_BENCH_FILL_PROGRAM_H_
#define HARNESS_BENCH_FILL_PROGRAM_H_

#include <bpf/libbpf.h>

#include <expected>
#include <memory>
#include <string>

#include "harness/bench/workload.h"

namespace perfring::bench {

// "WHAT: the system's word for `error`", where error is an errno, negative or not.
std::string failure(const std::string& what, int error);

// One loaded copy of fill.bpf.c, with an events map of its own.
class FillProgram {
 public:
  static std::expected<FillProgram, std::string> load();

  // The map of type BPF_MAP_TYPE_PERF_EVENT_ARRAY that run() writes to.
  int events_fd() const;

  // Writes the workload's events to the current CPU's entry.
  std::expected<void, std::string> run(const Workload& workload) const;

 private:
  struct Close {
    void operator()(bpf_object* object) const { bpf_object__close(object); }
  };
  explicit FillProgram(bpf_object* object) : object_{object} {}

  std::unique_ptr<bpf_object, Close> object_;
};

}  // namespace perfring::bench

#endif  // HARNESS_BENCH_FILL_PROGRAM_H_
