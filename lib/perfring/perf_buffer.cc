#include "perfring/perf_buffer.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <charconv>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

#include "perfring/os/cpus.h"
#include "perfring/os/syscalls.h"
#include "perfring/perf_buffer_error.h"
#include "perfring/ring/ring.h"

namespace perfring {

std::expected<PerfBuffer, PerfBufferError> PerfBuffer::open(std::uint32_t cpu,
                                                            const PerfBufferOptions& options) {
  auto event = internal::OutputEvent::open(
      cpu, {.page_count = options.page_count, .wakeup_watermark = options.wakeup_watermark});
  if (!event) return std::unexpected(std::move(event).error());
  const Ring<> ring = *Ring<>::over(event->mapping(), os::page_size());
  return PerfBuffer{*std::move(event), ring};
}

PerfBuffer::PerfBuffer(internal::OutputEvent event, const Ring<>& ring) noexcept
    : event_{std::move(event)}, ring_{ring} {}

PerfBuffer::PerfBuffer(PerfBuffer&& other) noexcept
    : event_{std::move(other.event_)}, ring_{std::exchange(other.ring_, Ring<>::empty())} {}

PerfBuffer& PerfBuffer::operator=(PerfBuffer&& other) noexcept {
  event_ = std::move(other.event_);
  ring_ = std::exchange(other.ring_, Ring<>::empty());
  return *this;
}

bool PerfBuffer::is_usable() const noexcept {
  return event_.is_own();
}

PerfBuffer::~PerfBuffer() = default;

namespace {

using Kind = PerfBufferError::Kind;

std::size_t page_count_max() {
  return Ring<>::kSizeMax / os::page_size();
}

std::string sysctl(const char* name) {
  const std::string path = std::string{"/proc/sys/kernel/"} + name;
  return std::string{"kernel."} + name + " is " +
         os::read_line(path.c_str()).value_or("not readable");
}

std::string advice_on_cpu(std::uint32_t cpu) {
  const auto online = os::online_cpus();
  if (!online) {
    return "choose an online CPU (the list of them cannot be read: " + online.error().message() +
           ")";
  }
  if (std::ranges::find(*online, cpu) != online->end()) {
    return "see perf_event_open(2) for this error: CPU " + std::to_string(cpu) + " is online";
  }
  return "choose an online CPU (online CPUs: " + os::to_cpu_list(*online) + ")";
}

std::string advice_on_open(const PerfBufferError& error) {
  switch (error.io_error.value()) {
    case EACCES:
    case EPERM:
      return sysctl("perf_event_paranoid") +
             ": run with CAP_PERFMON (before Linux 5.8: CAP_SYS_ADMIN), or set that to 0 or below; "
             "in a container, use a seccomp profile that allows perf_event_open as well";
    case ENODEV:
    case EINVAL:
      return advice_on_cpu(error.cpu);
    case EMFILE:
      return "raise the limit on open files (ulimit -n): each buffer keeps one open";
    case ENOENT:
    case ENOSYS:
      return "use Linux 4.4 or later, built with CONFIG_PERF_EVENTS and CONFIG_BPF_SYSCALL";
    default:
      return "see perf_event_open(2) for this error";
  }
}

// Returns the largest number of data pages, a power of two, of a ring that fits
// kernel.perf_event_mlock_kb with its control page (kernel/events/core.c: perf_mmap() at v6.18).
// Returns nullopt if the sysctl is unreadable.
std::optional<std::size_t> page_count_that_fits() {
  const auto text = os::read_line("/proc/sys/kernel/perf_event_mlock_kb");
  std::size_t kib = 0;
  if (!text || std::from_chars(text->data(), text->data() + text->size(), kib).ec != std::errc{}) {
    return std::nullopt;
  }
  const std::size_t pages = kib * 1024 / os::page_size();
  return pages < 2 ? 0 : std::bit_floor(pages - 1);
}

std::string advice_on_locked_memory() {
  const std::string limit =
      sysctl("perf_event_mlock_kb") + " (KiB of ring for each user on each CPU)";
  const std::string raise = "raise that limit or RLIMIT_MEMLOCK, or run with CAP_IPC_LOCK";
  const auto fits = page_count_that_fits();
  if (!fits) return limit + "; ask for fewer pages, " + raise;
  if (*fits == 0) return limit + ": no ring fits; " + raise;
  return limit + ": at most " + std::to_string(*fits) +
         (*fits == 1 ? " data page fits" : " data pages fit") + "; ask for fewer pages, " + raise;
}

std::string advice_on_mmap(const PerfBufferError& error) {
  switch (error.io_error.value()) {
    case EPERM:
      return advice_on_locked_memory();
    case ENOMEM:
      return "ask for fewer pages: the kernel could not allocate a ring of " +
             std::to_string(error.page_count) + " pages";
    default:
      return "see mmap(2) for this error";
  }
}

std::string advice_on_update(const PerfBufferError& error) {
  switch (error.io_error.value()) {
    case E2BIG:
      return "use an index below the map's max_entries, or give the map an entry for each possible "
             "CPU";
    case EBADF:
      return "use an array that has not been moved from";
    case EPERM:
    case EACCES:
      return "run with CAP_BPF (before Linux 5.8: CAP_SYS_ADMIN), and give a map that is not "
             "read-only";
    default:
      return "see bpf(2), BPF_MAP_UPDATE_ELEM, for this error";
  }
}

std::string advice_on(const PerfBufferError& error) {
  switch (error.kind) {
    case Kind::InvalidPageCount:
      return "give a power of two from 1 to " + std::to_string(page_count_max()) + " (a page is " +
             std::to_string(os::page_size()) + " bytes, a ring at most 2 GiB)";
    case Kind::OpenError:
      return advice_on_open(error);
    case Kind::MMapError:
      return advice_on_mmap(error);
    case Kind::PerfEventEnableError:
      return "change the seccomp or LSM policy that forbids it: the kernel itself does not";
    case Kind::IOError:
      return advice_on_update(error);
  }
  return {};
}

}  // namespace

PerfBufferError PerfBufferError::at_failure(Kind kind, std::error_code io_error, std::uint32_t cpu,
                                            std::size_t page_count) {
  PerfBufferError error{kind, io_error, cpu, page_count};
  error.advice = advice_on(error);
  return error;
}

std::string PerfBufferError::message() const {
  switch (kind) {
    case Kind::InvalidPageCount:
      return "invalid page count " + std::to_string(page_count) +
             ", the value must be a power of two" +
             (page_count > page_count_max()
                  ? " of at most " + std::to_string(page_count_max()) + " (a ring of 2 GiB)"
                  : std::string{});
    case Kind::OpenError:
      return "perf_event_open failed: " + io_error.message();
    case Kind::MMapError:
      return "mmap failed: " + io_error.message();
    case Kind::PerfEventEnableError:
      return "PERF_EVENT_IOC_ENABLE failed: " + io_error.message();
    case Kind::IOError:
      return io_error.message();
  }
  return "unknown error";
}

std::string PerfBufferError::explain() const {
  const std::string on_cpu = " on CPU " + std::to_string(cpu);
  std::string request;
  std::string reply = io_error.message();
  switch (kind) {
    case Kind::InvalidPageCount:
      request = "a ring of " + std::to_string(page_count) + " data pages" + on_cpu;
      reply = "nothing: perfring checks this before any system call";
      break;
    case Kind::OpenError:
      request = "perf_event_open of a software BPF_OUTPUT event" + on_cpu + ", for all processes";
      break;
    case Kind::MMapError:
      request = "mmap of a ring of 1 + " + std::to_string(page_count) + " pages" + on_cpu;
      break;
    case Kind::PerfEventEnableError:
      request = "ioctl PERF_EVENT_IOC_ENABLE of the event" + on_cpu;
      break;
    case Kind::IOError:
      request =
          "bpf BPF_MAP_UPDATE_ELEM of index " + std::to_string(cpu) + " with the event" + on_cpu;
      break;
    default:
      return message();
  }
  return "asked for: " + request + "\nthe system said: " + reply +
         (advice.empty() ? std::string{} : "\nto change: " + advice);
}

}  // namespace perfring
