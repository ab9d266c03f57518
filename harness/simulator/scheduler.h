#ifndef HARNESS_SIMULATOR_SCHEDULER_H_
#define HARNESS_SIMULATOR_SCHEDULER_H_

// Interleaves tasks in one thread, in an order drawn from the seed. A step is the time between two
// accesses to shared memory.

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <vector>

#include "harness/program/fiber.h"
#include "harness/simulator/random.h"

namespace perfring::simulator {

inline constexpr std::uint64_t kNever = ~std::uint64_t{0};

// A fiber that the scheduler runs in turns.
class Task {
 public:
  explicit Task(std::function<void()> body);

  // Called by the task itself: lets other tasks run until it is woken or `deadline` is reached.
  void sleep_until(std::uint64_t deadline);
  void yield() { sleep_until(0); }
  // Called by other tasks: ends the sleep.
  void wake() { wake_at_ = 0; }
  bool done() const { return fiber_.done(); }
  bool asleep(std::uint64_t now) const { return wake_at_ > now; }

 private:
  friend class Scheduler;
  std::exception_ptr failure_;  // what its body threw
  Fiber fiber_;
  std::uint64_t wake_at_ = 0;
};

class Scheduler {
 public:
  // The gaps between scheduling points are up to 2^interval_log2 steps, of any order of magnitude.
  Scheduler(std::uint64_t seed, unsigned interval_log2);

  Task& add(std::function<void()> body);

  // Counts one step. Returns true if something must happen before it; the caller decides what.
  bool step() { return --countdown_ == 0 && expired(); }
  std::uint64_t now() const { return drawn_ - countdown_; }
  Random& random() { return random_; }

  // Runs the tasks until all are done or asleep forever. Calls `before_turn` before each turn.
  // Rethrows an exception of `before_turn` or of a task, after which no task runs any more.
  void run(const std::function<void()>& before_turn);

  // From now on step() returns false: each task runs until its next sleep.
  void stop_interrupting() { interrupts_ = false; }

 private:
  bool expired();
  Task* choose();

  Random random_;
  const unsigned interval_log2_;
  std::uint64_t drawn_ = 0;  // steps, including the countdown
  std::uint64_t countdown_ = 0;
  bool interrupts_ = true;
  std::vector<std::unique_ptr<Task>> tasks_;
  std::vector<Task*> ready_;
};

}  // namespace perfring::simulator

#endif  // HARNESS_SIMULATOR_SCHEDULER_H_
