#include <string_view>

#include "fuzz/hostile_merge.h"
#include "fuzz/input.h"

namespace perfring::fuzz {

// A fuzz target (hostile_merge.h).
void merge(std::string_view input) {
  HostileMerge<>{Input{input}}.run();
}

}  // namespace perfring::fuzz
