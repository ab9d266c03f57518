#ifndef HARNESS_SCRIPT_GENERATE_H_
#define HARNESS_SCRIPT_GENERATE_H_

#include <cstddef>
#include <cstdint>
#include <functional>

#include "harness/script/script.h"

namespace perfring::script {

struct GenerateOptions {
  std::size_t steps_max = 80;
  std::uint64_t pages_max = 64;
  std::uint64_t page_size = 4096;  // where rings end, which is where sizes are interesting
  bool any_word = false;           // 32-bit kernels, too
  bool any_start = false;          // any starting position, the interesting ones above all
  bool nested = false;             // steps in the midst of others, and drains that throw
};

// The random script of this seed: with the same options the same one on every machine. It can be
// run, and leans to what is interesting: sizes around multiples of 8, the ring's size and 2^16;
// watermarks around the ring's size; rings that are full.
Script generate(std::uint64_t seed, const GenerateOptions& options = {});

// The shortest script found for which `fails` still holds: fewer steps first (delta debugging),
// then settings nearer to the usual ones, then smaller numbers. `fails` holds for `script`, is
// only asked about scripts that can be run, and at most `limit` times.
Script shrink(Script script, const std::function<bool(const Script&)>& fails,
              std::size_t limit = 2000);

}  // namespace perfring::script

#endif  // HARNESS_SCRIPT_GENERATE_H_
