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
#include "perfring/perf_event_array_error.h"

namespace perfring {

// A PerfBuffer that an entry of a PerfEventArray names. Mirrors aya's PerfEventArrayBuffer. It does
// what a PerfBuffer does, but does not convert to one: moved out of it, that would lose the map.
//
// Threads, errors: as PerfBuffer's.
// Lifetime: keeps the array's open map file alive, since the kernel empties the entries that were
// put through a file when that file is last closed (kernel/bpf/arraymap.c:
// perf_event_fd_array_release() at v6.18). Destroying it stops the event but leaves the entry,
// as aya does: outputs to it then fail with -EOPNOTSUPP.
class PerfEventArrayBuffer : private PerfBuffer {
 public:
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

  os::SharedFd map_;
};

// A map of type BPF_MAP_TYPE_PERF_EVENT_ARRAY: the place that BPF programs name when they call
// bpf_perf_event_output(). Entry i is for output from CPU i. Mirrors aya's PerfEventArray.
//
// Lifetime: move-only. Moved from, it has no map: fd() is -1, open and pin fail with EBADF.
// Assigned to itself, it is as it was; so is a PerfEventArrayBuffer. Threads: open and pin may be
// called by several; each buffer belongs to one at a time. Errors: none is thrown but
// std::bad_alloc; what fails leaves nothing open. Kernel: kernel/bpf/arraymap.c and
// kernel/bpf/inode.c at v6.18; aya/src/maps/perf.
class PERFRING_EXPORT PerfEventArray {
 public:
  PerfEventArray(PerfEventArray&&) noexcept = default;
  PerfEventArray& operator=(PerfEventArray&&) noexcept = default;

  // Over an open map, by a second descriptor of the same open file: the caller keeps `map_fd`.
  // Errors: SyscallError (EBADF if it is not a descriptor, EBADFD if it was opened with O_PATH,
  // EINVAL if it is not a map), InvalidMapType. Another BPF object (a program, BTF, a link)
  // is refused as a map of the type that the kernel's answer, which has another form, seems to
  // name.
  static std::expected<PerfEventArray, PerfEventArrayError> from_fd(int map_fd);
  // Over a map pinned at `path` on a bpffs. This is another open file of the same map.
  // Errors: SyscallError (ENOENT, EACCES for a path that is on no bpffs; EFAULT for a null
  // pointer), InvalidMapType.
  static std::expected<PerfEventArray, PerfEventArrayError> from_pin(const char* path);

  // Opens a buffer on CPU `index` and makes it entry `index` of the map, in place of what was
  // there. `{}` and `{64}` are options, too.
  // Errors: those of PerfBuffer::open; IOError (E2BIG for an index beyond the map's entries, which
  // leaves the map as it was).
  std::expected<PerfEventArrayBuffer, PerfEventArrayError> open(
      std::uint32_t index, const PerfBufferOptions& options = {});
  // The same with this many data pages: as PerfBuffer::open.
  template <std::integral N>
    requires(!std::same_as<N, bool>)
  std::expected<PerfEventArrayBuffer, PerfEventArrayError> open(std::uint32_t index, N page_count) {
    return open(index, PerfBufferOptions{.page_count = internal::page_count(page_count)});
  }
  void open(std::uint32_t index, internal::BoolAsPageCount) = delete;

  // Gives the map a name on a bpffs, by which it outlives this process. Its entries do not: see
  // PerfEventArrayBuffer.
  // Errors: SyscallError (EEXIST, ENOENT; EPERM for a path that is on no bpffs; EFAULT for a null
  // pointer).
  std::expected<void, PerfEventArrayError> pin(const char* path) const;

  // The map's descriptor, owned by this object; -1 if moved from.
  int fd() const noexcept { return map_.get(); }

 private:
  explicit PerfEventArray(os::Fd map) : map_{std::move(map)} {}

  // `object` is what the caller knows the map by.
  PERFRING_HIDDEN static std::expected<PerfEventArray, PerfEventArrayError> over(
      os::Fd map, std::string object);

  os::SharedFd map_;  // none if moved from
};

}  // namespace perfring

#endif
#endif  // PERFRING_PERF_EVENT_ARRAY_H_
