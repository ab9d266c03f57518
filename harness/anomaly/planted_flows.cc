// Faults of the kinds that the campaign must find. Each could be in a real program, or once was in
// lib.

#include <fcntl.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <fstream>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <system_error>

#include "harness/anomaly/flows.h"
#include "perfring/os/fd.h"

namespace perfring::anomaly {
namespace {

std::unexpected<std::string> failed(const char* call) {
  return std::unexpected(std::string{call} + ": " + std::generic_category().message(errno));
}

// One of two error paths leaks the descriptor that was opened first.
Prepared forgets_close(std::span<const std::string>) {
  return {.run = []() -> FlowResult {
    const int epoll = ::epoll_create1(EPOLL_CLOEXEC);
    if (epoll < 0) return failed("epoll_create1");
    const int stop = ::eventfd(0, EFD_CLOEXEC);
    if (stop < 0) return failed("eventfd");  // the fault: epoll stays open
    epoll_event event{};
    const int added = ::epoll_ctl(epoll, EPOLL_CTL_ADD, stop, &event);
    const int error = errno;
    ::close(stop);
    ::close(epoll);
    errno = error;
    if (added != 0) return failed("epoll_ctl");
    return Account{};
  }};
}

// kill(2) takes -1, the result of a failed fork(2), for every process that this user may
// signal.
Prepared kills_all(std::span<const std::string>) {
  // Safe in the room only.
  std::string first;
  std::getline(std::ifstream{"/proc/1/comm"}, first);
  if (first != "room") throw std::runtime_error{"process 1 is not the room's"};
  return {.run = []() -> FlowResult {
    const pid_t child = ::fork();
    if (child == 0) ::_exit(0);
    const int error = errno;
    ::kill(child, SIGKILL);
    if (child < 0) {
      errno = error;
      return failed("fork");
    }
    while (::waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
    }
    return Account{};
  }};
}

Prepared trusts_mmap(std::span<const std::string>) {
  return {.run = []() -> FlowResult {
    void* const at =
        ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    *static_cast<volatile char*>(at) = 1;
    ::munmap(at, 4096);
    return Account{};
  }};
}

// A read from a pipe returns what is there now. The rest is never read, nor counted as lost.
Prepared reads_once(std::span<const std::string>) {
  return {.run = []() -> FlowResult {
    std::array<int, 2> ends{-1, -1};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) return failed("pipe2");
    const os::Fd reader{ends[0]}, writer{ends[1]};
    std::array<char, 10> bytes{};
    {
      const Outside nothing_fails;
      if (::write(writer.get(), bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size()))
        return failed("write");
    }
    const ssize_t length = ::read(reader.get(), bytes.data(), bytes.size());
    if (length < 0) return failed("read");
    return Account{.attempted = bytes.size(), .delivered = static_cast<std::uint64_t>(length)};
  }};
}

// Allocates in a noexcept function.
std::size_t length_of(std::size_t size) noexcept {
  return std::string(size, '.').size();
}
Prepared allocates_in_noexcept(std::span<const std::string>) {
  return {.run = []() -> FlowResult { return Account{length_of(100), 100, 0}; }};
}

// Does not wait for its child if the read from the pipe fails.
Prepared leaves_a_child(std::span<const std::string>) {
  return {.run = []() -> FlowResult {
    std::array<int, 2> ends{-1, -1};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) return failed("pipe2");
    const os::Fd reader{ends[0]};
    os::Fd writer{ends[1]};
    const pid_t child = ::fork();
    if (child < 0) return failed("fork");
    if (child == 0) {
      static_cast<void>(!::write(writer.get(), "x", 1));
      ::_exit(0);
    }
    writer = os::Fd{};
    char byte = 0;
    const ssize_t length = ::read(reader.get(), &byte, 1);
    if (length < 0) return failed("read");
    while (::waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
    }
    return Account{1, static_cast<std::uint64_t>(length), length == 0 ? 1U : 0U};
  }};
}

// Reports that something failed, but not what.
Prepared names_nothing(std::span<const std::string>) {
  return {.run = []() -> FlowResult {
    const os::Fd file{::open("/dev/null", O_RDONLY | O_CLOEXEC)};
    if (file.get() < 0) return std::unexpected("it did not work");
    return Account{};
  }};
}

// Hangs like a loop that takes any failure for EINTR.
Prepared tries_for_ever(std::span<const std::string>) {
  return {.run = []() -> FlowResult {
    const int file = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
    while (file < 0) ::pause();
    ::close(file);
    return Account{};
  }};
}

// ARGUMENT: a file of the user's. The flow truncates the file before it is sure to have a
// replacement.
Prepared cuts_a_file(std::span<const std::string> arguments) {
  if (arguments.empty()) throw std::runtime_error{"no file is given"};
  return {.run = [path = arguments.front()]() -> FlowResult {
    const os::Fd file{::open(path.c_str(), O_WRONLY | O_TRUNC | O_CLOEXEC)};
    if (file.get() < 0) return failed("open");
    const std::string text = "all that there is to say\n";
    if (::write(file.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size()))
      return failed("write");
    return Account{};
  }};
}

constexpr Flow kFlows[]{{"planted_close", forgets_close},
                        {"planted_kill", kills_all},
                        {"planted_mmap", trusts_mmap},
                        {"planted_read", reads_once},
                        {"planted_noexcept", allocates_in_noexcept},
                        {"planted_child", leaves_a_child},
                        {"planted_name", names_nothing},
                        {"planted_hang", tries_for_ever},
                        {"planted_cut", cuts_a_file}};

}  // namespace

std::span<const Flow> planted_flows() {
  return kFlows;
}

}  // namespace perfring::anomaly
