#include "harness/program/input.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <memory>
#include <system_error>

#include "harness/program/console.h"
#include "harness/program/run_program.h"

namespace perfring {
namespace {

using File = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;

// stdin stays open.
int leave_open(std::FILE*) {
  return 0;
}

File open_file(const std::string& path) {
  if (path == "-") return {stdin, leave_open};
  return {std::fopen(path.c_str(), "rbe"), std::fclose};
}

std::unexpected<std::string> refused(std::string_view option, const std::string& path,
                                     const std::string& why) {
  const std::string name = path == "-" ? "stdin" : in_quotes(path);
  return std::unexpected(fmt::format("{}: {} {}", option, name, why));
}

std::string system_said(int error) {
  return std::generic_category().message(error);
}

}  // namespace

std::expected<std::string, std::string> read_input(std::string_view option, const std::string& path,
                                                   std::size_t limit, Content content) {
  const File file = open_file(path);
  if (file == nullptr) return refused(option, path, "cannot be read: " + system_said(errno));
  std::string text;
  errno = 0;
  for (std::size_t got = 1; got != 0 && text.size() <= limit;) {
    constexpr std::size_t kPiece = 64 << 10;
    const std::size_t before = text.size();
    text.resize(before + std::min(kPiece, limit + 1 - before));
    got = std::fread(&text[before], 1, text.size() - before, file.get());
    text.resize(before + got);
  }
  if (std::ferror(file.get()) != 0) {
    return refused(option, path, "cannot be read: " + system_said(errno));
  }
  if (text.size() > limit) {
    return refused(option, path,
                   fmt::format("is larger than {} MiB: give a smaller file", limit / kMiB));
  }
  if (content == Content::Binary) return text;
  if (text.empty()) return refused(option, path, "is empty");
  if (const std::size_t at = text.find('\0'); at != std::string::npos) {
    return refused(option, path,
                   fmt::format("is not text: its byte {} is 0: give a text file", at));
  }
  return text;
}

std::expected<void, std::string> write_output(std::string_view option, const std::string& path,
                                              std::string_view text) {
  const std::string name = path == "-" ? "stdout" : in_quotes(path);
  int error = 0;
  if (path == "-") {
    StopOnSignals::let_signals_end_the_program();
    error = write_all(STDOUT_FILENO, text);
  } else {
    // A pipe without a reader is an error, not something to wait for.
    const int fd =
        ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NONBLOCK, 0666);
    error = fd < 0 ? errno : write_all(fd, text);
    if (fd >= 0 && ::close(fd) != 0 && error == 0) error = errno;
  }
  if (error == 0) return {};
  return std::unexpected(
      fmt::format("{}: {} cannot be written: {}", option, name, system_said(error)));
}

}  // namespace perfring
