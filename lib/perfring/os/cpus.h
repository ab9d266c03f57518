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

// Why online_cpus() failed. aya returns (path, io::Error). An unknown kind has the texts of
// InvalidData.
struct PERFRING_EXPORT OnlineCpusError {
  enum class Kind : std::uint8_t {
    IOError,      // the file cannot be opened or read
    InvalidData,  // the file's contents are not a list of CPUs
  };

  Kind kind;
  std::string path;
  std::error_code io_error;  // the system's error; EINVAL for InvalidData
  std::string data;          // for InvalidData: the file's contents, or their beginning

  // Returns one line: "/sys/devices/system/cpu/online: No such file or directory".
  std::string message() const;

  // Returns three lines for a person: the request, the system's answer, and the change that helps.
  std::string explain() const;
};

// Returns the numbers of the CPUs that are online now, ascending: those on which to open buffers.
// There is at least one.
//
// Errors: IOError if sysfs is not mounted, or may not be read. InvalidData if the file is not
// exactly one CPU list; an empty file is not one, because the CPU that reads it is online.
//
// Threads: any, concurrently. Kernel: drivers/base/cpu.c at v6.18 writes the file.
// Mirrors aya's util::online_cpus() (aya/src/util.rs).
PERFRING_EXPORT std::expected<std::vector<std::uint32_t>, OnlineCpusError> online_cpus();

// Does the same for the CPU list in another file; IOError (EFAULT) for a null pointer. Mirrors
// aya's read_cpu_ranges().
std::expected<std::vector<std::uint32_t>, OnlineCpusError> read_cpu_list(const char* path);

// Returns the CPUs in a kernel CPU list such as "0-3,8,10-11" (lib/vsprintf.c: bitmap_list_string()
// writes it), in its order; at least one. Returns nullopt if the text is not such a list, names a
// CPU above 65535, or names more than 65536 CPUs: no Linux kernel has that many.
std::optional<std::vector<std::uint32_t> > parse_cpu_list(std::string_view text);

// Returns CPUs as such a list.
std::string to_cpu_list(std::span<const std::uint32_t> cpus);

// Returns the first line of a small file, without its newline, at most 4096 bytes of it. Returns
// nullopt if the file cannot be read, or `path` is a null pointer.
std::optional<std::string> read_line(const char* path);

}  // namespace perfring::os

// Part of the API, for every header that includes this one.
namespace perfring {

using os::online_cpus;
using os::OnlineCpusError;

}  // namespace perfring

#endif
#endif  // PERFRING_OS_CPUS_H_
