#include "harness/model/programs/programs.h"

#include <array>
#include <atomic>
#include <functional>

#include "harness/model/engine/trace.h"

namespace perfring::model {
namespace {

constexpr auto kFull = std::memory_order_seq_cst;

struct Lock {
  std::array<Var, 2> flags;
  Var turn, inside;

  explicit Lock(Program& program)
      : flags{program.var("flag 0"), program.var("flag 1")},
        turn{program.var("turn")},
        inside{program.var("inside")} {}

  // Not atomic, so that two threads inside at once race.
  void critical_section() const { inside.write(inside.read() + 1); }
};

Program two_threads(Program program, const Lock& lock, const std::function<void(unsigned)>& enter) {
  for (const unsigned me : {0u, 1u}) program.threads.emplace_back([=] { enter(me); });
  program.finally = [=] {
    check(lock.inside.read() == 2, "a thread did not enter the critical section");
  };
  return program;
}

// Dekker's algorithm: two threads enter a critical section once each. `fences`: the order of the
// fence after each store of 1 to a thread's flag.
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

enum class Turn { Exchanged, StoredAfterAFence, Stored };
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

// Passes three values through two slots. `published`: the order of the store that publishes a slot.
// `given_back`: the order of the store that returns it.
Program spsc_queue(std::memory_order published, std::memory_order given_back) {
  constexpr std::uint64_t kValues = 3;
  Program program;
  const std::array slots{program.var("slot 0"), program.var("slot 1")};
  const Var head = program.var("head");
  const Var tail = program.var("tail");
  program.thread_names = {"push", "pop"};
  program.threads.emplace_back([=] {
    for (std::uint64_t i = 0; i < kValues; ++i) {
      assume(i - tail.load(kAcquire) < slots.size());
      slots[i % slots.size()].write(i + 1);
      head.store(i + 1, published);
    }
  });
  program.threads.emplace_back([=] {
    for (std::uint64_t i = 0; i < kValues; ++i) {
      assume(head.load(kAcquire) > i);
      check(slots[i % slots.size()].read() == i + 1, "a value is not the one that was pushed");
      tail.store(i + 1, given_back);
    }
  });
  return program;
}

// A sequence lock around two words that must be read together.
Program seqlock(bool writer_fence, bool reader_fence) {
  Program program;
  const Var sequence = program.var("sequence");
  const std::array words{program.var("word 0"), program.var("word 1")};
  program.thread_names = {"writer", "reader"};
  program.threads.emplace_back([=] {
    for (std::uint64_t i = 1; i <= 2; ++i) {
      sequence.store(2 * i - 1, kRelaxed);
      if (writer_fence) fence(kRelease);
      for (const Var& word : words) word.store(i, kRelaxed);
      sequence.store(2 * i, kRelease);
    }
  });
  program.threads.emplace_back([=] {
    const std::uint64_t before = sequence.load(kAcquire);
    const std::uint64_t first = words[0].load(kRelaxed);
    const std::uint64_t second = words[1].load(kRelaxed);
    if (reader_fence) fence(kAcquire);
    if (before % 2 != 0 || sequence.load(kRelaxed) != before) return;
    check(first == before / 2 && second == before / 2, "the words are from different writes");
  });
  return program;
}

Program message_passing(std::memory_order store, std::memory_order load) {
  Program program;
  const Var data = program.var("data");
  const Var flag = program.var("flag");
  program.thread_names = {"sender", "receiver"};
  program.threads.emplace_back([=] {
    data.write(1);
    flag.store(1, store);
  });
  program.threads.emplace_back([=] {
    if (flag.load(load) == 1) check(data.read() == 1, "the message is missing");
  });
  return program;
}

// Each algorithm, correct, and with one part wrong.
constexpr const char* kTorn = "the words are from different writes";

const std::array kPrograms = {
    KnownProgram{"correct/dekker", "Dekker's mutual exclusion, with full fences",
                 [] { return dekker(kFull); }, ""},
    KnownProgram{"correct/peterson", "Peterson's, with an atomic exchange of the turn",
                 [] { return peterson(Turn::Exchanged); }, ""},
    KnownProgram{"correct/peterson_fences", "Peterson's, with a full fence after each store",
                 [] { return peterson(Turn::StoredAfterAFence); }, ""},
    KnownProgram{"correct/spsc_queue", "three values through a queue of two slots",
                 [] { return spsc_queue(kRelease, kRelease); }, ""},
    KnownProgram{"correct/seqlock", "two words under a sequence lock",
                 [] { return seqlock(true, true); }, ""},
    KnownProgram{"correct/message_passing", "a release store and an acquire load",
                 [] { return message_passing(kRelease, kAcquire); }, ""},
    KnownProgram{"wrong/dekker", "Dekker's, with fences that are not full",
                 [] { return dekker(kAcquireRelease); }, kDataRace},
    KnownProgram{"wrong/peterson", "Peterson's, with a full fence after the second store only",
                 [] { return peterson(Turn::Stored); }, kDataRace},
    KnownProgram{"wrong/spsc_queue_published", "a slot published by a relaxed store",
                 [] { return spsc_queue(kRelaxed, kRelease); }, kDataRace},
    KnownProgram{"wrong/spsc_queue_given_back", "a slot given back by a relaxed store",
                 [] { return spsc_queue(kRelease, kRelaxed); }, kDataRace},
    KnownProgram{"wrong/seqlock_writer", "no fence after the sequence becomes odd",
                 [] { return seqlock(false, true); }, kTorn},
    KnownProgram{"wrong/seqlock_reader", "no fence before the sequence is read again",
                 [] { return seqlock(true, false); }, kTorn},
    KnownProgram{"wrong/message_passing_store", "a relaxed store",
                 [] { return message_passing(kRelaxed, kAcquire); }, kDataRace},
    KnownProgram{"wrong/message_passing_load", "a relaxed load",
                 [] { return message_passing(kRelease, kRelaxed); }, kDataRace},
};

}  // namespace

std::span<const KnownProgram> known_programs() {
  return kPrograms;
}

}  // namespace perfring::model
