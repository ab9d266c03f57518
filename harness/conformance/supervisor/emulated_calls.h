#ifndef HARNESS_CONFORMANCE_SUPERVISOR_EMULATED_CALLS_H_
#define HARNESS_CONFORMANCE_SUPERVISOR_EMULATED_CALLS_H_

// Answers a traced program's system calls on perf events and on maps of perf events in the kernel's
// place. If the machine's own kernel is the producer, only watches them. Leaves all other calls to
// the kernel.

#include <linux/bpf.h>
#include <linux/perf_event.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <time.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "harness/conformance/cases/case_producer.h"
#include "harness/conformance/cases/cases.h"
#include "harness/conformance/supervisor/traced_process.h"
#include "harness/kernel/eventpoll.h"
#include "harness/live/emitter.h"
#include "harness/rig/simulated_ring.h"
#include "harness/script/script.h"
#include "perfring/os/fd.h"

namespace perfring::conformance {

inline pid_t thread_of(const seccomp_notif& call) {
  return static_cast<pid_t>(call.pid);
}

// Returns why the machine's own kernel cannot play this case in this process, or nullopt.
std::optional<std::string> why_not_live(const Case& of);

// A perf event of the program, and its ring once it is mapped.
struct ProgramEvent {
  ProgramEvent();
  ~ProgramEvent();
  ProgramEvent(const ProgramEvent&) = delete;
  ProgramEvent& operator=(const ProgramEvent&) = delete;

  void make_ring(const script::Settings& settings);
  // Plays on an event of the machine's kernel: moves its data_head and data_tail to `start`.
  void make_live(live::Emitter& emitter);
  std::uint64_t pages() const { return memory.size() / 4096 - 1; }  // of data, once it is mapped
  // Whether the program called read(2) on the descriptor. Its count is not emulated.
  bool was_read() const;
  perf_event_mmap_page& page() const {
    return *reinterpret_cast<perf_event_mmap_page*>(memory.data());
  }
  void set_enabled(bool enabled);
  // Returns true if a wakeup was announced since the last call.
  bool take_flag() const;
  // Restores the wakeup that take_flag() took, because it reached nobody.
  void put_flag_back() const;

  perf_event_attr attr{};
  std::size_t cpu = 0;
  os::Fd file;           // the program has a copy of this descriptor
  std::uint64_t id = 0;  // the event's id in the machine's kernel
  os::Fd wake;           // an eventfd, which stands in for the event in epoll instances (P16)
  std::span<std::byte> memory{};               // control page and data pages
  std::unique_ptr<rig::SimulatedRing> ring{};  // either this or `live`
  std::unique_ptr<LiveRing> live{};
  std::unique_ptr<kernel::EventfdWaiter> waiter{};
  std::vector<std::uint64_t> bases{};  // addresses at which the program has mapped the ring
  std::uint64_t start = 0;             // data_head and data_tail before the case
  bool of_32_bits = false;
  int epoll = -1;  // the epoll instance that contains it
};

// Callbacks for the decisions that depend on the case.
class PlayListener {
 public:
  virtual ~PlayListener() = default;
  virtual const Case& played_case() const = 0;
  // `event` has its memory, and needs a ring.
  virtual void on_map(ProgramEvent& event) = 0;
  virtual void on_map_refused(const std::string& why) = 0;
  virtual void on_enabled(ProgramEvent& event) = 0;
  virtual void on_map_update(std::uint64_t key, ProgramEvent& event) = 0;
  virtual void on_map_delete(std::uint64_t key) = 0;
  virtual void on_wait() = 0;
  virtual void on_not_emulated(const std::string& what) = 0;
};

class EmulatedCalls {
 public:
  // With an emitter, events and maps are the machine kernel's, and the program gets the emitter's
  // map. Without one, the map is still the kernel's if the program loads BPF programs that use it.
  EmulatedCalls(TracedProcess& process, PlayListener& listener, live::Emitter* emitter,
                bool loads_programs);

  CallAnswer answer(const seccomp_notif& call);
  MapAnswer map(pid_t thread, const MapCall& call);
  void mapped(std::uint64_t base) { mapping_->bases.push_back(base); }
  // Whether a thread of the program is in a call that waits for its rings.
  bool is_waited_for() const;
  // Ends the polls that have a readable ring, or have timed out.
  void end_polls();
  // Hands the polls with a signal mask to the kernel, without their rings. The program is about to
  // get SIGINT, and may have it unblocked only in such a call.
  void end_masked_polls();

 private:
  using Clock = std::chrono::steady_clock;
  // A poll(2) or select(2) that waits until its deadline.
  struct Poll {
    seccomp_notif call;
    std::vector<pollfd> fds{};
    std::vector<ProgramEvent*> rings{};  // of each descriptor; nullptr if it has none
    std::vector<os::Fd> others{};        // copies of the descriptors that are not rings
    Clock::time_point deadline{};
  };

  CallAnswer open(const seccomp_notif& call);
  CallAnswer open_file(const seccomp_notif& call, std::uint64_t path);
  CallAnswer bpf(const seccomp_notif& call);
  CallAnswer update_map(pid_t thread, const bpf_attr& attr);
  bool make_memory(ProgramEvent& event, std::uint64_t length);
  CallAnswer map_info(const seccomp_notif& call);
  CallAnswer control(const seccomp_notif& call);
  CallAnswer id_of(const seccomp_notif& call, const ProgramEvent& event);
  CallAnswer add_to_epoll(const seccomp_notif& call);
  CallAnswer poll(const seccomp_notif& call);
  bool read_descriptors(Poll& poll) const;
  std::int64_t write_reported(const Poll& poll) const;
  std::chrono::nanoseconds requested_timeout(const seccomp_notif& call) const;
  void write_time_left(const Poll& poll, Clock::time_point now) const;
  static bool update_events(Poll& poll);
  ProgramEvent* event_of(pid_t thread, int fd);
  bool is_map(pid_t thread, int fd);

  TracedProcess& process_;
  PlayListener& listener_;
  live::Emitter* const emitter_;
  std::vector<std::unique_ptr<ProgramEvent>> events_;
  ProgramEvent* mapping_ = nullptr;  // its ring is being mapped
  os::Fd map_;
  std::uint32_t map_id_ = 0;  // if the map is the kernel's, else 0
  os::Fd cpu_list_;           // the list that was opened last
  std::vector<int> epolls_;   // epoll instances that contain a ring
  std::vector<Poll> polls_;
  // Rings that have their wakeup back: a signal interrupted the poll that was to report it.
  std::set<const ProgramEvent*> unanswered_;
};

}  // namespace perfring::conformance

#endif  // HARNESS_CONFORMANCE_SUPERVISOR_EMULATED_CALLS_H_
