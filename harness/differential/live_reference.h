#ifndef HARNESS_DIFFERENTIAL_LIVE_REFERENCE_H_
#define HARNESS_DIFFERENTIAL_LIVE_REFERENCE_H_

#include <linux/perf_event.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "harness/differential/reference_kernel.h"
#include "harness/kernel/perf_event.h"
#include "harness/live/emitter.h"
#include "harness/rig/simulated_ring.h"
#include "harness/script/script.h"
#include "perfring/os/fd.h"

namespace perfring::differential {

// Returns the size of the running kernel's unsigned long, which may be longer than this process's.
kernel::Word live_word();

// Returns the reason why the live kernel cannot have such a ring, or cannot run a script that
// begins with `so_far`. Returns nullopt if it can.
std::optional<std::string> why_not_live(const script::Settings& settings);
std::optional<std::string> why_not_live(const script::Script& so_far);

// Loads the BPF programs that need a live kernel, with a map of two entries. The error names the
// call that the system refused.
std::expected<live::Emitter, std::string> make_emitter();

// The host's kernel, set up as a script requires: events opened on the CPU to which the thread is
// bound, in the emitter's map.
//
// Throws std::invalid_argument for settings that a live kernel cannot have, std::system_error if
// the kernel refuses a call that the script needs, and std::runtime_error if TIME is not between
// clock readings before and after the output.
class LiveReference final : public ReferenceKernel {
 public:
  LiveReference(live::Emitter& emitter, const script::Settings& settings, int cpu);
  ~LiveReference() override;
  LiveReference(const LiveReference&) = delete;
  LiveReference& operator=(const LiveReference&) = delete;

  const rig::Identity& identity() const override { return identity_; }
  unsigned page_shift() const override;
  ReferenceStep run(const script::Step& step) override;
  std::optional<std::string> ring_difference(std::span<const std::byte> ring) override;

  std::span<const std::byte> ring() const { return ring_; }

 private:
  void map_ring();
  void open_event(std::uint32_t index);
  std::int64_t act(const script::Step& step);
  std::int64_t output(const script::Step& step);
  std::int64_t epoll_wait();
  std::int64_t readiness(std::uint32_t events);
  os::Fd open_on_cpu();
  std::uint64_t lost_of(std::size_t index) const;
  std::uint64_t time_at(std::uint64_t position) const;
  perf_event_mmap_page& page() const;

  live::Emitter& emitter_;
  script::Settings settings_;
  rig::Identity identity_;
  std::vector<os::Fd> events_;
  os::Fd epoll_;
  std::span<std::byte> mapping_;
  std::span<const std::byte> ring_;
  std::uint64_t steps_ = 0;
  std::optional<bool> reports_rdnorm_;
  bool counts_lost_ = true;  // the kernel has PERF_FORMAT_LOST (since Linux 6.0)
  std::array<std::uint64_t, 2> refused_{};
  std::uint64_t unreported_ = 0;  // outputs refused since the last LOST
  std::uint64_t time_ = 0;        // TIME of the sample that the step wrote
};

}  // namespace perfring::differential

#endif  // HARNESS_DIFFERENTIAL_LIVE_REFERENCE_H_
