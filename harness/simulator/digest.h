#ifndef HARNESS_SIMULATOR_DIGEST_H_
#define HARNESS_SIMULATOR_DIGEST_H_

#include <cstdint>

namespace perfring::simulator {

// A hash of numbers, in their order. Of values, never of memory: the same on every machine.
class Digest {
 public:
  void add(std::uint64_t value) {
    hash_ = (hash_ ^ value) * 0x9e3779b97f4a7c15;
    hash_ ^= hash_ >> 32;
  }
  std::uint64_t value() const { return hash_; }

 private:
  std::uint64_t hash_ = 0xcbf29ce484222325;
};

}  // namespace perfring::simulator

#endif  // HARNESS_SIMULATOR_DIGEST_H_
