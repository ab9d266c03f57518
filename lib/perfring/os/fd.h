#ifndef PERFRING_OS_FD_H_
#define PERFRING_OS_FD_H_
#include <version>
#ifndef __cpp_lib_expected
#error "perfring needs C++23: compile with -std=c++23 (g++ 12, clang 19 or later)"
#else

#include <unistd.h>

#include <utility>

namespace perfring::os {

// A file descriptor that this object owns and closes. Moved from, it holds none (-1).
// Threads: one at a time. Errors: those of close(2) are not reported, because Linux closes the
// descriptor anyway.
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

// A file descriptor that several objects own; the last of them closes it. (A std::shared_ptr would
// do, but <memory>, like <atomic>, has about as many lines as the rest of perfring.h.)
//
// Lifetime: moved from, or constructed without a descriptor, it owns none, and get() is -1.
// Threads: each thread may copy, move and destroy its own SharedFd.
class SharedFd {
 public:
  SharedFd() = default;
  explicit SharedFd(Fd fd) : shared_{new Shared{std::move(fd)}} {}
  SharedFd(const SharedFd& other) noexcept : shared_{other.shared_} {
    if (shared_ != nullptr) __atomic_fetch_add(&shared_->owners, 1, __ATOMIC_RELAXED);
  }
  SharedFd(SharedFd&& other) noexcept : shared_{std::exchange(other.shared_, nullptr)} {}
  SharedFd& operator=(SharedFd other) noexcept {
    std::swap(shared_, other.shared_);
    return *this;  // `other` releases what this owned before
  }
  ~SharedFd() {
    if (shared_ != nullptr && __atomic_sub_fetch(&shared_->owners, 1, __ATOMIC_ACQ_REL) == 0) {
      delete shared_;
    }
  }

  int get() const noexcept { return shared_ != nullptr ? shared_->fd.get() : -1; }

 private:
  struct Shared {
    Fd fd;
    unsigned owners = 1;  // changed by __atomic_* only
  };

  Shared* shared_ = nullptr;
};

}  // namespace perfring::os

#endif
#endif  // PERFRING_OS_FD_H_
