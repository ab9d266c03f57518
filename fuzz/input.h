#ifndef FUZZ_INPUT_H_
#define FUZZ_INPUT_H_

#include <algorithm>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <expected>
#include <span>
#include <string>
#include <string_view>

namespace perfring::fuzz {

// A fuzzer's bytes, taken from the front. Missing bytes are 0, so that every input is complete.
class Input {
 public:
  explicit Input(std::span<const std::byte> bytes) : left_{bytes} {}
  explicit Input(std::string_view bytes) : left_{std::as_bytes(std::span{bytes})} {}

  // A number, in little endian: an input is the same on every machine.
  template <std::unsigned_integral T>
  T take() {
    T value{};
    const std::size_t size = std::min(sizeof(value), left_.size());
    if (size != 0) std::memcpy(&value, left_.data(), size);
    left_ = left_.subspan(size);
    return std::endian::native == std::endian::little ? value : std::byteswap(value);
  }

  std::span<const std::byte> rest() const { return left_; }
  bool empty() const { return left_.empty(); }

 private:
  std::span<const std::byte> left_;
};

// Something is wrong: ends the process, which is how a fuzzer knows.
[[noreturn]] inline void fail(const std::string& what) {
  std::fprintf(stderr, "fuzz: violated: %s\n", what.c_str());
  std::abort();
}

inline void expect(bool holds, const char* what) {
  if (!holds) fail(what);
}

// Whether a parser accepts a text. It may refuse any, with a reason.
inline const std::string& reason_of(const std::string& error) {
  return error;
}
// The reason that an event::Finding gives.
template <class Finding>
auto reason_of(const Finding& finding) -> decltype((finding.says)) {
  return finding.says;
}
template <class T, class Error>
bool accepted(const std::expected<T, Error>& parsed) {
  if (!parsed) expect(!reason_of(parsed.error()).empty(), "refused without a reason");
  return parsed.has_value();
}

}  // namespace perfring::fuzz

#endif  // FUZZ_INPUT_H_
