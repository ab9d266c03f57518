#ifndef HARNESS_LIVE_EMITTER_H_
#define HARNESS_LIVE_EMITTER_H_

#include <linux/bpf.h>
#include <sched.h>

#include <cstddef>
#include <cstdint>
#include <expected>
#include <span>
#include <string>
#include <utility>

#include "harness/live/bpf/emit.h"
#include "perfring/os/fd.h"
#include "perfring/os/mapping.h"

namespace perfring::live {

// Binds its thread to the CPU while it lives, so that the thread is the current task when a BPF
// program runs there. The constructor throws std::system_error.
class OnCpu {
 public:
  explicit OnCpu(std::uint32_t cpu);
  ~OnCpu();
  OnCpu(const OnCpu&) = delete;
  OnCpu& operator=(const OnCpu&) = delete;

 private:
  cpu_set_t before_;
};

// Whether a wakeup may follow the output that causes it (K58).
#if defined(__powerpc64__)
inline constexpr bool kWakeupsComeLater = true;
#else
inline constexpr bool kWakeupsComeLater = false;
#endif

// Returns once the wakeups of this thread's outputs so far have been made. The thread must be bound
// to the CPU that it outputs on.
void await_wakeups();

// The counts of emit_many().
struct Emitted {
  std::uint64_t accepted;  // the helper returned 0
  std::uint64_t refused;   // it returned an error
  int last_rc;             // its last result
};

// The live kernel as the producer: BPF programs that call bpf_perf_event_output() on request, on a
// map of their own of type BPF_MAP_TYPE_PERF_EVENT_ARRAY.
//
// Errors: create() returns a text for people (why_no_live_kernel() says what a machine may lack).
// The other functions throw std::system_error if the kernel does not run the program.
// Threads: one at a time.
class Emitter {
 public:
  static constexpr std::uint64_t kCurrentCpu = BPF_F_CURRENT_CPU;
  static constexpr std::size_t kPayloadMax = EMISSION_PAYLOAD_MAX;

  // Creates a map of `max_entries`; 0: one for each possible CPU.
  static std::expected<Emitter, std::string> create(std::uint32_t max_entries = 0);

  // The bytes to send: a payload of size n is the first n.
  std::span<std::byte> payload();

  // Calls the helper once, on `cpu`, with a payload of `size` bytes and the map's entry `index`.
  // Returns the helper's result: 0, or a negative errno.
  int emit(std::uint32_t cpu, std::size_t size, std::uint64_t index = kCurrentCpu);

  // Calls the helper `count` times in one run of the program, whatever it returns. Attempts have
  // consecutive numbers from `first` on. The number becomes the first 8 bytes of the payload (and
  // of payload()).
  Emitted emit_many(std::uint32_t cpu, std::size_t size, std::uint32_t count,
                    std::uint64_t first = 0, std::uint64_t index = kCurrentCpu);

  // The map's only descriptor, unless the caller has made others. The programs hold the map, but
  // not its open file (K45).
  int map_fd() const { return map_.get(); }
  void close_map() { map_ = os::Fd{}; }

 private:
  Emitter(os::Fd emit, os::Fd emit_many, os::Fd map, os::Mapping emission)
      : emit_{std::move(emit)},
        emit_many_{std::move(emit_many)},
        map_{std::move(map)},
        emission_{std::move(emission)} {}

  emission& shared();

  os::Fd emit_;
  os::Fd emit_many_;
  os::Fd map_;
  os::Mapping emission_;
};

}  // namespace perfring::live

#endif  // HARNESS_LIVE_EMITTER_H_
