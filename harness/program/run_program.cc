#include "harness/program/run_program.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <cerrno>
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

// SIGHUP arrives several times: when the terminal ends, when the shell ends, and from the shell
// itself (drivers/tty: __tty_hangup() and disassociate_ctty() at v6.18).
std::atomic<bool> has_hung_up{false};

void on_signal(int signal) {
  if (signal == SIGHUP) has_hung_up = true;
  stop_requested = true;
}

constexpr std::array kStopping{SIGINT, SIGTERM, SIGHUP};

void write_error(std::string_view text) {
  [[maybe_unused]] ssize_t written =
      ::write(STDERR_FILENO, name_of_program.data(), name_of_program.size());
  written = ::write(STDERR_FILENO, text.data(), text.size());
}

// Opens standard descriptors that are closed, as glibc does for set-user-id programs
// (csu/check_fds.c): in the wrong mode, so that their use is still an error.
void occupy_standard_descriptors() {
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(fd, F_GETFD) >= 0 || errno != EBADF) continue;
    const int opened = ::open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
    if (opened == fd) continue;
    write_error(": fcntl reports a standard descriptor as closed, but open does not return it\n");
    std::_Exit(kUsageOrEnvironment);
  }
}

// Changes to the user's folder. If it is gone, relative paths are not found, and that is reported.
void enter_user_folder() {
  const char* const folder = std::getenv("BUILD_WORKING_DIRECTORY");
  if (folder != nullptr && ::chdir(folder) != 0) return;
}

int out_of_memory() {
  write_error(": out of memory: raise the limit (ulimit -v), or use fewer rings, pages or CPUs\n");
  return kUsageOrEnvironment;
}

// The previous handler. If memory runs out in library code that is noexcept but allocates (CLI11's
// lookup of an option, the destructor of nlohmann's JSON), no catch block is reached.
std::terminate_handler terminate_otherwise = nullptr;

void end_without_memory() {
  try {
    if (const auto current = std::current_exception()) std::rethrow_exception(current);
  } catch (const std::bad_alloc&) {
    std::_Exit(out_of_memory());
  } catch (...) {  // the previous handler reports it
  }
  terminate_otherwise();
}

}  // namespace

std::string refusal(const std::system_error& error) {
  const std::string reason = error.what();
  return reason == error.code().message() ? "a thread: " + reason : reason;
}

int run_program(std::string_view name, int (*body)(int, char**), int argc, char** argv) {
  name_of_program = name;
  occupy_standard_descriptors();
  ::signal(SIGPIPE, SIG_IGN);
  ::signal(SIGXFSZ, SIG_IGN);
  ::signal(SIGCHLD, SIG_DFL);
  enter_user_folder();
  terminate_otherwise = std::set_terminate(end_without_memory);
  try {
    try {
      return body(argc, argv);
    } catch (const std::bad_alloc&) {
      return out_of_memory();
    } catch (const std::system_error& error) {
      return fail("the system refused: " + refusal(error));
    } catch (const std::exception& error) {
      return fail(std::string{"an internal error, please report it: "} + error.what());
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
  has_hung_up = false;
  for (const int signal : kStopping) {
    struct sigaction action{};
    ::sigaction(signal, nullptr, &action);
    if (action.sa_handler == SIG_IGN) continue;
    action.sa_handler = on_signal;
    action.sa_flags = SA_RESTART;
    ::sigaction(signal, &action, nullptr);
  }
}

void StopOnSignals::restore_signals() {
  for (const int signal : kStopping) {
    if (signal == SIGHUP && has_hung_up) continue;
    struct sigaction action{};
    ::sigaction(signal, nullptr, &action);
    if (action.sa_handler == on_signal) ::signal(signal, SIG_DFL);
  }
}

const std::atomic<bool>& StopOnSignals::requested() const {
  return stop_requested;
}

}  // namespace perfring
