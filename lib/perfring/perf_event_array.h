#ifndef PERFRING_PERF_EVENT_ARRAY_H_
#define PERFRING_PERF_EVENT_ARRAY_H_
#include <version>
#ifndef __cpp_lib_expected
#error "perfring needs C++23: compile with -std=c++23 (g++ 12, clang 19 or later)"
#else

#include <concepts>
#include <cstdint>
#include <expected>
#include <string>
#include <utility>

#include "perfring/export.h"
#include "perfring/os/fd.h"
#include "perfring/perf_buffer.h"
#include "perfring/perf_buffer_error.h"
#include "perfring/perf_event_array_error.h"

namespace perfring {

// A PerfBuffer for an entry of a PerfEventArray. Mirrors aya's PerfEventArrayBuffer. It does what a
// PerfBuffer does, but does not convert to one: a PerfBuffer moved out of it might lose the map.
//
// There are two ways to open one, from two versions of aya (lib/UPSTREAM.md):
//   - PerfEventArray::open(index, page_count), of aya 0.14.0: the event is on CPU `index` and is
//     that entry from the start, and the buffer holds the map.
//   - open(cpu, page_count) below, of aya since its pull request 1740: the buffer is in no map and
//     holds none. PerfEventArray::set() puts its fd() into an entry; unset() empties that entry.
//
// Threads, errors: like PerfBuffer's.
// Lifetime: the kernel empties the entries that were set through an open file of the map when that
// file is last closed (kernel/bpf/arraymap.c: perf_event_fd_array_release() at v6.18). A buffer
// that holds the map keeps that file open, and so its entry. A buffer that holds no map does not:
// after the array, and the caller's descriptor from which it was created, are closed, outputs fail
// with -ENOENT and the buffer receives nothing more.
// Destroying a buffer of either kind stops its event but leaves the entry, as aya does: outputs
// then fail with -EOPNOTSUPP, and the kernel keeps the event until the entry is replaced or
// emptied. To avoid that, unset() the entry first.
class PerfEventArrayBuffer : private PerfBuffer {
 public:
  // Opens the event on `cpu` with its ring, like PerfBuffer::open, in no map. The size is
  // mandatory, as in aya; `{}` asks for the default.
  // Errors: those of PerfBuffer::open, and therefore never IOError.
  static std::expected<PerfEventArrayBuffer, PerfBufferError> open(
      std::uint32_t cpu, const PerfBufferOptions& options) {
    auto buffer = PerfBuffer::open(cpu, options);
    if (!buffer) return std::unexpected(std::move(buffer).error());
    return PerfEventArrayBuffer{*std::move(buffer), os::SharedFd{}};
  }
  // The same with this many data pages: like PerfBuffer::open.
  template <std::integral N>
    requires(!std::same_as<N, bool>)
  static std::expected<PerfEventArrayBuffer, PerfBufferError> open(std::uint32_t cpu,
                                                                   N page_count) {
    return open(cpu, PerfBufferOptions{.page_count = internal::page_count(page_count)});
  }
  static void open(std::uint32_t cpu, internal::BoolAsPageCount) = delete;

  using PerfBuffer::fd;
  using PerfBuffer::fold;
  using PerfBuffer::for_each;
  using PerfBuffer::for_each_while;
  using PerfBuffer::readable;
  using PerfBuffer::try_fold;

 private:
  friend class PerfEventArray;
  PerfEventArrayBuffer(PerfBuffer buffer, os::SharedFd map) noexcept
      : PerfBuffer{std::move(buffer)}, map_{std::move(map)} {}

  os::SharedFd map_;  // none if the buffer was opened by itself
};

// A map of type BPF_MAP_TYPE_PERF_EVENT_ARRAY, which BPF programs name when they call
// bpf_perf_event_output(). Entry i is for output from CPU i. Mirrors aya's PerfEventArray.
//
// Lifetime: move-only. A moved-from array has no map: fd() is -1, and open, set, unset and pin fail
// with EBADF. Self-assignment changes nothing, also for a PerfEventArrayBuffer.
// Threads: several may call open, set, unset and pin; each buffer belongs to one at a time.
// Errors: nothing throws except std::bad_alloc; a failed call leaves nothing open.
// Kernel: kernel/bpf/arraymap.c and kernel/bpf/inode.c at v6.18; aya/src/maps/perf.
class PERFRING_EXPORT PerfEventArray {
 public:
  PerfEventArray(PerfEventArray&&) noexcept = default;
  PerfEventArray& operator=(PerfEventArray&&) noexcept = default;

  // Opens an array over an open map, by a second descriptor of the same open file: the caller keeps
  // `map_fd`.
  // Errors: SyscallError (EBADF if it is not a descriptor, EBADFD if it was opened with O_PATH,
  // EINVAL if it is not a map), InvalidMapType. The kernel's answer for another BPF object (a
  // program, BTF, a link) has another layout; that object is refused as a map of the type that the
  // answer seems to name.
  static std::expected<PerfEventArray, PerfEventArrayError> from_fd(int map_fd);
  // Opens an array over a map pinned at `path` on a bpffs. This is another open file of the same
  // map.
  // Errors: SyscallError (ENOENT, EACCES for a path that is on no bpffs; EFAULT for a null
  // pointer), InvalidMapType.
  static std::expected<PerfEventArray, PerfEventArrayError> from_pin(const char* path);

  // Opens a buffer on CPU `index` and makes it entry `index` of the map, replacing the old entry.
  // `{}` and `{64}` are options, too.
  // Errors: those of PerfBuffer::open; IOError (E2BIG for an index beyond the map's entries, which
  // leaves the map unchanged).
  std::expected<PerfEventArrayBuffer, PerfEventArrayError> open(
      std::uint32_t index, const PerfBufferOptions& options = {});
  // The same with this many data pages: like PerfBuffer::open.
  template <std::integral N>
    requires(!std::same_as<N, bool>)
  std::expected<PerfEventArrayBuffer, PerfEventArrayError> open(std::uint32_t index, N page_count) {
    return open(index, PerfBufferOptions{.page_count = internal::page_count(page_count)});
  }
  void open(std::uint32_t index, internal::BoolAsPageCount) = delete;

  // Makes the perf event `event_fd` entry `index`, replacing the old entry. The entry keeps the
  // event, even after its descriptor is closed, until unset(), until another event takes the index,
  // or until the map's open file is closed (see PerfEventArrayBuffer). The kernel outputs only to
  // an event of the CPU on which the BPF program runs: with BPF_F_CURRENT_CPU, `index` must be the
  // event's CPU, or every output fails with -EOPNOTSUPP.
  // Errors: OutOfBounds, before any system call; SyscallError (EBADF if `event_fd` is not an open
  // perf event; EOPNOTSUPP if the event has attr.inherit; EPERM for a map opened read-only).
  [[nodiscard]] std::expected<void, PerfEventArrayError> set(std::uint32_t index, int event_fd);
  // Deleted for any type but int: C++ would convert a CPU to a descriptor, and so accept the two
  // arguments in either order.
  template <class T>
    requires(!std::same_as<T, int>)
  void set(std::uint32_t index, const T& event_fd) = delete;

  // Empties entry `index`, whoever filled it. Outputs that begin later fail with -ENOENT. An output
  // that is under way still goes to the ring, so drain that ring once more.
  // Errors: OutOfBounds, before any system call; SyscallError (ENOENT if it is empty already; EPERM
  // for a map opened read-only).
  [[nodiscard]] std::expected<void, PerfEventArrayError> unset(std::uint32_t index);

  // Gives the map a name on a bpffs, by which it outlives this process. Its entries do not: see
  // PerfEventArrayBuffer.
  // Errors: SyscallError (EEXIST, ENOENT; EPERM for a path that is on no bpffs; EFAULT for a null
  // pointer).
  std::expected<void, PerfEventArrayError> pin(const char* path) const;

  // The map's descriptor, owned by this object; -1 if moved from.
  int fd() const noexcept { return map_.get(); }

 private:
  PerfEventArray(os::Fd map, std::uint32_t max_entries)
      : map_{std::move(map)}, max_entries_{max_entries} {}

  // `object` is the caller's name of the map, for errors.
  PERFRING_HIDDEN static std::expected<PerfEventArray, PerfEventArrayError> over(
      os::Fd map, std::string object);

  // Checks that there is a map and that it has such an entry. `call` is the call that the error
  // names.
  PERFRING_HIDDEN std::expected<void, PerfEventArrayError> check_entry(const char* call,
                                                                       std::uint32_t index) const;

  os::SharedFd map_;  // none if moved from
  std::uint32_t max_entries_;
};

}  // namespace perfring

#endif
#endif  // PERFRING_PERF_EVENT_ARRAY_H_
