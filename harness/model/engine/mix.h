#ifndef HARNESS_MODEL_ENGINE_MIX_H_
#define HARNESS_MODEL_ENGINE_MIX_H_

#include <cstdint>

namespace perfring::model {

// splitmix64's finisher.
constexpr std::uint64_t mix(std::uint64_t x) {
  x ^= x >> 30;
  x *= 0xbf58'476d'1ce4'e5b9;
  x ^= x >> 27;
  x *= 0x94d0'49bb'1331'11eb;
  return x ^ x >> 31;
}

}  // namespace perfring::model

#endif  // HARNESS_MODEL_ENGINE_MIX_H_
