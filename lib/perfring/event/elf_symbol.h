#ifndef PERFRING_EVENT_ELF_SYMBOL_H_
#define PERFRING_EVENT_ELF_SYMBOL_H_
#include <version>
#ifndef __cpp_lib_expected
#error "perfring needs C++23: compile with -std=c++23 (g++ 12, clang 19 or later)"
#else

// Internal to event/.

#include <cstdint>
#include <expected>
#include <string>
#include <string_view>

namespace perfring::event::internal {

// Where in the file a symbol's code is, which a uprobe wants: not its virtual address, but the
// place that the PT_LOAD segment around that address has in the file. Of ELF files of this
// machine's byte order, 32 and 64 bits. The error is a sentence. No byte outside the file is read,
// whatever it says of itself.
std::expected<std::uint64_t, std::string> file_offset_of(const char* path, std::string_view symbol);

}  // namespace perfring::event::internal

#endif
#endif  // PERFRING_EVENT_ELF_SYMBOL_H_
