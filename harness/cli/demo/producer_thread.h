#ifndef HARNESS_CLI_DEMO_PRODUCER_THREAD_H_
#define HARNESS_CLI_DEMO_PRODUCER_THREAD_H_

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "harness/live/generator.h"

namespace perfring::cli {

using Clock = std::chrono::steady_clock;

inline double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// How long a producer pauses when its ring is full, so that the consumer has time to catch up.
inline constexpr std::chrono::microseconds kPauseWhenFull{50};

// Returns the CPUs that the calling thread may run on, in ascending order; at least one. Throws
// std::system_error.
std::vector<std::uint32_t> usable_cpus();

std::string describe_failure(std::uint32_t cpu, std::error_code error);

// A thread that generates records on one CPU, as fast as it can, until it is stopped.
class ProducerThread {
 public:
  ProducerThread(live::Generator& generator, std::uint32_t cpu, live::PayloadRange payload);
  ~ProducerThread() { stop(); }
  ProducerThread(const ProducerThread&) = delete;
  ProducerThread& operator=(const ProducerThread&) = delete;

  void stop();

  bool has_failed() const { return error_.load() != 0; }
  // The reason of the failure. Precondition: has_failed().
  std::string failure() const;

 private:
  void run();

  live::Generator& generator_;
  const std::uint32_t cpu_;
  const std::uint32_t batch_;  // outputs per run of the BPF program, which nothing preempts
  std::atomic<bool> stopping_{false};
  std::atomic<int> error_{0};
  std::thread thread_;  // the last member, because it uses the others
};

}  // namespace perfring::cli

#endif  // HARNESS_CLI_DEMO_PRODUCER_THREAD_H_
