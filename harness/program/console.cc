#include "harness/program/console.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <system_error>

#include "harness/program/run_program.h"
#include "harness/program/verdict.h"
#include "perfring/record/to_string.h"

namespace perfring {
namespace {

using record::internal::printable_length;

std::string escaped(std::string_view text, bool keep_newlines) {
  std::string result;
  while (!text.empty()) {
    std::size_t length = printable_length(text);
    if (keep_newlines && text[0] == '\n') length = 1;
    if (length != 0) {
      result += text.substr(0, length);
    } else {
      result += fmt::format("\\x{:02x}", static_cast<unsigned char>(text[0]));
      length = 1;
    }
    text.remove_prefix(length);
  }
  return result;
}

}  // namespace

int write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(fd, text.data(), text.size());
    if (written >= 0) {
      text.remove_prefix(static_cast<std::size_t>(written));
    } else if (errno == EAGAIN) {  // the descriptor has become non-blocking
      pollfd reader{fd, POLLOUT, 0};
      ::poll(&reader, 1, -1);
    } else if (errno != EINTR) {
      return errno;
    }
  }
  return 0;
}

int write_all(int fd, std::string_view text, const std::atomic<bool>& stop) {
  using Clock = std::chrono::steady_clock;
  constexpr int kLook = 50;  // milliseconds between checks of `stop`
  constexpr std::chrono::seconds kPatience{1};
  constexpr std::size_t kPiece = 4096;  // a pipe that polls as writable takes PIPE_BUF bytes
  for (auto end = Clock::time_point::max(); !text.empty();) {
    pollfd reader{fd, POLLOUT, 0};
    if (::poll(&reader, 1, kLook) <= 0) {
      if (stop) end = std::min(end, Clock::now() + kPatience);
      if (Clock::now() >= end) return ETIMEDOUT;
      continue;
    }
    const std::string_view piece = text.substr(0, kPiece);
    if (const int error = write_all(fd, piece); error != 0) return error;
    text.remove_prefix(piece.size());
    end = Clock::time_point::max();
  }
  return 0;
}

namespace {

// Never blocks: a pipe that polls as writable takes PIPE_BUF bytes.
void write_if_ready(std::string_view text) {
  pollfd reader{STDERR_FILENO, POLLOUT, 0};
  if (::poll(&reader, 1, 0) != 1 || (reader.revents & POLLOUT) == 0) return;
  [[maybe_unused]] const ssize_t written =
      ::write(STDERR_FILENO, text.data(), std::min<std::size_t>(text.size(), 4096));
}

bool is_smart_terminal() {
  const char* const term = std::getenv("TERM");
  return ::isatty(STDERR_FILENO) == 1 && term != nullptr && *term != '\0' &&
         std::string_view{term} != "dumb";
}

// Cuts the line to the terminal's width, so that the next line can replace it.
std::string_view cut(std::string_view line) {
  winsize size{};
  if (::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return line;
  return line.substr(0, static_cast<std::size_t>(size.ws_col - 1));
}

}  // namespace

std::string printable(std::string_view text) {
  return escaped(text, true);
}

std::string one_line(std::string_view text) {
  return escaped(text, false);
}

std::string first_line(std::string_view text) {
  return one_line(text.substr(0, std::min(text.find('\n'), std::size_t{200})));
}

std::string shell_word(std::string_view text) {
  constexpr const char* kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./=+:,@%";
  if (!text.empty() && text.find_first_not_of(kPlain) == std::string_view::npos) {
    return std::string{text};
  }
  if (escaped(text, false) == text) {
    std::string word = "'";
    for (const char each : text) {
      word += each == '\'' ? std::string{"'\\''"} : std::string(1, each);
    }
    return word + "'";
  }
  std::string word;
  for (const char each : text) {
    if (each == '\'' || each == '\\') word += '\\';
    word += each;
  }
  // Three octal digits, so that a digit that follows does not become part of the escape.
  std::string bytes;
  for (const char each : word) {
    const auto byte = static_cast<unsigned char>(each);
    bytes += byte < 0x20 || byte >= 0x7f ? fmt::format("\\{:03o}", byte) : std::string(1, each);
  }
  return "$'" + bytes + "'";
}

std::string in_quotes(std::string_view text) {
  constexpr std::size_t kLongest = 200;
  const bool cut_off = text.size() > kLongest;
  return fmt::format("'{}{}'", escaped(text.substr(0, kLongest), false), cut_off ? "..." : "");
}

int fail(std::string_view message) {
  StopOnSignals::restore_signals();
  constexpr std::size_t kLongest = 4000;  // it may contain a line of a user's file
  std::string text = printable(message);
  if (text.size() > kLongest) text = text.substr(0, kLongest) + "...";
  static_cast<void>(write_all(STDERR_FILENO, std::string{program_name()} + ": " + text + "\n"));
  return kUsageOrEnvironment;
}

int deliver(std::string_view text, int code, std::string_view what) {
  StopOnSignals::restore_signals();
  const int error = write_all(STDOUT_FILENO, printable(text));
  if (error == 0) return code;
  return fail(fmt::format("{} cannot be written to stdout: {}", what,
                          std::generic_category().message(error)));
}

int deliver_to_stderr(std::string_view text, int code) {
  StopOnSignals::restore_signals();
  static_cast<void>(write_all(STDERR_FILENO, printable(text)));
  return code;
}

ProgressLine::ProgressLine() : replaces_{is_smart_terminal()} {}

void ProgressLine::show(const std::string& line) const {
  const std::string text = printable(line);
  write_if_ready(replaces_ ? "\r\x1b[K" + std::string{cut(text)} : text + "\n");
}

void ProgressLine::keep(const std::string& line) const {
  clear();
  write_if_ready(printable(line) + "\n");
}

void ProgressLine::clear() const {
  if (replaces_) write_if_ready("\r\x1b[K");
}

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

std::string system_message(int error) {
  return std::generic_category().message(error);
}

}  // namespace

std::expected<std::string, std::string> read_input(std::string_view option, const std::string& path,
                                                   std::size_t limit, Content content) {
  const File file = open_file(path);
  if (file == nullptr) return refused(option, path, "cannot be read: " + system_message(errno));
  std::string text;
  errno = 0;
  for (std::size_t count = 1; count != 0 && text.size() <= limit;) {
    constexpr std::size_t kPiece = 64 << 10;
    const std::size_t before = text.size();
    text.resize(before + std::min(kPiece, limit + 1 - before));
    count = std::fread(&text[before], 1, text.size() - before, file.get());
    text.resize(before + count);
  }
  if (std::ferror(file.get()) != 0) {
    return refused(option, path, "cannot be read: " + system_message(errno));
  }
  if (text.size() > limit) {
    return refused(option, path,
                   fmt::format("is larger than {} MiB: give a smaller file", limit / kMiB));
  }
  if (content == Content::Binary) return text;
  if (text.empty()) return refused(option, path, "is empty");
  if (const std::size_t at = text.find('\0'); at != std::string::npos) {
    return refused(option, path, fmt::format("is not text: byte {} is 0: give a text file", at));
  }
  return text;
}

}  // namespace perfring
