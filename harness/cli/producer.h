#ifndef HARNESS_CLI_PRODUCER_H_
#define HARNESS_CLI_PRODUCER_H_

#include <atomic>
#include <cstdint>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "harness/live/generator.h"

namespace perfring::cli {

// Binds the calling thread to these CPUs, if the system lets it.
void run_on(const std::vector<std::uint32_t>& cpus);

// The CPUs that the calling thread may run on, ascending; at least one. Throws std::system_error.
std::vector<std::uint32_t> usable_cpus();

std::string describe_failure(std::uint32_t cpu, std::error_code error);

// A thread that has records generated on one CPU, as fast as it can, until stopped. When the ring
// is full it pauses for a moment: a busy producer would leave the consumer no time to catch up.
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
  const std::uint32_t batch_;  // outputs in one go, during which the CPU does nothing else
  std::atomic<bool> stopping_{false};
  std::atomic<int> error_{0};
  std::thread thread_;  // last: it uses the others
};

}  // namespace perfring::cli

#endif  // HARNESS_CLI_PRODUCER_H_
