#ifndef PERFRING_OS_FD_H_
#define PERFRING_OS_FD_H_
#include <version>
#ifndef __cpp_lib_expected
#error "perfring needs C++23 (of g++ 12, clang 19): compile with -std=c++23 (ring/ alone: C++20)"
#else

#include <unistd.h>

#include <utility>

namespace perfring::os {

// A file descriptor that this object owns and closes. Moved from, it holds none (-1).
// Threads: one at a time. Errors: those of close(2) are not reported, as Linux has closed it
// anyhow.
class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) noexcept : fd_{fd} {}
  Fd(Fd&& other) noexcept : fd_{std::exchange(other.fd_, -1)} {}
  Fd& operator=(Fd&& other) noexcept {
    if (this != &other) {
      reset();
      fd_ = std::exchange(other.fd_, -1);
    }
    return *this;
  }
  ~Fd() { reset(); }

  int get() const noexcept { return fd_; }

 private:
  void reset() noexcept {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
  }

  int fd_ = -1;
};

}  // namespace perfring::os

#endif
#endif  // PERFRING_OS_FD_H_
