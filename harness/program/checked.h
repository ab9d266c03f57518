#ifndef HARNESS_PROGRAM_CHECKED_H_
#define HARNESS_PROGRAM_CHECKED_H_

#include <cerrno>
#include <system_error>

namespace perfring {

// What a system call returned. Throws std::system_error, which names the call, if that is negative:
// a -1 that is used on is another call's "any process" or "no descriptor".
template <class T>
T checked(T returned, const char* call) {
  if (returned < 0) throw std::system_error{errno, std::generic_category(), call};
  return returned;
}

}  // namespace perfring

#endif  // HARNESS_PROGRAM_CHECKED_H_
