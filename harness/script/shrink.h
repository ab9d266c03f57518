#ifndef HARNESS_SCRIPT_SHRINK_H_
#define HARNESS_SCRIPT_SHRINK_H_

#include <cstddef>
#include <functional>

#include "harness/script/script.h"

namespace perfring::script {

// The shortest script found for which `fails` still holds: fewer steps first (delta debugging),
// then settings nearer to the usual ones, then smaller numbers. `fails` holds for `script`, is
// only asked about scripts that can be run, and at most `limit` times.
Script shrink(Script script, const std::function<bool(const Script&)>& fails,
              std::size_t limit = 2000);

}  // namespace perfring::script

#endif  // HARNESS_SCRIPT_SHRINK_H_
