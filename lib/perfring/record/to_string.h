#ifndef PERFRING_RECORD_TO_STRING_H_
#define PERFRING_RECORD_TO_STRING_H_
#if __cplusplus < 202002L
#error "perfring/record needs C++20: compile with -std=c++20 or later"
#else

// to_string(): a record in one line, for people. Allocates.
//
//   MMAP2 misc 0x2 size 80: pid 3130, tid 3130, addr 0x7f502a72a000, ..., filename "//anon"

#include <string>

#include "perfring/export.h"
#include "perfring/record/decode.h"

namespace perfring::record {

// Names are the uapi's. Strings are quoted; of bytes that are not printable ASCII, of quotes and
// backslashes, \xNN is printed. Bytes are hex digits.
PERFRING_EXPORT std::string to_string(const Any& record);
PERFRING_EXPORT std::string to_string(const ReadValues& values);

}  // namespace perfring::record

#endif
#endif  // PERFRING_RECORD_TO_STRING_H_
