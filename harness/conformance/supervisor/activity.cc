#include "harness/conformance/supervisor/activity.h"

#include <utility>

namespace perfring::conformance {

bool Activity::check(Clock::time_point now, const TracedProcess& process,
                     std::vector<std::uint64_t> progress, std::uint64_t waits) {
  const std::int64_t cpu_ns = process.cpu_ns();
  const std::int64_t used = cpu_ns - std::exchange(cpu_ns_, cpu_ns);
  const bool little = used >= 0 && used < 2'000'000;  // negative: a process has ended
  const bool further = progress != progress_;
  if (further) same_since_ = now;
  progress_ = std::move(progress);
  if (little && !further && !process.is_running()) return true;
  interrupt_quiet(now, waits);
  return false;
}

void Activity::interrupt_quiet(Clock::time_point now, std::uint64_t waits) {
  quiet_since_ = now;
  waits_before_quiet_ = waits;
}

}  // namespace perfring::conformance
