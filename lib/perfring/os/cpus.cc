#include "perfring/os/cpus.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <cstddef>
#include <system_error>

#include "perfring/os/fd.h"

namespace perfring::os {
namespace {

constexpr std::size_t kCpusMax = 65536;

// Takes a number off the front of `text`.
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

}  // namespace

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
    if (last - *first >= kCpusMax - cpus.size()) return std::nullopt;
    for (std::uint32_t i = 0; i <= last - *first; ++i) cpus.push_back(*first + i);
  } while (take(text, ','));
  if (!text.empty()) return std::nullopt;
  return cpus;
}

std::optional<std::string> read_line(const char* path) {
  const Fd fd{::open(path, O_RDONLY | O_CLOEXEC)};
  if (fd.get() < 0) return std::nullopt;
  std::array<char, 4096> buffer;
  const ssize_t length = ::read(fd.get(), buffer.data(), buffer.size());
  if (length < 0) return std::nullopt;
  const std::string_view text{buffer.data(), static_cast<std::size_t>(length)};
  return std::string{text.substr(0, text.find('\n'))};
}

std::string online_cpu_list() {
  return read_line("/sys/devices/system/cpu/online").value_or(std::string{});
}

std::vector<std::uint32_t> online_cpus() {
  return parse_cpu_list(online_cpu_list()).value_or(std::vector<std::uint32_t>{});
}

}  // namespace perfring::os
