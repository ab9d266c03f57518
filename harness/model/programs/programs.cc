#include "harness/model/programs/programs.h"

#include <array>

#include "harness/model/engine/trace.h"
#include "harness/model/programs/algorithms.h"

namespace perfring::model {
namespace {

constexpr auto kRelaxed = std::memory_order_relaxed;
constexpr auto kAcquire = std::memory_order_acquire;
constexpr auto kRelease = std::memory_order_release;
constexpr auto kAcquireRelease = std::memory_order_acq_rel;
constexpr auto kFull = std::memory_order_seq_cst;
constexpr const char* kTorn = "the words are of different times";

const std::array kPrograms = {
    KnownProgram{"correct/dekker", "Dekker's mutual exclusion, with full fences",
                 [] { return dekker(kFull); }, ""},
    KnownProgram{"correct/peterson", "Peterson's, in which the turn is exchanged",
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
    KnownProgram{"wrong/seqlock_writer", "no fence after the sequence gets odd",
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
