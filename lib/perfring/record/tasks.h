#ifndef PERFRING_RECORD_TASKS_H_
#define PERFRING_RECORD_TASKS_H_
#if __cplusplus < 202002L
#error "perfring/record needs C++20: compile with -std=c++20 or later"
#else

// Records of tasks: Comm, Fork, Exit, Namespaces, Cgroup, Switch, SwitchCpuWide. Fields are named
// as in the uapi's comments. decode() constructs these views.
// T and R: measured facts, in the project's harness/RECORD_FACTS.md.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include <linux/perf_event.h>

#include "perfring/record/bytes.h"
#include "perfring/record/view.h"

namespace perfring::record {

class Comm : public SideBand {
 public:
  std::uint32_t pid() const noexcept { return get<std::uint32_t>(8); }
  std::uint32_t tid() const noexcept { return get<std::uint32_t>(12); }
  std::string_view comm() const noexcept { return string(comm_); }
  // From misc: changed by execve(), not by prctl() or a write to /proc.
  bool is_exec() const noexcept { return (header().misc & PERF_RECORD_MISC_COMM_EXEC) != 0; }

  using SideBand::SideBand;
  const char* parse() noexcept {
    internal::Walk walk = this->walk();
    walk.pass(4, "pid");
    walk.pass(4, "tid");
    comm_ = walk.string("comm");
    return end_of(walk);
  }

 private:
  internal::Place comm_;
};

// The fields that Fork and Exit share. An exit's ppid and ptid are those of the real parent at that
// time (T9).
class Task : public SideBand {
 public:
  std::uint32_t pid() const noexcept { return get<std::uint32_t>(8); }
  std::uint32_t ppid() const noexcept { return get<std::uint32_t>(12); }
  std::uint32_t tid() const noexcept { return get<std::uint32_t>(16); }
  std::uint32_t ptid() const noexcept { return get<std::uint32_t>(20); }
  std::uint64_t time() const noexcept { return get<std::uint64_t>(24); }

  const char* parse() noexcept {
    internal::Walk walk = this->walk();
    walk.pass(4, "pid");
    walk.pass(4, "ppid");
    walk.pass(4, "tid");
    walk.pass(4, "ptid");
    walk.pass(8, "time");
    return end_of(walk);
  }

  using SideBand::SideBand;
};

class Fork : public Task {
 public:
  using Task::Task;
};

class Exit : public Task {
 public:
  using Task::Task;
};

// A namespace's file below /proc/PID/ns.
struct NamespaceLink {
  std::uint64_t dev;
  std::uint64_t inode;
};

class Namespaces : public SideBand {
 public:
  std::uint32_t pid() const noexcept { return get<std::uint32_t>(8); }
  std::uint32_t tid() const noexcept { return get<std::uint32_t>(12); }
  // nr_namespaces. The order is the kernel's: net, uts, ipc, pid, user, mnt, cgroup.
  std::size_t size() const noexcept { return links_.count; }
  // Ends the program if i is not below size() (bytes.h).
  NamespaceLink operator[](std::size_t i) const noexcept {
    internal::expect_index(i, size());
    const std::size_t at = links_.at + i * 16;
    return {get<std::uint64_t>(at), get<std::uint64_t>(at + 8)};
  }

  using SideBand::SideBand;
  const char* parse() noexcept {
    internal::Walk walk = this->walk();
    walk.pass(4, "pid");
    walk.pass(4, "tid");
    links_ = walk.units(walk.length<std::uint64_t>("nr_namespaces"), 16, "namespaces");
    return end_of(walk);
  }

 private:
  internal::Place links_;
};

class Cgroup : public SideBand {
 public:
  std::uint64_t id() const noexcept { return get<std::uint64_t>(8); }
  std::string_view path() const noexcept { return string(path_); }

  using SideBand::SideBand;
  const char* parse() noexcept {
    internal::Walk walk = this->walk();
    walk.pass(8, "id");
    path_ = walk.string("path");
    return end_of(walk);
  }

 private:
  internal::Place path_;
};

// A context switch of the observed task. Without sample_id the record is only a header (R6).
class Switch : public SideBand {
 public:
  // From misc: the task leaves the CPU; and it was preempted, so it could have continued.
  bool is_out() const noexcept { return (header().misc & PERF_RECORD_MISC_SWITCH_OUT) != 0; }
  bool is_preempted() const noexcept {
    return is_out() && (header().misc & PERF_RECORD_MISC_SWITCH_OUT_PREEMPT) != 0;
  }

  using SideBand::SideBand;
  const char* parse() noexcept { return end_of(walk()); }
};

// A context switch on the observed CPU. The other task is the next one on it if is_out(), otherwise
// the previous one.
class SwitchCpuWide : public Switch {
 public:
  std::uint32_t next_prev_pid() const noexcept { return get<std::uint32_t>(8); }
  std::uint32_t next_prev_tid() const noexcept { return get<std::uint32_t>(12); }

  using Switch::Switch;
  const char* parse() noexcept {
    internal::Walk walk = this->walk();
    walk.pass(4, "next_prev_pid");
    walk.pass(4, "next_prev_tid");
    return end_of(walk);
  }
};

}  // namespace perfring::record

#endif
#endif  // PERFRING_RECORD_TASKS_H_
