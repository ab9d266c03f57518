#include "harness/oracle/payload.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

namespace perfring::oracle {
namespace {

// Converts between a number and its little-endian bytes.
std::uint64_t little(std::uint64_t word) {
  return std::endian::native == std::endian::little ? word : __builtin_bswap64(word);
}

// Converts a word's u16, u16 and u32 to or from this byte order. The function is its own inverse.
std::uint64_t in_order(std::uint64_t word, std::endian order) {
  if (order == std::endian::little) return word;
  const auto low = static_cast<std::uint16_t>(word);
  const auto next = static_cast<std::uint16_t>(word >> 16);
  const auto high = static_cast<std::uint32_t>(word >> 32);
  return __builtin_bswap16(low) | std::uint64_t{__builtin_bswap16(next)} << 16 |
         std::uint64_t{__builtin_bswap32(high)} << 32;
}

// The words of a payload: sequence number, length and stream, then a body. Each body word differs
// from its neighbors, and from the word at the same index in neighboring payloads.
class Words {
 public:
  explicit Words(const Payload& payload, std::endian order = std::endian::native)
      : order_{order},
        sequence_{payload.sequence},
        length_and_stream_{payload.length | std::uint64_t{payload.stream} << 32},
        seed_{std::rotl(sequence_ * kOdd, 29) ^ (length_and_stream_ * kOdd)} {}

  // Returns word i as a number whose little-endian bytes are the payload's bytes.
  std::uint64_t operator[](std::size_t i) const {
    if (i == 0) return in_order(sequence_, order_);
    return i == 1 ? in_order(length_and_stream_, order_) : body(i);
  }
  // Returns word i, which must be in the body. Without the branches of operator[], the compiler
  // vectorizes the caller's loop.
  std::uint64_t body(std::size_t i) const { return in_order(seed_ + i * kOdd, order_); }
  std::byte byte(std::size_t i) const {
    return static_cast<std::byte>((*this)[i / 8] >> (i % 8 * 8) & 0xff);
  }

 private:
  static constexpr std::uint64_t kOdd = 0x9e3779b97f4a7c15;
  const std::endian order_;
  std::uint64_t sequence_;
  std::uint64_t length_and_stream_;
  std::uint64_t seed_;
};

// Returns true if `bytes` equal the payload's bytes from `offset` on.
bool matches(Bytes bytes, const Words& words, std::size_t offset) {
  std::size_t i = 0;
  for (; i < bytes.size() && (offset + i) % 8 != 0; ++i) {
    if (bytes[i] != words.byte(offset + i)) return false;
  }
  for (; i + 8 <= bytes.size(); i += 8) {
    std::uint64_t word;
    std::memcpy(&word, bytes.data() + i, sizeof(word));
    if (little(word) != words[(offset + i) / 8]) return false;
  }
  for (; i < bytes.size(); ++i) {
    if (bytes[i] != words.byte(offset + i)) return false;
  }
  return true;
}

}  // namespace

std::string name(const Payload& payload) {
  return fmt::format("stream {} sequence {} of {} bytes", payload.stream, payload.sequence,
                     payload.length);
}

void fill(std::span<std::byte> to, const Payload& payload, std::endian order) {
  const Words words{payload, order};
  const auto put = [to](std::size_t i, std::uint64_t word) {
    word = little(word);
    std::memcpy(to.data() + i * sizeof(word), &word, sizeof(word));
  };
  const std::size_t whole = to.size() / 8;
  for (std::size_t i = 0; i < std::min(whole, kSelfDescribing / 8); ++i) put(i, words[i]);
  for (std::size_t i = kSelfDescribing / 8; i < whole; ++i) put(i, words.body(i));
  for (std::size_t i = whole * 8; i < to.size(); ++i) to[i] = words.byte(i);
}

bool holds(const Sample& sample, const Payload& payload) {
  if (sample.size() != raw_size(payload.length)) return false;
  const Words words{payload};
  const std::size_t in_head = std::min<std::size_t>(sample.head.size(), payload.length);
  return matches(sample.head.first(in_head), words, 0) &&
         matches(sample.tail.first(payload.length - in_head), words, in_head);
}

std::optional<Payload> claimed_payload(const Sample& sample) {
  auto words = sample.as<std::array<std::uint64_t, kSelfDescribing / 8>>();
  if (!words) return std::nullopt;
  for (std::uint64_t& word : *words) word = in_order(little(word), std::endian::native);
  return Payload{words->at(0), static_cast<std::uint32_t>(words->at(1) >> 32),
                 static_cast<std::uint32_t>(words->at(1))};
}

}  // namespace perfring::oracle
