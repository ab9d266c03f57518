#ifndef HARNESS_LIVE_PROCESS_H_
#define HARNESS_LIVE_PROCESS_H_

// A test's own process, and children for changes to a process that cannot be undone.

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace perfring::live {

// How many descriptors this process has, and how many of them are perf events.
std::size_t open_files();
std::size_t perf_event_files();

// A line of /proc/self/maps.
struct MappedFile {
  std::size_t size;
  std::string permissions;  // "rw-s"
};
std::vector<MappedFile> perf_event_mappings();

// Runs `body` in a forked child, which then ends without any destructor having run, and returns
// the text that it returned. A child that ends otherwise returns how, in brackets.
std::string in_child(const std::function<std::string()>& body);

inline constexpr uid_t kNobody = 65534;

// For children. Gives up root for `user`, and keeps only these capabilities (CAP_...). Throws
// std::system_error.
void become(uid_t user, std::span<const int> capabilities = {});

// For children. From now on, system call `number` fails with `error_number`; or only if its
// second argument is `second`. Throws std::system_error.
void refuse(long number, int error_number);
void refuse(long number, std::uint32_t second, int error_number);

}  // namespace perfring::live

#endif  // HARNESS_LIVE_PROCESS_H_
