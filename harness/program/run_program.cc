#include "harness/program/run_program.h"

#include <fcntl.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <exception>
#include <new>
#include <system_error>

#include <fmt/format.h>

#include "harness/program/console.h"
#include "harness/program/verdict.h"
#include "perfring/version.h"

namespace perfring {
namespace {

std::string_view name_of_program = "perfring";

std::atomic<bool> stop_requested{false};
static_assert(std::atomic<bool>::is_always_lock_free);

void on_signal(int) {
  stop_requested = true;
}

// As glibc does for set-user-id programs (csu/check_fds.c): open the wrong way round, so that
// using them is an error as before.
void occupy_standard_descriptors() {
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(fd, F_GETFD) >= 0) continue;
    const int opened = ::open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
    if (opened != fd) std::_Exit(kUsageOrEnvironment);  // there is no stderr
  }
}

// If the folder is gone, relative paths are not found, and are reported.
void enter_user_folder() {
  const char* const folder = std::getenv("BUILD_WORKING_DIRECTORY");
  if (folder != nullptr && ::chdir(folder) != 0) return;
}

int out_of_memory() {
  constexpr std::string_view kText =
      ": out of memory: give it more (ulimit -v), or ask for less (rings, pages, CPUs)\n";
  [[maybe_unused]] ssize_t written =
      ::write(STDERR_FILENO, name_of_program.data(), name_of_program.size());
  written = ::write(STDERR_FILENO, kText.data(), kText.size());
  return kUsageOrEnvironment;
}

}  // namespace

int run_program(std::string_view name, int (*body)(int, char**), int argc, char** argv) {
  name_of_program = name;
  occupy_standard_descriptors();
  ::signal(SIGPIPE, SIG_IGN);
  ::signal(SIGXFSZ, SIG_IGN);
  ::signal(SIGCHLD, SIG_DFL);
  enter_user_folder();
  try {
    try {
      return body(argc, argv);
    } catch (const std::bad_alloc&) {
      return out_of_memory();
    } catch (const std::system_error& error) {
      return fail(std::string{"the system refused: "} + error.what());
    } catch (const std::exception& error) {
      return fail(std::string{"an error of the program itself, please report it: "} + error.what());
    }
  } catch (const std::exception&) {  // no memory for that message
    return out_of_memory();
  }
}

std::string_view program_name() {
  return name_of_program;
}

std::string invocation() {
  const bool by_bazel = std::getenv("BUILD_WORKING_DIRECTORY") != nullptr;
  return by_bazel ? "bazel run --config=opt //:perfring --" : "perfring";
}

std::string replay_command(std::string_view arguments, std::string_view note) {
  const char* const known = std::getenv("PERFRING_COMMIT");
  const std::string commit = known == nullptr ? "" : fmt::format(" at {}", known);
  return fmt::format("{} {}  # perfring {}{}{}{}", invocation(), arguments, PERFRING_VERSION,
                     commit, note.empty() ? "" : ", ", note);
}

StopOnSignals::StopOnSignals() {
  stop_requested = false;
  for (const int signal : {SIGINT, SIGTERM}) {
    struct sigaction action{};
    ::sigaction(signal, nullptr, &action);
    if (action.sa_handler == SIG_IGN) continue;
    action.sa_handler = on_signal;
    action.sa_flags = SA_RESTART;
    ::sigaction(signal, &action, nullptr);
  }
}

void StopOnSignals::let_signals_end_the_program() {
  for (const int signal : {SIGINT, SIGTERM}) {
    struct sigaction action{};
    ::sigaction(signal, nullptr, &action);
    if (action.sa_handler == on_signal) ::signal(signal, SIG_DFL);
  }
}

const std::atomic<bool>& StopOnSignals::requested() const {
  return stop_requested;
}

}  // namespace perfring
