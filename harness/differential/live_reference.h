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

#include "harness/differential/reference.h"
#include "harness/live/emitter.h"
#include "perfring/os/fd.h"

namespace perfring::differential {

// The size of the running kernel's unsigned long, which may be longer than a process's.
kernel::Word live_word();

// Why the live kernel cannot have a ring like this, or cannot run a script that begins so.
std::optional<std::string> why_not_live(const script::Settings& settings);
std::optional<std::string> why_not_live(const script::Script& so_far);

// The BPF programs that need a live kernel; their map has two entries. The error says what the
// system refused.
std::expected<live::Emitter, std::string> make_emitter();

// This machine's kernel, set up as a script wants it: events of its own on the CPU that the thread
// is bound to, in the emitter's map.
//
// Throws std::invalid_argument for settings that are not a live kernel's, std::system_error where
// the kernel refuses what the script needs, and std::runtime_error if TIME is not between the
// readings of the clock before and after the output.
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
  std::int64_t readiness(std::uint32_t events) const;
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
  bool counts_lost_ = true;  // PERF_FORMAT_LOST is of Linux 6.0
  std::array<std::uint64_t, 2> refused_{};
  std::uint64_t unreported_ = 0;  // outputs refused since the last LOST
  std::uint64_t time_ = 0;        // of the sample that the step wrote
};

}  // namespace perfring::differential

#endif  // HARNESS_DIFFERENTIAL_LIVE_REFERENCE_H_
