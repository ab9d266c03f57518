#ifndef HARNESS_CONFORMANCE_SUPERVISOR_WAIT_CALLS_H_
#define HARNESS_CONFORMANCE_SUPERVISOR_WAIT_CALLS_H_

#include <linux/seccomp.h>
#include <poll.h>

#include <chrono>
#include <cstdint>
#include <set>
#include <vector>

#include "harness/conformance/supervisor/backend.h"
#include "harness/conformance/supervisor/notified_calls.h"
#include "harness/conformance/supervisor/play_listener.h"
#include "harness/conformance/supervisor/program_event.h"
#include "harness/conformance/supervisor/traced_process.h"
#include "harness/conformance/supervisor/tracee.h"
#include "perfring/os/fd.h"

namespace perfring::conformance {

// The calls by which a program waits for its rings: epoll, poll(2) and select(2).
class WaitCalls {
 public:
  WaitCalls(const Backend& backend, ProgramEvents& events, PlayListener& listener,
            TracedProcess& process)
      : backend_{backend}, events_{events}, listener_{listener}, process_{process} {}

  CallAnswer epoll_ctl(const Tracee& caller, const seccomp_data& call);
  // The kernel carries it out: eventfds wake the program.
  CallAnswer epoll_wait(const seccomp_data& call);
  // poll(2) and select(2), in each of their forms.
  CallAnswer poll(const Tracee& caller, const seccomp_notif& call);

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
    Tracee caller;
    seccomp_notif call;
    std::vector<pollfd> fds{};
    std::vector<ProgramEvent*> rings{};  // of each descriptor; nullptr if it has none
    std::vector<os::Fd> others{};        // copies of the descriptors that are not rings
    Clock::time_point deadline{};
  };

  static bool read_descriptors(Poll& poll);
  static bool update_events(Poll& poll);
  static std::int64_t write_reported(const Poll& poll);
  static void write_time_left(const Poll& poll, Clock::time_point now);
  static std::chrono::nanoseconds requested_timeout(const Tracee& caller, const seccomp_data& call);
  bool is_known(int epoll) const;

  const Backend& backend_;
  ProgramEvents& events_;
  PlayListener& listener_;
  TracedProcess& process_;
  std::vector<int> epolls_;  // epoll instances that contain a ring
  std::vector<Poll> polls_;
  // Rings that have their wakeup back: a signal interrupted the poll that was to report it.
  std::set<const ProgramEvent*> unanswered_;
};

}  // namespace perfring::conformance

#endif  // HARNESS_CONFORMANCE_SUPERVISOR_WAIT_CALLS_H_
