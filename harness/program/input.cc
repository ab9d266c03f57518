#include "harness/program/input.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <memory>
#include <system_error>

#include "harness/program/console.h"

namespace perfring {
namespace {

using File = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;

// stdin and stdout stay open.
int leave_open(std::FILE*) {
  return 0;
}

File open_file(const std::string& path, const char* mode, std::FILE* standard) {
  if (path == "-") return {standard, leave_open};
  return {std::fopen(path.c_str(), mode), std::fclose};
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
  const File file = open_file(path, "rbe", stdin);
  if (file == nullptr) return refused(option, path, "cannot be read: " + system_said(errno));
  std::string text(limit + 1, '\0');
  errno = 0;
  text.resize(std::fread(text.data(), 1, text.size(), file.get()));
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
  File file = open_file(path, "wbe", stdout);
  const bool written = file != nullptr &&
                       std::fwrite(text.data(), 1, text.size(), file.get()) == text.size() &&
                       std::fflush(file.get()) == 0;
  const bool closed = written && (path == "-" || std::fclose(file.release()) == 0);
  if (closed) return {};
  const int error = errno;
  const std::string name = path == "-" ? "stdout" : in_quotes(path);
  return std::unexpected(
      fmt::format("{}: {} cannot be written: {}", option, name, system_said(error)));
}

}  // namespace perfring
