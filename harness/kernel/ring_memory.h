#ifndef HARNESS_KERNEL_RING_MEMORY_H_
#define HARNESS_KERNEL_RING_MEMORY_H_

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <span>
#include <system_error>
#include <utility>

namespace perfring::kernel {

// Sets the length of a memfd (MFD_ALLOW_SEALING) and seals it: a process that reads a mapping after
// another process has truncated the file is killed by SIGBUS. An event's descriptor cannot be
// truncated either. Returns 0 or an errno.
inline int give_length(int fd, std::size_t length) noexcept {
  constexpr int kForGood = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
  if (::ftruncate(fd, static_cast<off_t>(length)) != 0) return errno;
  if (::fcntl(fd, F_ADD_SEALS, kForGood) != 0) return errno;
  struct stat of{};  // another process may have truncated it before it was sealed
  if (::fstat(fd, &of) != 0) return errno;
  return of.st_size == static_cast<off_t>(length) ? 0 : EINVAL;
}

// Zeroed memory for perf_mmap(): one page, then the data, in the layout of the kernel's mapping. It
// is a memfd, so that another process, which inherits fd() or the mapping, can be the other end of
// the ring. Nobody can change its length. Throws std::system_error if the machine has no memory for
// it.
class RingMemory {
 public:
  explicit RingMemory(std::size_t nr_pages, std::size_t page_size = 4096)
      : size_{(1 + nr_pages) * page_size},
        fd_{::memfd_create("perf_ring", MFD_CLOEXEC | MFD_ALLOW_SEALING)} {
    if (fd_ < 0) fail("memfd_create", errno);
    if (const int error = give_length(fd_, size_); error != 0) fail("ftruncate", error);
    void* const mapped = ::mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_SHARED, fd_, 0);
    if (mapped == MAP_FAILED) fail("mmap", errno);
    base_ = static_cast<std::byte*>(mapped);
  }
  RingMemory(RingMemory&& other) noexcept
      : size_{other.size_}, fd_{std::exchange(other.fd_, -1)}, base_{other.base_} {}
  RingMemory& operator=(RingMemory&&) = delete;
  ~RingMemory() {
    if (fd_ < 0) return;
    ::munmap(base_, size_);
    ::close(fd_);
  }

  std::span<std::byte> bytes() const noexcept { return {base_, size_}; }
  int fd() const noexcept { return fd_; }

 private:
  [[noreturn]] void fail(const char* call, int error) const {
    if (fd_ >= 0) ::close(fd_);
    throw std::system_error{error, std::generic_category(), call};
  }

  std::size_t size_;
  int fd_;
  std::byte* base_ = nullptr;
};

}  // namespace perfring::kernel

#endif  // HARNESS_KERNEL_RING_MEMORY_H_
