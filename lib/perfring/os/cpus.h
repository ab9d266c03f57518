#ifndef PERFRING_OS_CPUS_H_
#define PERFRING_OS_CPUS_H_
#include <version>
#ifndef __cpp_lib_expected
#error "perfring needs C++23: compile with -std=c++23 (g++ 12, clang 19 or later)"
#else

#include <cstdint>
#include <expected>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "perfring/export.h"

namespace perfring::os {

// Why online_cpus() failed. aya returns it as (path, io::Error). An unknown kind has the texts of
// InvalidData.
struct PERFRING_EXPORT OnlineCpusError {
  enum class Kind : std::uint8_t {
    IOError,      // the file cannot be opened or read
    InvalidData,  // what it holds is not a list of CPUs
  };

  Kind kind;
  std::string path;
  std::error_code io_error;  // what the system said; EINVAL for InvalidData
  std::string data;          // for InvalidData: what the file holds, or its beginning

  // One line: "/sys/devices/system/cpu/online: No such file or directory".
  std::string message() const;

  // Three lines for a person: what was asked, what the system said, and what to change.
  std::string explain() const;
};

// The numbers of the CPUs that are online now, ascending: where to open a buffer. There is at
// least one.
//
// Errors: IOError where sysfs is not mounted, or may not be read. InvalidData where the file is not
// exactly one CPU list; an empty file is not one, since the CPU that reads it is online.
//
// Threads: any, at once. Kernel: drivers/base/cpu.c at v6.18 writes the file.
// Mirrors aya's util::online_cpus() (aya/src/util.rs).
PERFRING_EXPORT std::expected<std::vector<std::uint32_t>, OnlineCpusError> online_cpus();

// The same of the CPU list in another file; IOError (EFAULT) for a null pointer. Mirrors aya's
// read_cpu_ranges().
std::expected<std::vector<std::uint32_t>, OnlineCpusError> read_cpu_list(const char* path);

// The CPUs of a kernel CPU list such as "0-3,8,10-11" (lib/vsprintf.c: bitmap_list_string() writes
// it), in its order; at least one. Returns nullopt if the text is not such a list, names a CPU
// above 65535, or more than 65536 CPUs: no Linux kernel has that many.
std::optional<std::vector<std::uint32_t> > parse_cpu_list(std::string_view text);

// CPUs as such a list.
std::string to_cpu_list(std::span<const std::uint32_t> cpus);

// The first line of a small file, without its newline, at most 4096 bytes of it; or nullopt if it
// cannot be read, or `path` is a null pointer.
std::optional<std::string> read_line(const char* path);

}  // namespace perfring::os

// Of the API, for every header that includes this one.
namespace perfring {

using os::online_cpus;
using os::OnlineCpusError;

}  // namespace perfring

#endif
#endif  // PERFRING_OS_CPUS_H_
