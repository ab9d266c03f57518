#ifndef HARNESS_RIG_SCRIPT_RUN_H_
#define HARNESS_RIG_SCRIPT_RUN_H_

// Runs scripts on one simulated ring: the simulated kernel writes, a consumer drains, and the
// oracle judges both. A nested step happens where the script states: between two accesses of an
// output, or while a drain's callback has an event.

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "harness/kernel/perf_event_array.h"
#include "harness/oracle/checker.h"
#include "harness/oracle/invariant.h"
#include "harness/oracle/ledger.h"
#include "harness/rig/simulated_kernel.h"
#include "harness/rig/simulated_ring.h"
#include "harness/rig/watched_cpu.h"
#include "harness/script/script.h"
#include "perfring/control_flow.h"
#include "perfring/perf_event.h"
#include "perfring/ring/memory.h"
#include "perfring/ring/ring.h"

namespace perfring::rig {

// The number of a Drain step that drains the whole ring.
inline constexpr std::uint64_t kWholeRing = ~std::uint64_t{0};

// A run without its Cpu and its consumer, which ScriptRunner adds.
class ScriptRun : private MemoryObserver, private oracle::FirstViolation {
 public:
  ScriptRun(const ScriptRun&) = delete;
  ScriptRun& operator=(const ScriptRun&) = delete;

  // Runs these steps until an invariant is violated. Returns the result of the last step that is
  // not nested: an output's rc, a poll's revents, or the number of events that a drain delivered.
  // May be called repeatedly, also from on_poll.
  std::int64_t run(std::span<const script::Step> steps);
  std::int64_t run(const script::Step& step) { return run({&step, 1}); }
  // Call it when the producer is done. Drains until the ring is empty, and checks that everything
  // was delivered.
  void settle();

  // Returns the first violation, by the kernel or by the consumer.
  const std::optional<oracle::Violation>& violation() const {
    const auto& own = FirstViolation::violation();
    return own ? own : checker_.violation();
  }

  virtual bool readable() const = 0;
  SimulatedRing& ring() { return kernel_.ring(); }
  const oracle::Ledger& ledger() const { return ledger_; }
  const oracle::Received& received() const { return checker_.received(); }
  std::uint64_t unread() const { return ledger_.position() - checker_.released(); }  // bytes
  // Returns a script that repeats this run: the ring's settings and the steps so far. A poll that
  // on_poll replaced is missing; the drains of on_poll are there instead.
  script::Script script() const { return {kernel_.ring().settings(), steps_so_far_}; }

  // Called for each delivered event, after the checker.
  std::function<void(const PerfEvent&)> on_event;
  // Replaces poll steps, for a consumer with its own wait loop.
  std::function<void()> on_poll;

 protected:
  // `memory`: the ring's memory, as in SimulatedRing; if it is empty, the ring allocates its own.
  ScriptRun(const script::Settings& settings, std::span<std::byte> memory);
  ~ScriptRun() = default;

  using Visit = std::function<ControlFlow<>(Unit, const PerfEvent&)>;
  virtual int emit(std::uint32_t index, std::span<const std::byte> payload) = 0;
  virtual void try_fold(const Visit& visit) = 0;

 private:
  friend struct ScriptCpu;
  struct Thrown {};
  struct Died {};

  std::int64_t perform(std::span<const script::Step> step_and_nested);
  void note(script::Step step);
  std::int64_t act(const script::Step& step);
  std::int64_t output(const script::Step& step);
  void expect_announced(int rc);
  std::int64_t drain(const script::Step& step);
  void deliver(const PerfEvent& event);
  std::int64_t poll(const script::Step& step);
  void run_nested(bool at_a_moment, std::span<const script::Step> step_and_nested);

  // Called by ScriptCpu.
  void on_moment();
  void note_publication(std::uint64_t data_head);

  void on_read(const std::byte* address, std::size_t size) override;
  void on_commit(SharedPosition data_tail) override;
  bool stopped() const { return violation().has_value(); }

  SimulatedKernel kernel_;
  oracle::Ledger ledger_;
  oracle::Checker checker_;
  script::ActiveSteps active_steps_;
  std::array<std::vector<std::byte>, script::kDepthMax + 2> payloads_;  // of outputs in progress
  bool interrupted_ = false;                                            // during the outermost step
  std::vector<script::Step> steps_so_far_;
  std::uint64_t sequence_ = 0;
  // Whether poll has something to report; nullopt if an interrupt may have cleared the flag.
  std::optional<bool> announced_ = false;
  bool dead_ = false;
  bool oversize_ = false;  // an output was larger than a record can be
};

// The CPU of a ScriptRun. A faulty kernel's CPU derives from it.
struct ScriptCpu : LedgerCpu<> {
  explicit ScriptCpu(ScriptRun& of) : LedgerCpu{of.ledger_, of.checker_}, run{of} {}

  ScriptRun& run;

  void step() { run.on_moment(); }
  void write_once(__u64& data_head, __u64 value) {
    run.note_publication(value);
    LedgerCpu::write_once(data_head, value);
  }
};

// `Cpu` is ScriptCpu, or derives from it; `Consumer` has the over(), readable() and try_fold() of
// Ring.
template <class Cpu = ScriptCpu, class Consumer = Ring<CheckedMemory>>
class ScriptRunner : public ScriptRun {
 public:
  explicit ScriptRunner(const script::Settings& settings, std::span<std::byte> memory = {})
      : ScriptRun{settings, memory},
        cpu_{*this},
        consumer_{*Consumer::over(ring().page(), ring().data())} {}

  bool readable() const override { return consumer_.readable(); }

 private:
  int emit(std::uint32_t index, std::span<const std::byte> payload) override {
    return kernel::bpf_perf_event_output(cpu_, ring().map(), index, payload);
  }
  void try_fold(const Visit& visit) override {
    static_cast<void>(consumer_.try_fold(Unit{}, visit));
  }

  Cpu cpu_;
  Consumer consumer_;
};

// Runs the whole script, and settles. Returns the first violation, if there is one.
template <class Runner>
std::optional<oracle::Violation> violation_of(const script::Script& script) {
  Runner runner{script.settings};
  runner.run(script.steps);
  runner.settle();
  return runner.violation();
}

}  // namespace perfring::rig

#endif  // HARNESS_RIG_SCRIPT_RUN_H_
