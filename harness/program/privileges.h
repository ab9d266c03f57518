#ifndef HARNESS_PROGRAM_PRIVILEGES_H_
#define HARNESS_PROGRAM_PRIVILEGES_H_

namespace perfring {

// Whether the calling thread has the capability (CAP_BPF, ...) in its own user namespace; true if
// the kernel does not tell.
bool has_capability(unsigned capability);

// Whether the calling thread is root of the machine, with CAP_SYS_ADMIN. Root of a container is
// not, as a rule: the container has fewer capabilities, or a user namespace, in which root may
// neither observe the kernel nor become another user.
bool is_root();

// Whether a seccomp filter, such as a container's, refuses perf_event_open(2) whatever its
// arguments are. If so, errno is EPERM.
bool is_perf_event_open_filtered();

}  // namespace perfring

#endif  // HARNESS_PROGRAM_PRIVILEGES_H_
