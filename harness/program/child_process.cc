#include "harness/program/child_process.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <boost/process/args.hpp>
#include <boost/process/child.hpp>
#include <boost/process/error.hpp>
#include <boost/process/exe.hpp>
#include <boost/process/extend.hpp>
#include <boost/process/posix.hpp>
#include <cerrno>
#include <csignal>
#include <exception>
#include <fstream>
#include <string>
#include <system_error>

#include "perfring/os/fd.h"

namespace perfring {
namespace {

namespace process = boost::process;

void check(long rc, const char* what) {
  if (rc < 0) throw std::system_error{errno, std::generic_category(), what};
}

// A file in memory, in place of a pipe: neither side waits for the other.
os::Fd memory_file(const std::string& contents = {}) {
  os::Fd file{::memfd_create("child", MFD_CLOEXEC)};
  check(file.get(), "memfd_create");
  check(::pwrite(file.get(), contents.data(), contents.size(), 0), "writing a child's input");
  // The child and what it starts would overwrite each other's output: write() locks the offset of a
  // file that was opened (FMODE_ATOMIC_POS, fs/open.c: do_dentry_open() at v6.18), not a memfd's.
  check(::fcntl(file.get(), F_SETFL, O_APPEND), "fcntl(F_SETFL, O_APPEND)");
  return file;
}

// pread() leaves the offset alone, which the child shares.
std::string contents(const os::Fd& file) {
  std::string text;
  std::array<char, 4096> piece;
  for (;;) {
    const ssize_t length =
        ::pread(file.get(), piece.data(), piece.size(), static_cast<off_t>(text.size()));
    check(length, "reading a child's output");
    if (length == 0) return text;
    text.append(piece.data(), static_cast<std::size_t>(length));
  }
}

}  // namespace

struct ChildProcess::State {
  os::Fd in, out, err;
  process::child child;
};

ChildProcess::ChildProcess(const std::vector<std::string>& command, const std::string& in,
                           const std::function<void()>& before_exec)
    : state_{std::make_unique<State>(memory_file(in), memory_file(), memory_file())} {
  using process::posix::fd;
  std::error_code error;
  state_->child =
      process::child{process::exe = command.front(),
                     process::args = std::vector<std::string>{command.begin() + 1, command.end()},
                     fd.bind(STDIN_FILENO, in.empty() ? STDIN_FILENO : state_->in.get()),
                     fd.bind(STDOUT_FILENO, state_->out.get()),
                     fd.bind(STDERR_FILENO, state_->err.get()),
                     process::extend::on_exec_setup = [&](auto&) { before_exec(); },
                     error};
  if (error) throw std::system_error{error, command.front()};
}

// boost::process::child kills in its destructor, but leaves a zombie.
ChildProcess::~ChildProcess() {
  wait([] { return true; });
}

pid_t ChildProcess::id() const {
  return state_->child.id();
}

std::string ChildProcess::errors() const {
  return contents(state_->err);
}

ForkedChild::ForkedChild(const std::function<int()>& body) {
  const pid_t parent = ::getpid();
  id_ = ::fork();
  if (id_ < 0) throw std::system_error{errno, std::generic_category(), "fork"};
  if (id_ != 0) return;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(1);  // it ended before
  try {
    ::_exit(body());
  } catch (const std::exception&) {
    ::_exit(1);
  }
}

ForkedChild::~ForkedChild() {
  if (is_waited_for_) return;
  kill();
  try {
    wait();
  } catch (const std::system_error&) {  // something else is wrong already
  }
}

void ForkedChild::kill() const {
  if (!is_waited_for_) ::kill(id_, SIGKILL);
}

int ForkedChild::wait() {
  int status = 0;
  pid_t waited = 0;
  do {
    waited = ::waitpid(id_, &status, 0);
  } while (waited < 0 && errno == EINTR);
  if (waited != id_) throw std::system_error{errno, std::generic_category(), "waitpid"};
  is_waited_for_ = true;
  return status;
}

bool has_ended(pid_t process) {
  for (int tries = 0; tries < 1000; ++tries) {
    std::ifstream status{"/proc/" + std::to_string(process) + "/stat"};
    std::string number, name, state;
    if (!(status >> number >> name >> state) || state == "Z" || state == "X") return true;
    ::usleep(10'000);
  }
  return false;
}

// Not by child::wait_for(): in Boost 1.74 it forks a timer and waits for SIGCHLD of any child
// (boost/process/detail/posix/wait_for_exit.hpp).
Ended ChildProcess::wait(const std::function<bool()>& give_up) {
  process::child& child = state_->child;
  while (give_up && child.running()) {
    if (give_up()) ::kill(child.id(), SIGKILL);
    ::usleep(2000);
  }
  child.wait();
  const int status = child.native_exit_code();
  return {WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status), contents(state_->out),
          errors()};
}

}  // namespace perfring
