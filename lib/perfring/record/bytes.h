#ifndef PERFRING_RECORD_BYTES_H_
#define PERFRING_RECORD_BYTES_H_
#if __cplusplus < 202002L
#error "perfring/record needs C++20: compile with -std=c++20 or later"
#else

// The building blocks of record views: loads that may be unaligned, spans of 64-bit words, and
// Walk, which passes over a record's fields and remembers the first one that does not fit.
//
// Each operator[] ends the program (SIGILL or SIGTRAP) if i is not below size().
// Iterators are like std::vector's: only those between begin() and end() may be dereferenced.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <string_view>

#include "perfring/perf_event.h"

namespace perfring::record {

namespace internal {

// Loads from any address: records are multiples of 8 bytes, but a hostile length may put a field
// anywhere.
template <class T>
T load(const std::byte* address) noexcept {
  T value;
  std::memcpy(&value, address, sizeof value);
  return value;
}

// Loads once: the compiler cannot load the value again, although the bytes may change meanwhile.
// For every length, so that the value that is used is the one that was checked.
template <class T>
T load_once(const std::byte* address) noexcept {
  T value = load<T>(address);
  asm("" : "+r"(value));
  return value;
}

// Ends the program if i is not below size.
inline void expect_index(std::size_t i, std::size_t size) noexcept {
  if (i >= size) [[unlikely]]
    __builtin_trap();
}

}  // namespace internal

// 64-bit words inside a record, at any address.
class U64s {
 public:
  class Iterator {
   public:
    using difference_type = std::ptrdiff_t;
    using value_type = std::uint64_t;

    Iterator() = default;
    explicit Iterator(const std::byte* at) noexcept : at_{at} {}
    std::uint64_t operator*() const noexcept { return internal::load<std::uint64_t>(at_); }
    Iterator& operator++() noexcept {
      at_ += sizeof(std::uint64_t);
      return *this;
    }
    Iterator operator++(int) noexcept {
      const Iterator before = *this;
      ++*this;
      return before;
    }
    bool operator==(const Iterator&) const = default;

   private:
    const std::byte* at_ = nullptr;
  };

  U64s() = default;
  // Like a span's constructor: `size` words are at `data`.
  U64s(const std::byte* data, std::size_t size) noexcept : data_{data}, size_{size} {}

  std::size_t size() const noexcept { return size_; }
  bool empty() const noexcept { return size_ == 0; }
  std::uint64_t operator[](std::size_t i) const noexcept {
    return internal::load<std::uint64_t>(address(i));
  }
  // Returns the address of the i-th word. Ends the program like operator[].
  const std::byte* address(std::size_t i) const noexcept {
    internal::expect_index(i, size_);
    return data_ + i * sizeof(std::uint64_t);
  }
  Iterator begin() const noexcept { return Iterator{data_}; }
  Iterator end() const noexcept { return Iterator{data_ + size_ * sizeof(std::uint64_t)}; }

 private:
  const std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

namespace internal {

// A field of variable length: its offset in the record, and its number of units. Both fit a u16,
// because header.size is one. No field is at 0, where the header is.
struct Place {
  std::uint16_t at = 0;
  std::uint16_t count = 0;
};

class Walk {
 public:
  // A walk from `begin` to `end`, offsets in the record. Precondition: begin <= end <= 65535.
  Walk(const std::byte* record, std::size_t begin, std::size_t end) noexcept
      : record_{record}, at_{begin}, end_{end} {}

  std::size_t at() const noexcept { return at_; }
  std::size_t left() const noexcept { return end_ - at_; }
  // The first field that did not fit; null if all did.
  const char* too_short() const noexcept { return too_short_; }

  // Passes over `bytes`. Returns false if `field` does not fit; then nothing that follows fits
  // either.
  bool pass(std::size_t bytes, const char* field) noexcept {
    if (bytes > left()) fail(field);
    if (too_short_ != nullptr) return false;
    at_ += bytes;
    return true;
  }
  // Advances to a multiple of 8, or to the end.
  void align() noexcept {
    const std::size_t aligned = (at_ + 7) / 8 * 8;
    if (too_short_ == nullptr) at_ = aligned < end_ ? aligned : end_;
  }
  // Records that a field does not fit.
  void fail(const char* field) noexcept {
    if (too_short_ == nullptr) too_short_ = field;
  }
  // Passes over a length in the record, and returns it; 0 if it does not fit.
  template <class T>
  T length(const char* field) noexcept {
    return pass(sizeof(T), field) ? load_once<T>(record_ + at_ - sizeof(T)) : T{0};
  }
  // Passes over `count` units of `unit` bytes each, however large the count.
  Place units(std::uint64_t count, std::size_t unit, const char* field) noexcept {
    const std::size_t begin = at_;
    if (count > 65535 || count * unit > left()) fail(field);
    if (too_short_ != nullptr) return {};
    const auto few = static_cast<std::uint16_t>(count);  // no more than there are bytes left
    at_ += few * unit;
    return {static_cast<std::uint16_t>(begin), few};
  }
  // Passes over a NUL-terminated string, and over its padding to a multiple of 8. A string without
  // a NUL is cut off, and does not fit.
  Place string(const char* field) noexcept {
    const std::size_t begin = at_;
    const void* const nul =
        too_short_ == nullptr && left() != 0 ? std::memchr(record_ + at_, 0, left()) : nullptr;
    if (nul == nullptr) {
      fail(field);
      return {};
    }
    const auto length =
        static_cast<std::size_t>(static_cast<const std::byte*>(nul) - (record_ + begin));
    const std::size_t padded = (begin + length + 8) / 8 * 8;
    at_ = padded < end_ ? padded : end_;
    return {static_cast<std::uint16_t>(begin), static_cast<std::uint16_t>(length)};
  }

 private:
  const std::byte* record_;
  std::size_t at_;
  std::size_t end_;
  const char* too_short_ = nullptr;
};

}  // namespace internal
}  // namespace perfring::record

#endif
#endif  // PERFRING_RECORD_BYTES_H_
