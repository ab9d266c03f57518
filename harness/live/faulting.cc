// The command that perf_stat_test counts: usage: faulting PAGES
// Touches PAGES new pages on each CPU that it may use, in its first thread, in another, and in a
// child: on two CPUs, 6 * PAGES page faults in addition to the program's own.

#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <thread>

#include "harness/program/affinity.h"
#include "perfring/os/process.h"

namespace {

void fault(std::size_t pages) {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  void* const memory =
      ::mmap(nullptr, page * pages, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) std::abort();
  ::madvise(memory, page * pages, MADV_NOHUGEPAGE);
  for (std::size_t i = 0; i < pages; ++i) static_cast<volatile char*>(memory)[i * page] = 1;
  ::munmap(memory, page * pages);
}

void fault_on_each_cpu(std::size_t pages) {
  cpu_set_t all;
  if (::sched_getaffinity(0, sizeof all, &all) != 0) std::abort();
  for (std::uint32_t cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &all)) continue;
    if (!perfring::run_on(cpu)) std::abort();
    fault(pages);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const auto pages = static_cast<std::size_t>(std::atoll(argv[1]));
  auto child = perfring::os::Process::fork([pages] {
    fault_on_each_cpu(pages);
    return 0;
  });
  if (!child) return 2;
  std::thread other{fault_on_each_cpu, pages};
  other.join();
  fault_on_each_cpu(pages);
  return child->wait() == 0 ? 0 : 1;
}
