#ifndef PERFRING_PERF_EVENT_ARRAY_H_
#define PERFRING_PERF_EVENT_ARRAY_H_

#include <cstddef>
#include <cstdint>
#include <expected>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "perfring/export.h"
#include "perfring/os/fd.h"
#include "perfring/perf_buffer.h"
#include "perfring/perf_event_array_error.h"

namespace perfring {

// A PerfBuffer that an entry of a PerfEventArray names. Mirrors aya's PerfEventArrayBuffer. It
// does what a PerfBuffer does but is none: one that was moved out of it would lose the map.
//
// Lifetime: keeps the array's open map file alive, since the kernel empties the entries that were
// put through a file when that file is last closed (kernel/bpf/arraymap.c:
// perf_event_fd_array_release() at v6.18). Destroying it stops the event but leaves the entry,
// as aya does: outputs to it then fail with -EOPNOTSUPP.
class PerfEventArrayBuffer : private PerfBuffer {
 public:
  using PerfBuffer::fd;
  using PerfBuffer::fold;
  using PerfBuffer::for_each;
  using PerfBuffer::readable;
  using PerfBuffer::try_fold;

 private:
  friend class PerfEventArray;
  PerfEventArrayBuffer(PerfBuffer buffer, std::shared_ptr<const os::Fd> map) noexcept
      : PerfBuffer{std::move(buffer)}, map_{std::move(map)} {}

  std::shared_ptr<const os::Fd> map_;
};

// A map of type BPF_MAP_TYPE_PERF_EVENT_ARRAY: the place that BPF programs name when they call
// bpf_perf_event_output(). Entry i is for output from CPU i. Mirrors aya's PerfEventArray.
//
// Lifetime: move-only. Moved from, it has no map: fd() is -1, open and pin fail with EBADF.
// Threads: open and pin may be called by several; each buffer belongs to one at a time.
class PERFRING_EXPORT PerfEventArray {
 public:
  PerfEventArray(PerfEventArray&&) noexcept = default;
  PerfEventArray& operator=(PerfEventArray&&) noexcept = default;

  // Over an open map, by a second descriptor of the same open file: the caller keeps `map_fd`.
  static std::expected<PerfEventArray, PerfEventArrayError> from_fd(int map_fd);
  // Over a map pinned at `path` on a bpffs. This is another open file of the same map.
  static std::expected<PerfEventArray, PerfEventArrayError> from_pin(
      const std::filesystem::path& path);

  // Opens a buffer on CPU `index` and makes it entry `index` of the map, in place of what was
  // there. page_count as PerfBuffer::open; 2 if none is given.
  std::expected<PerfEventArrayBuffer, PerfEventArrayError> open(
      std::uint32_t index, std::optional<std::size_t> page_count = {});
  std::expected<PerfEventArrayBuffer, PerfEventArrayError> open(std::uint32_t index,
                                                                const PerfBufferOptions& options);

  // Gives the map a name on a bpffs, by which it outlives this process. Its entries do not: see
  // PerfEventArrayBuffer.
  std::expected<void, PerfEventArrayError> pin(const std::filesystem::path& path) const;

  // The map's descriptor, owned by this object.
  int fd() const noexcept { return map_ ? map_->get() : -1; }

 private:
  explicit PerfEventArray(os::Fd map) : map_{std::make_shared<const os::Fd>(std::move(map))} {}

  // `object` is what the caller knows the map by.
  PERFRING_HIDDEN static std::expected<PerfEventArray, PerfEventArrayError> over(
      os::Fd map, std::string object);

  std::shared_ptr<const os::Fd> map_;  // none if moved from
};

}  // namespace perfring

#endif  // PERFRING_PERF_EVENT_ARRAY_H_
