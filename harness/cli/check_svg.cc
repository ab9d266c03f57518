// write_svg() of check_report.h.

#include <fmt/format.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <string>
#include <system_error>

#include "harness/cli/check_report.h"
#include "harness/program/console.h"
#include "harness/program/input.h"
#include "harness/program/run_program.h"
#include "perfring/os/fd.h"

extern char** environ;

namespace perfring::cli {
namespace {

std::string message(int error) {
  return std::generic_category().message(error);
}

// What a child ends with if the system learns only there that it cannot be run (POSIX on
// posix_spawn); it does so under qemu-user.
constexpr int kNotRun = 127;

// Runs `dot -Tsvg` with this input and output. Its exit status, or -errno if it cannot be run. A
// signal that is to end this program ends it, too.
int run_dot(int in, int out) {
  posix_spawn_file_actions_t files;
  ::posix_spawn_file_actions_init(&files);
  ::posix_spawn_file_actions_adddup2(&files, in, STDIN_FILENO);
  ::posix_spawn_file_actions_adddup2(&files, out, STDOUT_FILENO);
  char dot[] = "dot";
  char format[] = "-Tsvg";
  char* argv[] = {dot, format, nullptr};
  const StopOnSignals stop;
  pid_t child = 0;
  const int error = ::posix_spawnp(&child, dot, &files, nullptr, argv, environ);
  ::posix_spawn_file_actions_destroy(&files);
  if (error != 0) return -error;
  int status = 0;
  for (pid_t ended = 0; ended != child;) {
    ended = ::waitpid(child, &status, WNOHANG);
    if (ended < 0 && errno != EINTR) return -errno;
    if (stop.requested()) ::kill(child, SIGKILL);
    if (ended == 0) ::usleep(2000);
  }
  if (stop.requested()) return -EINTR;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

std::string read_all(int fd) {
  std::string text;
  char piece[4096];
  ::lseek(fd, 0, SEEK_SET);
  for (ssize_t got = 0; (got = ::read(fd, piece, sizeof(piece))) > 0;) {
    text.append(piece, static_cast<std::size_t>(got));
  }
  return text;
}

std::unexpected<std::string> failed(const std::string& what, int error) {
  return std::unexpected("--svg: " + what + ": " + message(error));
}

// By way of files in memory, so that neither waits for the other.
std::expected<std::string, std::string> drawing_of(const std::string& dot) {
  const os::Fd graph{::memfd_create("graph", MFD_CLOEXEC)};
  const os::Fd drawing{::memfd_create("drawing", MFD_CLOEXEC)};
  if (graph.get() < 0 || drawing.get() < 0) return failed("a temporary file (memfd)", errno);
  if (const int error = write_all(graph.get(), dot); error != 0) {
    return failed("a temporary file (memfd)", error);
  }
  ::lseek(graph.get(), 0, SEEK_SET);
  const int status = run_dot(graph.get(), drawing.get());
  if (status == -ENOENT || status == kNotRun) {
    return std::unexpected(
        "--svg: Graphviz's dot is not installed: ci/setup installs it (apt-get install graphviz)");
  }
  if (status < 0) return failed("Graphviz's dot", -status);
  std::string picture = read_all(drawing.get());
  if (status == 0 && picture.find("<svg") != std::string::npos) return picture;
  return std::unexpected(
      fmt::format("--svg: Graphviz's dot ended with {} and printed {}", status,
                  picture.empty() ? "nothing" : "something else than a picture"));
}

// "program ring/nested, mutant publishes_nested, form A, step 3"
std::string subject(const CheckPlan& plan, const CheckedCase& violated) {
  std::string text = "program " + plan.entry->name;
  if (plan.mutant != nullptr) text += ", mutant " + plan.mutant->name;
  if (violated.label != plan.entry->name) text += ", " + violated.label;
  return text;
}

}  // namespace

// Opens the file only once there is a drawing: it may hold an earlier one, or be a device.
std::expected<void, std::string> write_svg(const CheckPlan& plan,
                                           const std::vector<CheckedCase>& cases) {
  const auto violated = std::ranges::find_if(
      cases, [](const CheckedCase& each) { return each.result.violation.has_value(); });
  if (violated == cases.end()) return {};
  const auto drawing =
      drawing_of(model::trace_dot(*violated->result.violation, subject(plan, *violated)));
  if (!drawing) return std::unexpected(drawing.error());
  return write_output("--svg", plan.svg, *drawing);
}

}  // namespace perfring::cli
