// write_svg() of check_report.h.

#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <memory>
#include <string>
#include <system_error>

#include "harness/cli/check_report.h"
#include "harness/program/input.h"

extern char** environ;

namespace perfring::cli {
namespace {

std::string message(int error) {
  return std::generic_category().message(error);
}

// What a child ends with if the system learns only there that it cannot be run (POSIX on
// posix_spawn); it does so under qemu-user.
constexpr int kNotRun = 127;

// Runs `dot -Tsvg` with this input and output. Its exit status, or -errno if it cannot be run.
int run_dot(int in, int out) {
  posix_spawn_file_actions_t files;
  ::posix_spawn_file_actions_init(&files);
  ::posix_spawn_file_actions_adddup2(&files, in, STDIN_FILENO);
  ::posix_spawn_file_actions_adddup2(&files, out, STDOUT_FILENO);
  char dot[] = "dot";
  char format[] = "-Tsvg";
  char* argv[] = {dot, format, nullptr};
  pid_t child = 0;
  const int error = ::posix_spawnp(&child, dot, &files, nullptr, argv, environ);
  ::posix_spawn_file_actions_destroy(&files);
  if (error != 0) return -error;
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

// In temporary files, so that nobody waits for anybody.
using File = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;

File temporary() {
  return {std::tmpfile(), std::fclose};
}

bool write_all(const std::string& text, std::FILE* file) {
  return std::fwrite(text.data(), 1, text.size(), file) == text.size() && std::fflush(file) == 0;
}

std::string read_all(std::FILE* file) {
  std::string text;
  std::rewind(file);
  for (int c = std::fgetc(file); c != EOF; c = std::fgetc(file)) text += static_cast<char>(c);
  return text;
}

std::expected<std::string, std::string> drawing_of(const std::string& dot) {
  const File graph = temporary();
  const File drawing = temporary();
  int status = -EIO;
  if (graph != nullptr && drawing != nullptr && write_all(dot, graph.get()) &&
      ::lseek(::fileno(graph.get()), 0, SEEK_SET) == 0) {
    status = run_dot(::fileno(graph.get()), ::fileno(drawing.get()));
  }
  if (status == 0) return read_all(drawing.get());
  if (status == -ENOENT || status == kNotRun) {
    return std::unexpected(
        "--svg: Graphviz's dot is not installed: ci/setup installs it (apt-get install graphviz)");
  }
  return std::unexpected(
      fmt::format("--svg: Graphviz's dot: {}",
                  status < 0 ? message(-status) : fmt::format("ended with {}", status)));
}

// "program ring/nested, mutant publishes_nested, form A, step 3"
std::string subject(const CheckPlan& plan, const CheckedCase& violated) {
  std::string text = "program " + plan.entry->name;
  if (plan.mutant != nullptr) text += ", mutant " + plan.mutant->name;
  if (violated.label != plan.entry->name) text += ", " + violated.label;
  return text;
}

}  // namespace

// Opens the file only once there is a drawing: what is there may be another one, or a device.
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
