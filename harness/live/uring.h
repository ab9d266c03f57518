#ifndef HARNESS_LIVE_URING_H_
#define HARNESS_LIVE_URING_H_

#include <linux/io_uring.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include "perfring/os/fd.h"

namespace perfring::live {

// A small io_uring: polls of descriptors, one after the other, and their completions.
// Threads: one. Errors: only open() reports why it failed.
class Uring {
 public:
  struct Completion {
    int result;  // the events, or a negative errno
    bool more;   // the poll stays armed
  };

  // Returns nullopt, with errno set, if the kernel does not allow io_uring.
  static std::optional<Uring> open() {
    io_uring_params params{};
    os::Fd fd{static_cast<int>(::syscall(SYS_io_uring_setup, 8, &params))};
    if (fd.get() < 0) return std::nullopt;
    return Uring{std::move(fd), params};
  }

  // Submits IORING_OP_POLL_ADD with these flags (IORING_POLL_ADD_MULTI ...), for POLLIN.
  void poll(int fd, std::uint32_t flags = 0) {
    io_uring_sqe& entry = entries_[0];
    entry = {};
    entry.opcode = IORING_OP_POLL_ADD;
    entry.fd = fd;
    entry.len = flags;
    entry.poll32_events =
        std::endian::native == std::endian::little ? POLLIN : std::uint32_t{POLLIN} << 16;
    array_[*tail_ & mask_] = 0;
    __atomic_store_n(tail_, *tail_ + 1, __ATOMIC_RELEASE);
    enter(1);
  }

  // Returns the completions since the last call. Waits up to 10 seconds for `least` of them.
  std::vector<Completion> completions(std::size_t least = 0) {
    std::vector<Completion> all;
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds{10};
    do {
      enter(0);
      for (; *done_head_ != __atomic_load_n(done_tail_, __ATOMIC_ACQUIRE); ++*done_head_) {
        const io_uring_cqe& each = done_[*done_head_ & done_mask_];
        all.push_back({each.res, (each.flags & IORING_CQE_F_MORE) != 0});
      }
    } while (all.size() < least && std::chrono::steady_clock::now() < end);
    return all;
  }

 private:
  Uring(os::Fd fd, const io_uring_params& params) : fd_{std::move(fd)} {
    const auto map = [&](std::size_t size, std::uint64_t offset) {
      void* at = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd_.get(),
                        static_cast<off_t>(offset));
      if (at == MAP_FAILED) throw std::system_error(errno, std::generic_category(), "io_uring");
      return static_cast<std::byte*>(at);
    };
    const auto word = [](std::byte* at) { return reinterpret_cast<std::uint32_t*>(at); };
    std::byte* const submission =
        map(params.sq_off.array + params.sq_entries * sizeof(std::uint32_t), IORING_OFF_SQ_RING);
    tail_ = word(submission + params.sq_off.tail);
    mask_ = *word(submission + params.sq_off.ring_mask);
    array_ = word(submission + params.sq_off.array);
    entries_ = reinterpret_cast<io_uring_sqe*>(
        map(params.sq_entries * sizeof(io_uring_sqe), IORING_OFF_SQES));
    std::byte* const done =
        map(params.cq_off.cqes + params.cq_entries * sizeof(io_uring_cqe), IORING_OFF_CQ_RING);
    done_head_ = word(done + params.cq_off.head);
    done_tail_ = word(done + params.cq_off.tail);
    done_mask_ = *word(done + params.cq_off.ring_mask);
    done_ = reinterpret_cast<io_uring_cqe*>(done + params.cq_off.cqes);
  }

  void enter(unsigned submitted) {
    ::syscall(SYS_io_uring_enter, fd_.get(), submitted, 0, IORING_ENTER_GETEVENTS, nullptr, 0);
  }

  // The mappings stay until the process ends: each test has only a few.
  os::Fd fd_;
  std::uint32_t* tail_;
  std::uint32_t mask_;
  std::uint32_t* array_;
  io_uring_sqe* entries_;
  std::uint32_t* done_head_;
  std::uint32_t* done_tail_;
  std::uint32_t done_mask_;
  io_uring_cqe* done_;
};

}  // namespace perfring::live

#endif  // HARNESS_LIVE_URING_H_
