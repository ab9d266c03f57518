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

// A fuzzer's bytes, consumed from the front. Missing bytes are 0, so that every input is complete.
class Input {
 public:
  explicit Input(std::span<const std::byte> bytes) : left_{bytes} {}
  explicit Input(std::string_view bytes) : left_{std::as_bytes(std::span{bytes})} {}

  // Takes a number, in little endian, so that an input means the same on every machine.
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

// Reports a violation and aborts, which libFuzzer takes for a finding.
[[noreturn]] inline void fail(const std::string& what) {
  std::fprintf(stderr, "fuzz: violated: %s\n", what.c_str());
  std::abort();
}

inline void expect(bool holds, const char* what) {
  if (!holds) fail(what);
}

inline const std::string& reason_of(const std::string& error) {
  return error;
}
// For event::Finding.
template <class Finding>
auto reason_of(const Finding& finding) -> decltype((finding.says)) {
  return finding.says;
}
// Whether a parser has accepted its input. Fails if it refused it without a reason.
template <class T, class Error>
bool accepted(const std::expected<T, Error>& parsed) {
  if (!parsed) expect(!reason_of(parsed.error()).empty(), "refused without a reason");
  return parsed.has_value();
}

}  // namespace perfring::fuzz

#endif  // FUZZ_INPUT_H_
