#include "harness/cli/demo/producer_thread.h"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <memory>
#include <new>

#include "harness/program/affinity.h"

namespace perfring::cli {
namespace {

// The limit for the bytes that a batch outputs: about one millisecond of work.
constexpr std::uint32_t kBatchBytesMax = 1 << 20;
constexpr std::uint32_t kBatchMax = 4096;
constexpr std::size_t kCpusMax = 65536;

}  // namespace

std::vector<std::uint32_t> usable_cpus() {
  // Grow the set until it fits: EINVAL means that the kernel has more CPUs than the set.
  for (std::size_t count = CPU_SETSIZE;; count *= 2) {
    const std::unique_ptr<cpu_set_t, void (*)(cpu_set_t*)> set{
        CPU_ALLOC(count), [](cpu_set_t* allocated) { CPU_FREE(allocated); }};
    if (set == nullptr) throw std::bad_alloc{};
    const std::size_t size = CPU_ALLOC_SIZE(count);
    if (::sched_getaffinity(0, size, set.get()) != 0) {
      if (errno == EINVAL && count < kCpusMax) continue;
      throw std::system_error{errno, std::generic_category(), "sched_getaffinity"};
    }
    std::vector<std::uint32_t> cpus;
    for (std::size_t cpu = 0; cpu < count; ++cpu) {
      if (CPU_ISSET_S(cpu, size, set.get())) cpus.push_back(static_cast<std::uint32_t>(cpu));
    }
    return cpus;
  }
}

std::string describe_failure(std::uint32_t cpu, std::error_code error) {
  return fmt::format(
      "BPF_PROG_TEST_RUN of the generator on CPU {} failed: {}; is the CPU online, and the kernel "
      "5.17 or later (bpf_loop)?",
      cpu, error.message());
}

ProducerThread::ProducerThread(live::Generator& generator, std::uint32_t cpu,
                               live::PayloadRange payload)
    : generator_{generator},
      cpu_{cpu},
      batch_{std::clamp(kBatchBytesMax / payload.max, 1U, kBatchMax)},
      thread_{[this] { run(); }} {}

void ProducerThread::stop() {
  stopping_ = true;
  if (thread_.joinable()) thread_.join();
}

std::string ProducerThread::failure() const {
  return describe_failure(cpu_, std::error_code(error_.load(), std::generic_category()));
}

void ProducerThread::run() {
  // May fail: only speed depends on it, because each run of the BPF program names its CPU.
  run_on(cpu_);
  std::uint64_t full = generator_.counts(cpu_).full;
  while (!stopping_.load()) {
    const auto run = generator_.run(cpu_, batch_, live::Generator::IfFull::Stop);
    if (!run) {
      error_ = run.error().value();
      return;
    }
    const std::uint64_t full_now = generator_.counts(cpu_).full;
    if (full_now != full) std::this_thread::sleep_for(kPauseWhenFull);
    full = full_now;
  }
}

}  // namespace perfring::cli
