#ifndef HARNESS_ANOMALY_CALLS_H_
#define HARNESS_ANOMALY_CALLS_H_

// The system calls that the room can make fail, by name. errnos.txt has the errnos of each.

#include <span>
#include <string>
#include <string_view>

namespace perfring::anomaly {

struct Call {
  const char* name;
  int number;
};

std::span<const Call> calls();
// Returns -1 for an unknown name.
int number_of(std::string_view name);
// Returns "number 17" for an unknown call.
std::string name_of(int number);

}  // namespace perfring::anomaly

#endif  // HARNESS_ANOMALY_CALLS_H_
