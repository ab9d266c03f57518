#ifndef HARNESS_MODEL_PROGRAMS_ALGORITHMS_H_
#define HARNESS_MODEL_PROGRAMS_ALGORITHMS_H_

// Each algorithm once, with the part that programs.cc gets right or wrong.

#include <atomic>

#include "harness/model/engine/program.h"

namespace perfring::model {

// Two threads enter a critical section once each. `fences` follow a thread's flag.
Program dekker(std::memory_order fences);

enum class Turn { Exchanged, StoredAfterAFence, Stored };
Program peterson(Turn turn);

// Three values through two slots. What publishes a slot, and what gives it back.
Program spsc_queue(std::memory_order published, std::memory_order given_back);

// Two words that must be seen together.
Program seqlock(bool writer_fence, bool reader_fence);

Program message_passing(std::memory_order store, std::memory_order load);

}  // namespace perfring::model

#endif  // HARNESS_MODEL_PROGRAMS_ALGORITHMS_H_
