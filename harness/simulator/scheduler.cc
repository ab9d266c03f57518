#include "harness/simulator/scheduler.h"

#include <algorithm>
#include <utility>

namespace perfring::simulator {

// An exception must not leave a fiber: the scheduler rethrows it.
Task::Task(std::function<void()> body)
    : fiber_{[this, body = std::move(body)] {
        try {
          body();
        } catch (...) {
          failure_ = std::current_exception();
        }
      }} {}

void Task::sleep_until(std::uint64_t deadline) {
  wake_at_ = deadline;
  fiber_.suspend();
}

Scheduler::Scheduler(std::uint64_t seed, unsigned interval_log2)
    : random_{seed}, interval_log2_{interval_log2} {
  expired();
}

Task& Scheduler::add(std::function<void()> body) {
  tasks_.push_back(std::make_unique<Task>(std::move(body)));
  return *tasks_.back();
}

bool Scheduler::expired() {
  const std::uint32_t magnitude = random_.below(interval_log2_ + 1);
  countdown_ = 1 + random_.below(std::uint32_t{1} << magnitude);
  drawn_ += countdown_;
  return interrupts_;
}

// Picks one of the tasks that are due. If none is, advances the time until one is.
Task* Scheduler::choose() {
  for (;;) {
    ready_.clear();
    std::uint64_t soonest = kNever;
    const std::uint64_t time = now();
    for (const auto& task : tasks_) {
      if (task->done()) continue;
      if (task->wake_at_ <= time) ready_.push_back(task.get());
      soonest = std::min(soonest, task->wake_at_);
    }
    if (!ready_.empty()) break;
    if (soonest == kNever) return nullptr;
    drawn_ += soonest - time;
  }
  if (ready_.size() == 1) return ready_[0];
  return ready_[random_.below(static_cast<std::uint32_t>(ready_.size()))];
}

void Scheduler::run(const std::function<void()>& before_turn) {
  for (;;) {
    before_turn();
    Task* const task = choose();
    if (task == nullptr) return;
    task->wake_at_ = 0;
    task->fiber_.resume();
    if (task->failure_) std::rethrow_exception(task->failure_);
  }
}

}  // namespace perfring::simulator
