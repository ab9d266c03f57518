#ifndef PERFRING_EVENT_TEXT_H_
#define PERFRING_EVENT_TEXT_H_
#include <version>
#ifndef __cpp_lib_expected
#error "perfring needs C++23: compile with -std=c++23 (g++ 12, clang 19 or later)"
#else

// Takes apart the text that names an event, or that sysfs has about one, and says what is wrong
// with it. Internal to event/.
//
// Lifetime: what cut() returns refers to the text.

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "perfring/event/event.h"

namespace perfring::event::internal {

// Returns the text before the first `separator`, and removes both from `rest`.
inline std::string_view cut(std::string_view& rest, char separator) {
  const std::string_view first = rest.substr(0, rest.find(separator));
  rest.remove_prefix(std::min(first.size() + 1, rest.size()));
  return first;
}

// Returns the number that is the whole text: decimal, or hexadecimal after 0x.
inline std::optional<std::uint64_t> number_of(std::string_view text) {
  const bool is_hex = text.starts_with("0x") || text.starts_with("0X");
  if (is_hex) text.remove_prefix(2);
  std::uint64_t value = 0;
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), value, is_hex ? 16 : 10);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// At most the first 200 characters.
inline std::string in_quotes(std::string_view text) {
  // (Not with +: GCC bug 105651, at -O3.)
  std::string all{"'"};
  all.append(text.substr(0, 200)).append(text.size() > 200 ? "...'" : "'");
  return all;
}

inline Finding wrong(const char* field, std::string says, std::string advice) {
  return {.field = field, .says = std::move(says), .advice = std::move(advice)};
}

}  // namespace perfring::event::internal

#endif
#endif  // PERFRING_EVENT_TEXT_H_
