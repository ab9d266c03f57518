#ifndef HARNESS_PROGRAM_AFFINITY_H_
#define HARNESS_PROGRAM_AFFINITY_H_

#include <sched.h>

#include <cstdint>
#include <span>

namespace perfring {

// Binds the calling thread to these CPUs; leaves out those from CPU_SETSIZE on. Returns false, with
// errno, if the kernel refuses: the thread then stays where it may run now.
inline bool run_on(std::span<const std::uint32_t> cpus) noexcept {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const std::uint32_t cpu : cpus) {
    if (cpu < CPU_SETSIZE) CPU_SET(cpu, &set);
  }
  return ::sched_setaffinity(0, sizeof(set), &set) == 0;
}
inline bool run_on(std::uint32_t cpu) noexcept {
  return run_on(std::span{&cpu, 1});
}

}  // namespace perfring

#endif  // HARNESS_PROGRAM_AFFINITY_H_
