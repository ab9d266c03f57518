#ifndef HARNESS_ANOMALY_CALLS_H_
#define HARNESS_ANOMALY_CALLS_H_

// The system calls that can be made to fail, by name. errnos.txt says by which errnos.

#include <span>
#include <string>
#include <string_view>

namespace perfring::anomaly {

struct Call {
  const char* name;
  int number;
};

std::span<const Call> calls();
// -1 for a name that is not among them.
int number_of(std::string_view name);
// "number 17" for a call that is not among them.
std::string name_of(int number);

}  // namespace perfring::anomaly

#endif  // HARNESS_ANOMALY_CALLS_H_
