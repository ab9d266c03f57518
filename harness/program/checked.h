#ifndef HARNESS_PROGRAM_CHECKED_H_
#define HARNESS_PROGRAM_CHECKED_H_

#include <cerrno>
#include <system_error>

namespace perfring {

// Returns a system call's result. Throws std::system_error, which names the call, if the result is
// negative: an unchecked -1 means "any process" or "no descriptor" to other calls.
template <class T>
T checked(T returned, const char* call) {
  if (returned < 0) throw std::system_error{errno, std::generic_category(), call};
  return returned;
}

}  // namespace perfring

#endif  // HARNESS_PROGRAM_CHECKED_H_
