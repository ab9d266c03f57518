#include <array>

#include "harness/model/programs/algorithms.h"

namespace perfring::model {
namespace {

constexpr auto kRelaxed = std::memory_order_relaxed;
constexpr auto kAcquire = std::memory_order_acquire;
constexpr auto kRelease = std::memory_order_release;
constexpr auto kFull = std::memory_order_seq_cst;

struct Lock {
  std::array<Var, 2> flags;
  Var turn, inside;

  explicit Lock(Program& program)
      : flags{program.var("flag 0"), program.var("flag 1")},
        turn{program.var("turn")},
        inside{program.var("inside")} {}

  // Not atomic: two at once are a race.
  void critical_section() const { inside.write(inside.read() + 1); }
};

Program two_threads(Program program, const Lock& lock, const std::function<void(unsigned)>& enter) {
  for (const unsigned me : {0u, 1u}) program.threads.emplace_back([=] { enter(me); });
  program.finally = [=] { check(lock.inside.read() == 2, "somebody did not get in"); };
  return program;
}

}  // namespace

Program dekker(std::memory_order fences) {
  constexpr unsigned kRounds = 2;
  Program program;
  const Lock lock{program};
  return two_threads(program, lock, [=](unsigned me) {
    const unsigned other = 1 - me;
    lock.flags[me].store(1, kRelaxed);
    fence(fences);
    for (unsigned round = 0; lock.flags[other].load(kAcquire) != 0; ++round) {
      assume(round < kRounds);
      if (lock.turn.load(kRelaxed) == me) continue;
      lock.flags[me].store(0, kRelaxed);
      assume(lock.turn.load(kAcquire) == me);
      lock.flags[me].store(1, kRelaxed);
      fence(fences);
    }
    lock.critical_section();
    lock.turn.store(other, kRelease);
    lock.flags[me].store(0, kRelease);
  });
}

Program peterson(Turn turn) {
  Program program;
  const Lock lock{program};
  return two_threads(program, lock, [=](unsigned me) {
    const unsigned other = 1 - me;
    lock.flags[me].store(1, kRelaxed);
    if (turn == Turn::Exchanged) {
      lock.turn.exchange(other, std::memory_order_acq_rel);
    } else {
      if (turn == Turn::StoredAfterAFence) fence(kFull);
      lock.turn.store(other, kRelaxed);
      fence(kFull);
    }
    assume(lock.flags[other].load(kAcquire) == 0 || lock.turn.load(kAcquire) == me);
    lock.critical_section();
    lock.flags[me].store(0, kRelease);
  });
}

}  // namespace perfring::model
