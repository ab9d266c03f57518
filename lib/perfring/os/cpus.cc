#include "perfring/os/cpus.h"

#include <fcntl.h>
#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <utility>

#include "perfring/os/fd.h"

namespace perfring::os {
namespace {

constexpr std::size_t kCpusMax = 65536;
// The limit on a CPU list's file: kCpusMax numbers of five digits, each followed by a comma, take
// less.
constexpr std::size_t kListBytesMax = 512 * 1024;
// How much of a text that is not a list an error keeps.
constexpr std::size_t kDataBytesMax = 64;

constexpr std::string_view kBlanks = " \t\n\v\f\r";

// Removes a number from the front of `text` and returns it.
std::optional<std::uint32_t> take_number(std::string_view& text) {
  std::uint32_t number = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{}) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(rest - text.data()));
  return number;
}

bool take(std::string_view& text, char expected) {
  if (!text.starts_with(expected)) return false;
  text.remove_prefix(1);
  return true;
}

std::error_code last_error() {
  return {errno, std::generic_category()};
}

// Returns the file's text, or its first `most` bytes.
std::expected<std::string, std::error_code> read_file(const char* path, std::size_t most) {
  if (path == nullptr) return std::unexpected(std::make_error_code(std::errc::bad_address));
  const Fd fd{::open(path, O_RDONLY | O_CLOEXEC)};
  if (fd.get() < 0) return std::unexpected(last_error());
  std::string text;
  std::array<char, 4096> buffer;
  while (text.size() < most) {
    const std::size_t wanted = std::min(buffer.size(), most - text.size());
    const ssize_t length = ::read(fd.get(), buffer.data(), wanted);
    if (length < 0) return std::unexpected(last_error());
    if (length == 0) break;
    text.append(buffer.data(), static_cast<std::size_t>(length));
  }
  return text;
}

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(kBlanks);
  if (first == text.npos) return {};
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

// Returns the text in quotes, on one line and harmless to a terminal, whatever it contains.
std::string quoted(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string quoted = "'";
  for (const char c : text) {
    if (c >= ' ' && c <= '~') {
      quoted += c;
    } else {
      const auto byte = static_cast<unsigned char>(c);
      quoted += {'\\', 'x', kDigits[byte / 16], kDigits[byte % 16]};
    }
  }
  return quoted + (text.size() == kDataBytesMax ? "'..." : "'");
}

}  // namespace

std::string OnlineCpusError::message() const {
  if (kind == Kind::IOError) return path + ": " + io_error.message();
  return path +
         (data.empty() ? ": empty, not a list of CPUs" : ": not a list of CPUs: " + quoted(data));
}

std::string OnlineCpusError::explain() const {
  const std::string request = "asked for: the online CPUs, which " + path + " lists\n";
  if (kind == Kind::IOError) {
    const bool is_missing = io_error == std::errc::no_such_file_or_directory;
    return request + "the system said: " + io_error.message() + "\nto change: " +
           (is_missing ? "mount sysfs (mount -t sysfs sysfs /sys)"
                       : "let this process read the file");
  }
  return request +
         "the system said: " + (data.empty() ? "nothing, the file is empty" : quoted(data)) +
         "\n"
         "to change: unmount what hides the kernel's own file, which has a list such as 0-3,8";
}

std::expected<std::vector<std::uint32_t>, OnlineCpusError> online_cpus() {
  return read_cpu_list("/sys/devices/system/cpu/online");
}

std::expected<std::vector<std::uint32_t>, OnlineCpusError> read_cpu_list(const char* path) {
  using Kind = OnlineCpusError::Kind;
  const char* const name = path == nullptr ? "a null pointer" : path;
  const auto text = read_file(path, kListBytesMax + 1);
  if (!text) return std::unexpected(OnlineCpusError{Kind::IOError, name, text.error(), {}});
  const std::string_view list = trimmed(*text);
  if (text->size() <= kListBytesMax) {
    if (auto cpus = parse_cpu_list(list)) return *std::move(cpus);
  }
  return std::unexpected(OnlineCpusError{Kind::InvalidData, name,
                                         std::make_error_code(std::errc::invalid_argument),
                                         std::string{list.substr(0, kDataBytesMax)}});
}

std::optional<std::vector<std::uint32_t>> parse_cpu_list(std::string_view text) {
  std::vector<std::uint32_t> cpus;
  do {
    const std::optional<std::uint32_t> first = take_number(text);
    if (!first) return std::nullopt;
    std::uint32_t last = *first;
    if (take(text, '-')) {
      const std::optional<std::uint32_t> upper = take_number(text);
      if (!upper || *upper < *first) return std::nullopt;
      last = *upper;
    }
    if (last >= kCpusMax) return std::nullopt;
    if (last - *first >= kCpusMax - cpus.size()) return std::nullopt;
    for (std::uint32_t i = 0; i <= last - *first; ++i) cpus.push_back(*first + i);
  } while (take(text, ','));
  if (!text.empty()) return std::nullopt;
  return cpus;
}

std::string to_cpu_list(std::span<const std::uint32_t> cpus) {
  std::string list;
  for (std::size_t first = 0; first < cpus.size();) {
    std::size_t last = first;
    while (last + 1 < cpus.size() && cpus[last + 1] == cpus[last] + 1) ++last;
    if (first != 0) list += ',';
    list += std::to_string(cpus[first]);
    if (last != first) list += '-' + std::to_string(cpus[last]);
    first = last + 1;
  }
  return list;
}

std::optional<std::string> read_line(const char* path) {
  auto text = read_file(path, 4096);
  if (!text) return std::nullopt;
  text->erase(std::min(text->find('\n'), text->size()));
  return *std::move(text);
}

}  // namespace perfring::os
