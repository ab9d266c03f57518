#ifndef HARNESS_SIMULATOR_RANDOM_H_
#define HARNESS_SIMULATOR_RANDOM_H_

// Random numbers and hashes that are the same on every machine.

#include <array>
#include <bit>
#include <cstdint>

namespace perfring::simulator {

// xoshiro256** (Blackman and Vigna), seeded with splitmix64, with its own mapping to ranges: the
// same numbers on every machine and with every C++ library.
class Random {
 public:
  explicit Random(std::uint64_t seed) {
    for (std::uint64_t& word : state_) word = splitmix64(seed);
  }

  std::uint64_t next() {
    const std::uint64_t result = std::rotl(state_[1] * 5, 7) * 9;
    const std::uint64_t shifted = state_[1] << 17;
    state_[2] ^= state_[0];
    state_[3] ^= state_[1];
    state_[1] ^= state_[2];
    state_[0] ^= state_[3];
    state_[2] ^= shifted;
    state_[3] = std::rotl(state_[3], 45);
    return result;
  }

  // Returns 0 to bound - 1. Precondition: bound > 0.
  std::uint32_t below(std::uint32_t bound) {
    return static_cast<std::uint32_t>((next() >> 32) * bound >> 32);
  }
  // Returns first to last, both included. Precondition: first <= last, last - first < 2^32 - 1.
  std::uint32_t between(std::uint32_t first, std::uint32_t last) {
    return first == last ? first : first + below(last - first + 1);
  }
  // Returns true with a probability of 1/n; never if n is 0.
  bool one_in(std::uint32_t n) { return n != 0 && below(n) == 0; }

 private:
  static std::uint64_t splitmix64(std::uint64_t& state) {
    std::uint64_t z = state += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }

  std::array<std::uint64_t, 4> state_{};
};

// A hash of a sequence of numbers. It hashes values, never memory: the same on every machine.
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

#endif  // HARNESS_SIMULATOR_RANDOM_H_
