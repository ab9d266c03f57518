// write_svg() of check_report.h.

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <system_error>

#include "harness/cli/check_report.h"

extern char** environ;

namespace perfring::cli {
namespace {

std::string message(int error) {
  return std::generic_category().message(error);
}

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

}  // namespace

std::expected<void, std::string> write_svg(const model::Trace& trace, const std::string& file) {
  const int out = ::open(file.c_str(), O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0644);
  if (out < 0) {
    return std::unexpected(fmt::format("--svg: {} cannot be written: {}", file, message(errno)));
  }
  // A temporary file, so that nobody waits for anybody.
  std::FILE* const graph = std::tmpfile();
  int status = -EIO;
  if (graph != nullptr) {
    const std::string text = trace_dot(trace);
    const bool written = std::fwrite(text.data(), 1, text.size(), graph) == text.size() &&
                         std::fflush(graph) == 0 && ::lseek(::fileno(graph), 0, SEEK_SET) == 0;
    if (written) status = run_dot(::fileno(graph), out);
    std::fclose(graph);
  }
  ::close(out);
  if (status == 0) return {};
  ::unlink(file.c_str());
  if (status == -ENOENT) {
    return std::unexpected(
        "--svg: Graphviz's dot is not installed: ci/setup installs it (apt-get install graphviz)");
  }
  return std::unexpected(
      fmt::format("--svg: Graphviz's dot: {}",
                  status < 0 ? message(-status) : fmt::format("ended with {}", status)));
}

}  // namespace perfring::cli
