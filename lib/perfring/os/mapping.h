#ifndef PERFRING_OS_MAPPING_H_
#define PERFRING_OS_MAPPING_H_
#include <version>
#ifndef __cpp_lib_expected
#error "perfring needs C++23: compile with -std=c++23 (g++ 12, clang 19 or later)"
#else

#include <sys/mman.h>

#include <cerrno>
#include <cstddef>
#include <expected>
#include <span>
#include <system_error>
#include <utility>

namespace perfring::os {

// A shared mapping of a file, which this object owns and unmaps. Moved from, it holds none (an
// empty span).
// Lifetime: bytes() are valid until the object is destroyed or assigned to; a move keeps them
// valid.
// Threads: one at a time. Errors: mmap(2)'s; munmap(2) of a mapping has none.
class Mapping {
 public:
  // Maps the file's first `length` bytes. Returns mmap(2)'s error if that fails.
  static std::expected<Mapping, std::error_code> map(int fd, std::size_t length) noexcept {
    return map(fd, length, PROT_READ | PROT_WRITE);
  }
  // Does the same read-only: a write to the mapping ends in SIGSEGV.
  static std::expected<Mapping, std::error_code> map_read_only(int fd,
                                                               std::size_t length) noexcept {
    return map(fd, length, PROT_READ);
  }

  Mapping(Mapping&& other) noexcept : bytes_{std::exchange(other.bytes_, {})} {}
  Mapping& operator=(Mapping&& other) noexcept {
    if (this != &other) {
      reset();
      bytes_ = std::exchange(other.bytes_, {});
    }
    return *this;
  }
  ~Mapping() { reset(); }

  std::span<std::byte> bytes() const noexcept { return bytes_; }

  // Holds nothing from now on, and leaves the memory mapped.
  void forget() noexcept { bytes_ = {}; }

 private:
  static std::expected<Mapping, std::error_code> map(int fd, std::size_t length,
                                                     int protection) noexcept {
    void* at = ::mmap(nullptr, length, protection, MAP_SHARED, fd, 0);
    if (at == MAP_FAILED) return std::unexpected(std::error_code(errno, std::generic_category()));
    return Mapping{{static_cast<std::byte*>(at), length}};
  }

  explicit Mapping(std::span<std::byte> bytes) noexcept : bytes_{bytes} {}

  void reset() noexcept {
    if (!bytes_.empty()) ::munmap(bytes_.data(), bytes_.size());
    bytes_ = {};
  }

  std::span<std::byte> bytes_;
};

}  // namespace perfring::os

#endif
#endif  // PERFRING_OS_MAPPING_H_
