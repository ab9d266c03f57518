#include "harness/program/child_process.h"

#include <fcntl.h>
#include <linux/prctl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <exception>
#include <fstream>
#include <string>
#include <system_error>
#include <utility>

#include "harness/program/checked.h"

namespace perfring {
namespace {

// Returns a file in memory. It is used in place of a pipe, so that neither side waits for the
// other.
os::Fd memory_file(const std::string& contents = {}) {
  os::Fd file{checked(::memfd_create("child", MFD_CLOEXEC), "memfd_create")};
  for (std::size_t written = 0; written != contents.size();) {
    const ssize_t more = ::pwrite(file.get(), contents.data() + written, contents.size() - written,
                                  static_cast<off_t>(written));
    written += static_cast<std::size_t>(checked(more, "writing a child's input"));
  }
  // Otherwise the child and its own children would overwrite each other's output: write() locks the
  // offset of a file that was opened (FMODE_ATOMIC_POS, fs/open.c: do_dentry_open() at v6.18), but
  // not a memfd's.
  checked(::fcntl(file.get(), F_SETFL, O_APPEND), "fcntl(F_SETFL, O_APPEND)");
  return file;
}

// Reads by pread(), which does not move the offset: the child shares it.
std::string contents(const os::Fd& file) {
  std::string text;
  std::array<char, 4096> piece;
  for (;;) {
    const ssize_t length =
        ::pread(file.get(), piece.data(), piece.size(), static_cast<off_t>(text.size()));
    checked(length, "reading a child's output");
    if (length == 0) return text;
    text.append(piece.data(), static_cast<std::size_t>(length));
  }
}

}  // namespace

ChildProcess::ChildProcess(const std::vector<std::string>& command, const std::string& in,
                           const std::function<void()>& before_exec)
    : in_{memory_file(in)}, out_{memory_file()}, err_{memory_file()} {
  const auto prepare = [&] {
    const bool has_files = (in.empty() || ::dup2(in_.get(), STDIN_FILENO) >= 0) &&
                           ::dup2(out_.get(), STDOUT_FILENO) >= 0 &&
                           ::dup2(err_.get(), STDERR_FILENO) >= 0;
    if (!has_files) return errno;
    before_exec();
    return 0;
  };
  auto forked = os::Command::fork(command, prepare);
  if (!forked) throw std::system_error{forked.error(), command.front()};
  command_ = *std::move(forked);
  if (const auto started = command_.start(); !started) {
    throw std::system_error{started.error(), command.front()};
  }
}

std::string ChildProcess::errors() const {
  return contents(err_);
}

void ChildProcess::wait_for_end(const std::function<bool()>& give_up) const {
  while (!command_.process().has_ended()) {
    if (give_up && give_up()) signal(SIGKILL);
    ::usleep(2000);
  }
}

ProcessResult ChildProcess::wait(const std::function<bool()>& give_up) {
  if (give_up) wait_for_end(give_up);
  const auto ended = command_.process().wait();
  if (!ended) throw std::system_error{ended.error(), "waiting for a child"};
  return {WIFSIGNALED(*ended) ? 128 + WTERMSIG(*ended) : WEXITSTATUS(*ended), contents(out_),
          errors()};
}

ForkedChild::ForkedChild(const std::function<int()>& body) {
  const pid_t parent = ::getpid();
  auto forked = os::Process::fork([&] {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) return 1;  // the parent has already ended
    try {
      return body();
    } catch (const std::exception&) {
      return 1;
    }
  });
  if (!forked) throw std::system_error{forked.error(), "fork"};
  process_ = *std::move(forked);
}

void ForkedChild::kill() const {
  static_cast<void>(process_.signal(SIGKILL));
}

int ForkedChild::wait() {
  const auto ended = process_.wait();
  if (!ended) throw std::system_error{ended.error(), "waiting for a child"};
  return *ended;
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

}  // namespace perfring
