#ifndef HARNESS_PROGRAM_NUMBERS_H_
#define HARNESS_PROGRAM_NUMBERS_H_

// Formats numbers for messages and tables, and parses text as numbers and bytes. A parser takes the
// whole text or none of it.

#include <charconv>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace perfring {

// Returns 4210331 as "4,210,331". Takes any integer: std::size_t is another type on 32-bit hosts.
inline std::string grouped(std::integral auto number) {
  std::string text = std::to_string(number);
  for (std::size_t i = text.size(); i > 3; i -= 3) text.insert(i - 3, 1, ',');
  return text;
}
inline std::string grouped(std::floating_point auto number) {
  return grouped(static_cast<std::uint64_t>(std::llround(number)));
}

// Returns "1 record", "4,210,331 records".
inline std::string counted(std::uint64_t number, std::string_view what) {
  return grouped(number) + " " + std::string{what} + (number == 1 ? "" : "s");
}

// Accepts digits only: no sign before an unsigned number, no blanks, no 0x.
template <std::integral T = std::uint64_t>
std::optional<T> parse_number(std::string_view text, int base = 10) {
  T value{};
  const char* const last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, value, base);
  if (error != std::errc{} || end != last) return std::nullopt;
  return value;
}
template <std::floating_point T>
std::optional<T> parse_number(std::string_view text) {
  T value{};
  const char* const last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, value);
  if (error != std::errc{} || end != last) return std::nullopt;
  return value;
}

// Accepts two hexadecimal digits for each byte. An empty text is not an error.
inline std::optional<std::vector<std::byte>> parse_hex(std::string_view digits) {
  if (digits.size() % 2 != 0) return std::nullopt;
  std::vector<std::byte> bytes;
  for (std::size_t i = 0; i < digits.size(); i += 2) {
    const auto byte = parse_number<std::uint8_t>(digits.substr(i, 2), 16);
    if (!byte) return std::nullopt;
    bytes.push_back(static_cast<std::byte>(*byte));
  }
  return bytes;
}

}  // namespace perfring

#endif  // HARNESS_PROGRAM_NUMBERS_H_
