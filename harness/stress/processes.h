#ifndef HARNESS_STRESS_PROCESSES_H_
#define HARNESS_STRESS_PROCESSES_H_

#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <exception>
#include <new>
#include <string>
#include <system_error>
#include <utility>

#include "harness/kernel/cpu.h"
#include "harness/kernel/perf_event.h"
#include "harness/oracle/invariant.h"
#include "harness/oracle/ledger.h"
#include "harness/program/child_process.h"
#include "harness/stress/run.h"
#include "harness/stress/stress_consumer.h"
#include "harness/stress/stress_producer.h"
#include "perfring/ring/ring.h"

namespace perfring::stress {

// A T in memory that a forked child shares with its parent.
template <class T>
class SharedObject {
 public:
  SharedObject() {
    void* const memory =
        ::mmap(nullptr, sizeof(T), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw std::system_error{errno, std::generic_category(), "mmap"};
    value_ = new (memory) T;
  }
  ~SharedObject() { ::munmap(value_, sizeof(T)); }
  SharedObject(const SharedObject&) = delete;
  SharedObject& operator=(const SharedObject&) = delete;
  T* operator->() const { return value_; }
  T* get() const { return value_; }

 private:
  T* value_;
};

// Kills its own process after a given number of accesses. A SIGKILL from outside can also come
// between any two accesses, but on a busy machine it mostly hits a writer that waits for room.
template <class Base>
struct MortalCpu : Base {
  using Base::Base;
  void step() {
    Base::step();
    if (steps_left == 0 || --steps_left != 0) return;
    *dead = true;
    ::raise(SIGKILL);
  }
  std::uint64_t steps_left = 0;  // 0: runs until it is killed from outside
  std::atomic<bool>* dead = nullptr;
};

// A process that writes to a ring until it is killed, or for `steps` accesses if that is not 0. It
// is a forked copy of this process, with its memory.
template <class Base>
class ProducerProcess {
 public:
  ProducerProcess(const StressRing& ring, FlightLog* log, std::uint64_t steps = 0)
      : producer_{ring, log}, child_{[this, log, steps] {
          producer_.dead = &log->dead;
          producer_.steps_left = steps;
          return work();
        }} {}

  // Kills the process; call it once. Returns true if a SIGKILL ended the process, from here or its
  // own. Throws std::system_error if the process ran out of memory, or if waitpid() does not return
  // its status.
  bool kill() {
    child_.kill();
    const int status = child_.wait();
    if (WIFEXITED(status) && WEXITSTATUS(status) == kRefusedBySystem) {
      throw std::system_error{ENOMEM, std::generic_category(), "a producer's process"};
    }
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
  }

 private:
  static constexpr int kRefusedBySystem = 2;

  int work() {
    try {
      const std::atomic<bool> never{false};
      producer_.work(never);
    } catch (const std::exception&) {  // no memory
      return kRefusedBySystem;
    }
    return 1;
  }

  StressProducer<MortalCpu<Base>> producer_;
  ForkedChild child_;
};

// The dead producer's totals, from its log and data_head alone. Records below data_head count as
// accepted, losses that their LOSTs report as refused.
inline oracle::Totals published_totals(const FlightLog& log, const StressRing& ring) {
  const std::uint64_t mask = ring.settings().word == kernel::Word::k64 ? ~std::uint64_t{0} : ~0U;
  const std::uint64_t kept = FlightLog::kKept - 1;  // the oldest may be half overwritten
  const std::uint64_t count = log.count;
  oracle::Totals totals;
  // data_head is either the end or the start of a reservation.
  for (std::uint64_t n = count; n != 0 && count - n < kept; --n) {
    if ((log.last(n).end & mask) != ring.page().data_head) continue;
    totals.accepted = n;
    totals.lost = log.last(n).reported;
    break;
  }
  return totals;
}

// Runs one producer and kills it. Every other producer dies after some number of its accesses; the
// others are killed shortly after some number of reservations or some time. In one life out of four
// nothing is drained meanwhile, so the ring fills up.
template <class Base, class R = Ring<>>
void run_until_killed(const Setting& setting, Random& random, PartReport& outcome) {
  const StressRing ring{setting};
  const SharedObject<FlightLog> log;
  StressConsumer<R> consumer{ring};
  const std::uint64_t steps = random() % 2 != 0 ? 1 + random() % (64U << random() % 11) : 0;
  ProducerProcess<Base> producer{ring, log.get(), steps};
  const std::uint64_t at = 1 + random() % 2000;
  const bool drains = random() % 4 != 0;
  // Under emulation, a process may take longer to start than its life is meant to last.
  const auto begins_by = Clock::now() + std::chrono::seconds{1};
  while (log->count == 0 && !log->dead && Clock::now() < begins_by) ::sched_yield();
  const auto limit =
      Clock::now() + std::chrono::milliseconds{steps != 0 ? 1000 : 1 + random() % 20};
  while (!log->dead && (steps != 0 || log->count < at) && Clock::now() < limit) {
    if (!drains || !consumer.drain()) ::sched_yield();
  }
  for (auto i = random() % 4096; i != 0; --i) asm volatile("");
  if (!producer.kill()) {
    consumer.violate(oracle::Invariant::no_loss, "the producer died without being killed");
  }
  consumer.finish();
  const oracle::Totals totals = published_totals(*log.get(), ring);
  consumer.settle(totals, 0);
  if (log->violated) {
    consumer.violate(oracle::Invariant::no_loss, "the producer's own ledger is violated");
  }
  if (const auto violation = consumer.violation()) outcome.violate(*violation, setting);
  outcome.attempted += totals.attempts();
  outcome.delivered += consumer.received().delivered;
  outcome.lost += totals.lost;
  if (log->count > totals.accepted) ++outcome.killed_in_record;
}

// The producer is another process, which shares the ring's memory and is killed at random moments.
template <class Base = kernel::HardwareCpu>
PartReport processes(const Run& run) {
  return rounds("processes", run, [&](PartReport& outcome, Random& random) {
    run_until_killed<Base>(draw(random, run.pages), random, outcome);
  });
}

}  // namespace perfring::stress

#endif  // HARNESS_STRESS_PROCESSES_H_
