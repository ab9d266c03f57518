#ifndef PERFRING_RECORD_TO_STRING_H_
#define PERFRING_RECORD_TO_STRING_H_
#if __cplusplus < 202002L
#error "perfring/record needs C++20: compile with -std=c++20 or later"
#else

// to_string(): a record in one line, for people. Allocates.
//
//   MMAP2 misc 0x2 size 80: pid 3130, tid 3130, addr 0x7f502a72a000, ..., filename "//anon"

#include <cstddef>
#include <string>
#include <string_view>

#include "perfring/export.h"
#include "perfring/record/decode.h"
#include "perfring/record/read_values.h"

namespace perfring::record {

// Names are the uapi's. Strings are quoted; control characters, bytes that are not UTF-8, quotes
// and backslashes are printed as \xNN. Bytes are hex digits.
PERFRING_EXPORT std::string to_string(const Any& record);
PERFRING_EXPORT std::string to_string(const ReadValues& values);

namespace internal {

// Returns the length of the UTF-8 character at the beginning of `text`; 0 if there is none, or if
// it is a control character.
inline std::size_t printable_length(std::string_view text) noexcept {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  if (byte(0) < 0x20 || byte(0) == 0x7f) return 0;
  if (byte(0) < 0x80) return 1;
  const std::size_t length = byte(0) >= 0xf0 ? 4 : byte(0) >= 0xe0 ? 3 : byte(0) >= 0xc2 ? 2 : 0;
  if (length == 0 || byte(0) > 0xf4 || text.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  // U+0080 to U+009F are control characters; U+202A to U+202E and U+2066 to U+2069 reorder text.
  if (byte(0) == 0xc2 && byte(1) < 0xa0) return 0;
  if (byte(0) == 0xe2 && byte(1) == 0x80 && byte(2) >= 0xaa && byte(2) <= 0xae) return 0;
  if (byte(0) == 0xe2 && byte(1) == 0x81 && byte(2) >= 0xa6 && byte(2) <= 0xa9) return 0;
  return length;
}

}  // namespace internal

}  // namespace perfring::record

#endif
#endif  // PERFRING_RECORD_TO_STRING_H_
