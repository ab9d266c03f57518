#include "harness/conformance/supervisor/program_calls.h"

namespace perfring::conformance {

CallAnswer ProgramCalls::answer(const Tracee& caller, const seccomp_notif& call) {
  switch (notified_call(call.data)) {
    case NotifiedCall::PerfEventOpen:
      return perf.perf_event_open(caller, call.data);
    case NotifiedCall::Ioctl:
      return perf.ioctl(caller, call.data);
    case NotifiedCall::Bpf:
      return map.bpf(caller, call.data);
    case NotifiedCall::Open:
      return cpu_lists.open(caller, call.data.args[0]);
    case NotifiedCall::Openat:
      return cpu_lists.open(caller, call.data.args[1]);
    case NotifiedCall::EpollCtl:
      return wait.epoll_ctl(caller, call.data);
    case NotifiedCall::EpollWait:
      return wait.epoll_wait(call.data);
    case NotifiedCall::Poll:
    case NotifiedCall::Ppoll:
    case NotifiedCall::PpollTime64:
    case NotifiedCall::Select:
    case NotifiedCall::Pselect:
    case NotifiedCall::PselectTime64:
      return wait.poll(caller, call);
    case NotifiedCall::None:
      break;
  }
  return {.by_kernel = true};
}

}  // namespace perfring::conformance
