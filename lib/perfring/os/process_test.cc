#include "perfring/os/process.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/bpf_common.h>
#include <linux/filter.h>
#include <linux/prctl.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <fstream>
#include <functional>
#include <initializer_list>
#include <ios>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace perfring::os {
namespace {

// Polls `holds` until it is true, for 30 s at most, which is long enough for any machine.
bool comes_true(const std::function<bool()>& holds) {
  for (int tries = 0; tries < 3000; ++tries) {
    if (holds()) return true;
    ::usleep(10'000);
  }
  return false;
}

int pause_forever() {
  while (true) ::pause();
}

Process paused() {
  auto forked = Process::fork(pause_forever);
  EXPECT_TRUE(forked);
  return *std::move(forked);
}

// Runs `body` in a process of its own and returns its exit code.
int exit_code_of(const std::function<int()>& body) {
  auto forked = Process::fork(body);
  if (!forked) return -1;
  const auto status = forked->wait();
  return status && WIFEXITED(*status) ? WEXITSTATUS(*status) : -1;
}

// A pipe by which a child tells its parent a number.
struct Pipe {
  Pipe() { EXPECT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0); }
  ~Pipe() {
    for (const int end : ends) ::close(end);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  int send_id(pid_t id) const { return ::write(ends[1], &id, sizeof id) == sizeof id ? 0 : 1; }
  pid_t receive_id() const {
    pid_t id = 0;
    return ::read(ends[0], &id, sizeof id) == sizeof id ? id : 0;
  }
  std::array<int, 2> ends{-1, -1};
};

class Handled {
 public:
  Handled(int number, void (*handler)(int)) : number_{number} {
    struct sigaction action{};
    action.sa_handler = handler;  // without SA_RESTART
    ::sigaction(number, &action, &before_);
  }
  ~Handled() { ::sigaction(number_, &before_, nullptr); }
  Handled(const Handled&) = delete;
  Handled& operator=(const Handled&) = delete;

 private:
  int number_;
  struct sigaction before_{};
};

volatile std::sig_atomic_t alarms = 0;

// Raises a signal with a handler every 5 ms.
class Alarms {
 public:
  Alarms() : handled_{SIGALRM, [](int) { alarms = alarms + 1; }} { set(5000); }
  ~Alarms() { set(0); }
  Alarms(const Alarms&) = delete;
  Alarms& operator=(const Alarms&) = delete;

 private:
  static void set(long microseconds) {
    const itimerval timer{{0, microseconds}, {0, microseconds}};
    ::setitimer(ITIMER_REAL, &timer, nullptr);
  }
  Handled handled_;
};

TEST(ProcessRefTest, AnIdThatIsNotPositiveIsNoProcess) {
  for (const pid_t id : {0, -1, -2, -::getpgrp()}) {
    EXPECT_EQ(ProcessRef::open(id).error(), std::errc::no_such_process) << id;
  }
}

TEST(ProcessRefTest, WithoutAProcessNothingIsSignalled) {
  const ProcessRef none;
  EXPECT_EQ(none.signal(SIGKILL).error(), std::errc::no_such_process);
  EXPECT_EQ(none.signal_group(SIGKILL).error(), std::errc::no_such_process);
  EXPECT_TRUE(none.has_ended());
}

TEST(ProcessRefTest, ItsProcessIsSignalledUntilItIsReaped) {
  Process child = paused();
  const auto ref = ProcessRef::open(child.id());
  ASSERT_TRUE(ref) << ref.error().message();
  EXPECT_FALSE(ref->has_ended());
  EXPECT_TRUE(ref->signal(SIGTERM));
  EXPECT_TRUE(comes_true([&] { return ref->has_ended(); }));
  EXPECT_TRUE(ref->signal(0)) << "it was not reaped yet";
  EXPECT_EQ(child.wait(), SIGTERM);
  EXPECT_TRUE(ref->has_ended());
  EXPECT_EQ(ref->signal(0).error(), std::errc::no_such_process);
}

// Checks a Process in any state without a child.
void expect_that_nobody_is_signalled(Process& none) {
  EXPECT_EQ(none.signal(SIGKILL).error(), std::errc::no_such_process);
  EXPECT_EQ(none.signal_group(SIGKILL).error(), std::errc::no_such_process);
  EXPECT_TRUE(none.has_ended());
}

TEST(ProcessTest, WithoutAChildNothingIsSignalled) {
  Process none;
  EXPECT_EQ(none.id(), 0);
  expect_that_nobody_is_signalled(none);
  EXPECT_EQ(none.wait().error(), std::errc::no_such_process);
  EXPECT_FALSE(none.poll());
  Process first = paused();
  const Process second{std::move(first)};
  expect_that_nobody_is_signalled(first);  // NOLINT: moved from, on purpose
  EXPECT_EQ(first.id(), 0);
  EXPECT_FALSE(second.has_ended());
}

// The limit on processes applies to a user, and root has none. Runs in namespaces of its own, so
// that a faulty kill hits nobody but the bystander.
int bystander_of_failed_forks() {
  if (::unshare(CLONE_NEWPID | (::getuid() == 0 ? 0 : CLONE_NEWUSER)) != 0) return 77;
  return exit_code_of([] {
    if (::setuid(65534) != 0 && ::getuid() == 0) return 77;
    auto bystander = Process::fork(pause_forever);
    if (!bystander) return 77;
    const rlimit none{0, 0};
    if (::setrlimit(RLIMIT_NPROC, &none) != 0) return 77;
    auto refused = Process::fork([] { return 0; });
    if (refused && refused->id() > 0) return 77;
    if (refused || Command::fork({"true"}, [] { return 0; })) return 1;
    refused = {};
    ::usleep(100'000);  // a bystander that was killed has ended by then
    return bystander->has_ended() ? 2 : 0;
  });
}

TEST(ProcessTest, AFailedForkKillsNothing) {
  const int code = exit_code_of(bystander_of_failed_forks);
  if (code == 77) GTEST_SKIP() << "no namespaces here, or no limit of processes";
  EXPECT_EQ(code, 0) << (code == 2 ? "a bystander was killed" : "no error");
}

TEST(ProcessTest, ItsStatusIsTheSameEachTime) {
  auto exits = Process::fork([] { return 7; });
  ASSERT_TRUE(exits);
  for (int times = 0; times < 2; ++times) EXPECT_EQ(exits->wait(), 7 << 8);
  EXPECT_EQ(exits->poll()->value(), 7 << 8);
  Process dies = paused();
  EXPECT_FALSE(dies.poll());
  EXPECT_FALSE(dies.has_ended());
  EXPECT_TRUE(dies.signal(SIGTERM));
  EXPECT_TRUE(comes_true([&] { return dies.has_ended(); }));
  EXPECT_TRUE(comes_true([&] { return dies.poll().has_value(); }));
  EXPECT_EQ(dies.wait(), SIGTERM);
  expect_that_nobody_is_signalled(dies);
}

TEST(ProcessTest, AWaitContinuesAfterASignal) {
  auto child = Process::fork([] { return ::usleep(200'000), 7; });
  ASSERT_TRUE(child);
  alarms = 0;
  const Alarms while_it_waits;
  EXPECT_EQ(child->wait(), 7 << 8);
  EXPECT_GT(alarms, 0);
}

// With SIGCHLD ignored, and with somebody else who waits for any child. The kernel remembers the
// end since Linux 6.15; 0, "ended well", was once the answer.
TEST(ProcessTest, AnExitReapedElsewhereIsNotInvented) {
  const Handled ignored{SIGCHLD, SIG_IGN};
  auto child = Process::fork([] { return ::usleep(50'000), 7; });
  ASSERT_TRUE(child);
  const auto status = child->wait();
  EXPECT_EQ(status.value_or(7 << 8), 7 << 8);
  EXPECT_TRUE(status || status.error() == std::errc::no_child_process);
  expect_that_nobody_is_signalled(*child);
}

TEST(ProcessTest, AChildThatAnotherWaitTookIsNotSignalled) {
  Process child = paused();
  ASSERT_TRUE(child.signal(SIGTERM));
  const auto taken = wait_any(0);
  ASSERT_TRUE(taken && *taken);
  EXPECT_EQ((*taken)->id, child.id());
  EXPECT_EQ(child.signal(SIGKILL).error(), std::errc::no_such_process);
  const auto status = child.wait();
  EXPECT_EQ(status.value_or(SIGTERM), SIGTERM);
}

TEST(ProcessTest, DestructionKillsChildWithoutZombie) {
  pid_t id = 0;
  {
    const Process child = paused();
    id = child.id();
    EXPECT_TRUE(ProcessRef::open(id));
  }
  EXPECT_EQ(ProcessRef::open(id).error(), std::errc::no_such_process);
  EXPECT_EQ(wait_any(WNOHANG).error(), std::errc::no_child_process) << "no zombie";
}

// A child of root with a parent that is no longer root, like an adapter's `sudo`.
TEST(ProcessTest, OneThatMayNotBeKilledIsNotWaitedFor) {
  const int code = exit_code_of([] {
    const Pipe pipe;
    auto child = Process::fork([&] {
      // PR_SET_PDEATHSIG needs the parent's permission, too.
      ::close(pipe.ends[1]);
      return pipe.receive_id() == 0 ? 0 : 1;
    });
    if (!child) return 1;
    // As root of a user namespace, one cannot become another user.
    if (::getuid() != 0 || ::setuid(65534) != 0) return 77;
    if (child->signal(SIGKILL).error() != std::errc::operation_not_permitted) return 2;
    ::alarm(20);  // in case it hangs
    const Process destroyed{*std::move(child)};
    return 7;
  });
  if (code == 77) GTEST_SKIP() << "only root's child cannot be killed by its parent";
  EXPECT_EQ(code, 7);
}

TEST(ProcessTest, OneThatMayRunOnIsLeftAlone) {
  std::optional<ProcessRef> ref;
  pid_t id = 0;
  {
    Process child = paused();
    child.keep_running();
    id = child.id();
    ref = *ProcessRef::open(id);
  }
  EXPECT_FALSE(ref->has_ended());
  EXPECT_TRUE(Process::adopt(id)) << "and here it ends";
}

TEST(ProcessTest, AForkedCopyLeavesTheChildToItsOwner) {
  Process child = paused();
  EXPECT_EQ(exit_code_of([&] {
              if (child.signal(SIGKILL) || child.signal_group(SIGKILL) || child.poll()) return 1;
              if (child.wait().error() != std::errc::no_child_process) return 2;
              const Process destroyed{std::move(child)};
              return 7;
            }),
            7);
  EXPECT_FALSE(child.has_ended());
}

// Forks a leader and a member of its group, which sends its id.
Process leader_of_a_group(const Pipe& pipe) {
  auto leader = Process::fork([&] {
    ::setsid();
    auto member = Process::fork(pause_forever);
    if (!member || pipe.send_id(member->id()) != 0) return 1;
    return pause_forever();
  });
  EXPECT_TRUE(leader);
  return *std::move(leader);
}

void expect_that_its_group_ends() {
  const Pipe pipe;
  Process leader = leader_of_a_group(pipe);
  const auto member = ProcessRef::open(pipe.receive_id());
  ASSERT_TRUE(member);
  ASSERT_TRUE(leader.signal_group(SIGKILL));
  EXPECT_TRUE(comes_true([&] { return member->has_ended(); }));
  EXPECT_EQ(leader.wait(), SIGKILL);
}

TEST(ProcessTest, ItsGroupIsSignalled) {
  expect_that_its_group_ends();
}

// The leader's id may be another group's by then. With a pidfd, and Linux 6.9, there is no
// confusion.
TEST(ProcessTest, AReapedLeadersGroupIsItsOwnOrNobodys) {
  const Pipe pipe;
  Process leader = leader_of_a_group(pipe);
  const auto member = ProcessRef::open(pipe.receive_id());
  ASSERT_TRUE(member && leader.signal(SIGKILL) && leader.wait());
  const auto signalled = leader.signal_group(SIGKILL);
  if (!signalled) {
    EXPECT_EQ(signalled.error(), std::errc::no_such_process);
    EXPECT_FALSE(member->has_ended());
    EXPECT_TRUE(member->signal(SIGKILL));
  }
  EXPECT_TRUE(comes_true([&] { return member->has_ended(); }));
}

TEST(ProcessTest, OnlyAChildIsAdopted) {
  for (const pid_t id : {0, -1, 1, ::getpid(), ::getppid()}) {
    EXPECT_EQ(Process::adopt(id).error(), std::errc::no_child_process) << id;
  }
}

int adopt_an_orphan() {
  if (::prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0) return 77;
  const Pipe pipe;
  auto parent = Process::fork([&] {
    auto orphan = Process::fork(pause_forever);
    if (orphan) orphan->keep_running();
    return orphan ? pipe.send_id(orphan->id()) : 1;
  });
  if (!parent || !parent->wait()) return 1;
  auto orphan = Process::adopt(pipe.receive_id());
  if (!orphan || !orphan->signal(SIGTERM)) return 2;
  return orphan->wait() == SIGTERM ? 7 : 3;
}

TEST(ProcessTest, AnOrphanIsAdoptedByItsReaper) {
  const int code = exit_code_of(adopt_an_orphan);
  if (code == 77) GTEST_SKIP() << "no reaper of descendants here (qemu-user has none)";
  EXPECT_EQ(code, 7);
}

// Makes system calls of this process fail from now on, as on an old kernel.
bool refuse(std::initializer_list<sock_filter> rules) {
  std::vector<sock_filter> program{BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr))};
  program.insert(program.end(), rules);
  program.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
  const sock_fprog loaded{static_cast<unsigned short>(program.size()), program.data()};
  ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  return ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &loaded, 0, 0) == 0;
}

// Like kernels before 5.3.
bool refuse_pidfds() {
  return refuse({BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_pidfd_open, 0, 1),
                 BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS)}) &&
         !ProcessRef::open(::getpid());
}

// Like kernels before 6.9, which have pidfd_send_signal(2) without flags.
bool refuse_signals_to_groups() {
  constexpr unsigned kLow = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? 0 : 4;
  return refuse({BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_pidfd_send_signal, 0, 3),
                 BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args[3]) + kLow),
                 BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 1, 0),
                 BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EINVAL)});
}

bool its_group_ends() {
  const Pipe pipe;
  Process leader = leader_of_a_group(pipe);
  pipe.receive_id();
  return leader.signal_group(SIGKILL) && leader.wait() == SIGKILL;
}

int by_their_ids() {
  if (!refuse_pidfds()) return 77;
  Process child = paused();
  if (child.has_ended() || child.poll()) return 1;
  if (!child.signal(SIGTERM) || child.wait() != SIGTERM || child.poll()->value() != SIGTERM)
    return 2;
  if (child.signal(SIGTERM) || child.signal_group(SIGTERM)) return 3;
  if (!its_group_ends()) return 4;
  const Handled ignored{SIGCHLD, SIG_IGN};
  auto gone = Process::fork([] { return 7; });
  if (!gone || gone->wait().error() != std::errc::no_child_process) return 5;
  const Process destroyed = paused();
  return 7;
}

TEST(ProcessTest, WithoutPidfdsTheirIdsServe) {
  const int code = exit_code_of(by_their_ids);
  if (code == 77) GTEST_SKIP() << "no seccomp here";
  EXPECT_EQ(code, 7);
}

TEST(ProcessTest, WithoutSignalsToGroupsTheirIdsServe) {
  const int code = exit_code_of([] {
    if (!refuse_signals_to_groups()) return 77;
    return its_group_ends() ? 7 : 1;
  });
  if (code == 77) GTEST_SKIP() << "no seccomp here";
  EXPECT_EQ(code, 7);
}

// Starts a process that is not a child of this one, with an id that a child had. It lives as long
// as the pipe has a writer.
bool stranger_gets(pid_t id, Pipe& lives) {
  const Pipe pipe;
  auto parent = Process::fork([&] {
    std::ofstream{"/proc/sys/kernel/ns_last_pid"} << id - 1;
    auto stranger = Process::fork([] { return ::setsid(), pause_forever(); });
    if (!stranger) return 1;
    stranger->keep_running();
    return pipe.send_id(stranger->id());
  });
  if (!parent || parent->wait() != 0 || pipe.receive_id() != id) return false;
  ::close(std::exchange(lives.ends[1], -1));
  return true;
}

int signal_a_number_that_was_reused(bool has_pidfds) {
  if (!has_pidfds && !refuse_pidfds()) return 77;
  Process child = paused();
  // Somebody else's wait reaps the child, unknown to the object.
  static_cast<void>(child.signal(SIGKILL));
  static_cast<void>(wait_any(0));
  Pipe lives;
  if (!stranger_gets(child.id(), lives)) return 77;
  if (child.signal(SIGKILL) || child.signal_group(SIGKILL)) return 1;
  {
    const Process destroyed{std::move(child)};
  }
  ::usleep(50'000);  // a stranger that was killed has ended by then
  pollfd writers{lives.ends[0], POLLIN, 0};
  return ::poll(&writers, 1, 0) == 0 ? 7 : 2;
}

// Runs `body` in a namespace of its own, where root may choose the next id. The first process there
// adopts the stranger.
int in_a_namespace(const std::function<int()>& body) {
  if (::getuid() != 0 || ::unshare(CLONE_NEWPID) != 0) return 77;
  return exit_code_of([&] { return exit_code_of(body); });
}

TEST(ProcessTest, ANumberThatWasReusedIsNotSignalled) {
  for (const bool has_pidfds : {true, false}) {
    const int code = exit_code_of([&] {
      return in_a_namespace([&] { return signal_a_number_that_was_reused(has_pidfds); });
    });
    if (code == 77) GTEST_SKIP() << "only root chooses the next process's number";
    EXPECT_EQ(code, 7) << (has_pidfds ? "with" : "without") << " pidfds";
  }
}

int none() {
  return 0;
}

TEST(CommandTest, WaitsForItsStart) {
  auto command = Command::fork({"true"}, none);
  ASSERT_TRUE(command);
  EXPECT_TRUE(command->is_waiting());
  ::usleep(50'000);
  EXPECT_FALSE(command->process().has_ended());
  EXPECT_TRUE(command->start());
  EXPECT_FALSE(command->is_waiting());
  EXPECT_EQ(command->process().wait(), 0);
  EXPECT_TRUE(command->start()) << "a second start does nothing";
}

TEST(CommandTest, ACommandThatCannotRunReportsWhy) {
  const auto started = [](const std::vector<std::string>& words, int (*prepare)()) {
    auto command = Command::fork(words, prepare);
    if (!command) return command.error();
    const auto error = command->start().error();
    EXPECT_FALSE(ProcessRef::open(command->process().id())) << "it was reaped";
    return error;
  };
  EXPECT_EQ(started({}, none), std::errc::no_such_file_or_directory);
  EXPECT_EQ(started({"/none/x"}, none), std::errc::no_such_file_or_directory);
  EXPECT_EQ(started({"/etc/passwd"}, none), std::errc::permission_denied);
  // Often enough for each order of the refusal and the start, which the child never reads.
  for (int times = 0; times < 50; ++times) {
    ASSERT_EQ(started({"true"}, [] { return ENOSPC; }), std::errc::no_space_on_device);
  }
  EXPECT_EQ(wait_any(WNOHANG).error(), std::errc::no_child_process) << "each was reaped";
}

TEST(CommandTest, OneThatEndedBeforeItsStartIsAnError) {
  auto command = Command::fork({"true"}, none);
  ASSERT_TRUE(command && command->process().signal(SIGKILL));
  EXPECT_TRUE(comes_true([&] { return command->process().has_ended(); }));
  EXPECT_EQ(command->start().error(), std::errc::no_such_process);
  EXPECT_EQ(command->process().wait(), SIGKILL);
}

TEST(CommandTest, AStartContinuesAfterASignal) {
  auto command = Command::fork({"/none/x"}, [] { return ::usleep(200'000), 0; });
  ASSERT_TRUE(command);
  alarms = 0;
  const Alarms while_it_starts;
  EXPECT_EQ(command->start().error(), std::errc::no_such_file_or_directory);
  EXPECT_GT(alarms, 0);
}

TEST(CommandTest, OneThatWaitsEndsWithItsParent) {
  const Pipe pipe;
  EXPECT_EQ(exit_code_of([&] {
              auto command = Command::fork({"true"}, none);
              if (!command) return 1;
              command->process().keep_running();
              if (pipe.send_id(command->process().id()) != 0) return 1;
              ::_exit(0);  // as in a crash: nothing is destroyed
            }),
            0);
  const pid_t id = pipe.receive_id();
  ASSERT_GT(id, 0);
  EXPECT_TRUE(comes_true([&] {
    const auto ref = ProcessRef::open(id);
    return !ref || ref->has_ended();
  }));
}

TEST(CommandTest, AForkedCopyCannotStartIt) {
  auto command = Command::fork({"true"}, none);
  ASSERT_TRUE(command);
  EXPECT_EQ(
      exit_code_of([&] { return command->start().error() == std::errc::no_child_process ? 7 : 1; }),
      7);
  EXPECT_TRUE(command->start());
  EXPECT_EQ(command->process().wait(), 0);
}

// Returns the signals with which a command starts: the masks of those that it blocks, ignores and
// catches. Nobody can change libc's own two, 32 and 33.
std::string signals_of_a_command() {
  std::array<char, 32> path{"/tmp/perfring_signals_XXXXXX"};
  const Fd file{::mkstemp(path.data())};
  auto command = Command::fork({"cat", "/proc/self/status"},
                               [&] { return ::dup2(file.get(), STDOUT_FILENO) < 0 ? errno : 0; });
  if (!command || !command->start() || command->process().wait() != 0) return "it did not run";
  std::ifstream lines{path.data()};
  ::unlink(path.data());
  std::ostringstream all;
  constexpr unsigned long long kLibcs = 3ULL << 31;
  for (std::string word; lines >> word;) {
    if (word != "SigBlk:" && word != "SigIgn:" && word != "SigCgt:") continue;
    unsigned long long mask = 0;
    lines >> std::hex >> mask >> std::dec;
    all << std::hex << (mask & ~kLibcs) << " ";
  }
  return std::move(all).str();
}

void ignore(std::initializer_list<int> numbers) {
  for (const int number : numbers) ::signal(number, SIG_IGN);
}

TEST(CommandTest, ItStartsWithTheSignalsOfAShell) {
  EXPECT_EQ(exit_code_of([&] {
              for (const int number : {SIGHUP, SIGINT, SIGQUIT}) ::signal(number, SIG_DFL);
              ignore({SIGPIPE, SIGXFSZ, SIGTSTP, SIGRTMAX});
              ::signal(SIGUSR1, [](int) {});
              sigset_t blocked;
              ::sigfillset(&blocked);
              ::sigprocmask(SIG_SETMASK, &blocked, nullptr);
              if (signals_of_a_command() != "0 0 0 ") return 1;
              sigset_t still;
              ::sigprocmask(SIG_SETMASK, nullptr, &still);
              if (::sigismember(&still, SIGUSR1) != 1) return 2;
              ignore({SIGHUP, SIGINT, SIGQUIT});  // nohup, and & in a script
              return signals_of_a_command() == "0 7 0 " ? 7 : 3;
            }),
            7);
}

TEST(WaitTest, AThreadWithoutAnIdIsNobodys) {
  EXPECT_EQ(wait_tracee(0).error(), std::errc::no_such_process);
  EXPECT_EQ(wait_tracee(-1).error(), std::errc::no_such_process);
  EXPECT_EQ(signal_tracee(-1, 1, SIGKILL).error(), std::errc::no_such_process);
  EXPECT_EQ(signal_tracee(1, -1, SIGKILL).error(), std::errc::no_such_process);
}

TEST(WaitTest, NobodyHasChangedYet) {
  const Process child = paused();
  const auto any = wait_any(WNOHANG);
  ASSERT_TRUE(any);
  EXPECT_FALSE(*any);
}

}  // namespace
}  // namespace perfring::os
