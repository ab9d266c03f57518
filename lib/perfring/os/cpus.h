#ifndef PERFRING_OS_CPUS_H_
#define PERFRING_OS_CPUS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace perfring::os {

// The CPUs of a kernel CPU list such as "0-3,8,10-11" (lib/bitmap.c: bitmap_parselist() writes
// it), ascending as given. Nothing if the text is not one, or names more than 65536 CPUs.
std::optional<std::vector<std::uint32_t>> parse_cpu_list(std::string_view text);

// The online CPUs' list as the kernel words it, and as numbers. Empty if sysfs is not there.
// Mirrors aya's util::online_cpus().
std::string online_cpu_list();
std::vector<std::uint32_t> online_cpus();

// The first line of a small file, without its newline. Nothing if it cannot be read.
std::optional<std::string> read_line(const char* path);

}  // namespace perfring::os

#endif  // PERFRING_OS_CPUS_H_
