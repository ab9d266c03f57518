#include "harness/differential/live_reference.h"

#include <bpf/bpf.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <stdexcept>
#include <string_view>
#include <system_error>
#include <utility>

#include "harness/kernel/perf_event.h"
#include "harness/program/checked.h"
#include "harness/program/time_namespace.h"
#include "harness/rig/simulated_kernel.h"
#include "harness/rig/simulated_ring.h"
#include "harness/script/script.h"
#include "perfring/os/syscalls.h"

namespace perfring::differential {
namespace {

[[noreturn]] void fail(const char* call) {
  throw std::system_error{errno, std::generic_category(), call};
}

// Returns the kernel's CLOCK_MONOTONIC, which records have.
std::uint64_t now() {
  static const std::int64_t offset = monotonic_offset();
  std::timespec time{};
  ::clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<std::uint64_t>(time.tv_sec * std::int64_t{1'000'000'000} + time.tv_nsec -
                                    offset);
}

std::uint64_t fields_before_time(std::uint64_t sample_type) {
  return static_cast<std::uint64_t>(
      std::popcount(sample_type & (PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TID)));
}

// Returns the size of a LOST in the ring (K14, K20).
std::uint64_t lost_size(const script::Settings& settings) {
  constexpr std::uint64_t kFields = PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ID |
                                    PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_CPU |
                                    PERF_SAMPLE_IDENTIFIER;
  const int fields = settings.sample_id_all ? std::popcount(settings.sample_type & kFields) : 0;
  return 24 + 8 * static_cast<std::uint64_t>(fields);
}

}  // namespace

kernel::Word live_word() {
  if (sizeof(long) == 8) return kernel::Word::k64;
  utsname name{};
  checked(::uname(&name), "uname");
  const std::string_view machine{name.machine};
  const bool has_64 = machine == "x86_64" || machine == "aarch64" || machine == "s390x";
  return has_64 ? kernel::Word::k64 : kernel::Word::k32;
}

std::optional<std::string> why_not_live(const script::Settings& settings) {
  const bool is_64 = live_word() == kernel::Word::k64;
  if (settings.word == live_word() && settings.start == 0) return std::nullopt;
  return is_64 ? "this live kernel has 64 bits, and its positions start at 0"
               : "this live kernel has 32 bits, and its positions start at 0";
}

std::optional<std::string> why_not_live(const script::Script& so_far) {
  // The default word is not an error yet: a later line of the script may still change it.
  const bool is_set = so_far.settings.word != script::Settings{}.word || so_far.settings.start != 0;
  if (is_set) {
    if (auto why = why_not_live(so_far.settings)) return why;
  }
  if (so_far.steps.empty() || so_far.steps.back().depth == 0) return std::nullopt;
  return "a nested step, which a real kernel cannot be forced to do";
}

std::expected<live::Emitter, std::string> make_emitter() {
  return live::Emitter::create(2);
}

LiveReference::LiveReference(live::Emitter& emitter, const script::Settings& settings, int cpu)
    : emitter_{emitter}, settings_{settings}, epoll_{::epoll_create1(EPOLL_CLOEXEC)} {
  if (const auto why = why_not_live(settings)) throw std::invalid_argument{*why};
  identity_.cpu = cpu;
  identity_.pid = static_cast<std::uint32_t>(::getpid());
  identity_.tid = static_cast<std::uint32_t>(::gettid());
  checked(epoll_.get(), "epoll_create1");
  for (std::uint32_t i = 0; i < settings.events; ++i) open_event(i);
}

os::Fd LiveReference::open_on_cpu() {
  perf_event_attr attr = rig::attr_of(settings_);
  if (!counts_lost_) attr.read_format &= ~std::uint64_t{PERF_FORMAT_LOST};
  auto opened = os::perf_event_open(attr, static_cast<std::uint32_t>(identity_.cpu));
  if (opened) return *std::move(opened);
  if (!counts_lost_ || opened.error() != std::errc::invalid_argument) {
    throw std::system_error{opened.error(), "perf_event_open"};
  }
  counts_lost_ = false;
  return open_on_cpu();
}

void LiveReference::open_event(std::uint32_t index) {
  events_.push_back(open_on_cpu());
  const int fd = events_.back().get();
  checked(::ioctl(fd, PERF_EVENT_IOC_ID, &identity_.ids[index]), "PERF_EVENT_IOC_ID");
  if (index == 0) {
    map_ring();
  } else {
    checked(::ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, events_[0].get()), "PERF_EVENT_IOC_SET_OUTPUT");
  }
  const auto put = os::bpf_map_update(emitter_.map_fd(), index, static_cast<std::uint32_t>(fd));
  if (!put) throw std::system_error{put.error(), "BPF_MAP_UPDATE_ELEM"};
  epoll_event wanted{.events = rig::epoll_events(settings_.epoll), .data{.u64 = index}};
  checked(::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &wanted), "EPOLL_CTL_ADD");
}

void LiveReference::map_ring() {
  const std::size_t page_size = os::page_size();
  const std::size_t size = (1 + static_cast<std::size_t>(settings_.pages)) * page_size;
  const int protection = settings_.overwrite ? PROT_READ : PROT_READ | PROT_WRITE;
  void* const at = ::mmap(nullptr, size, protection, MAP_SHARED, events_[0].get(), 0);
  if (at == MAP_FAILED) fail("mmap");
  mapping_ = {static_cast<std::byte*>(at), size};
  ring_ = mapping_.subspan(page_size);
}

LiveReference::~LiveReference() {
  for (std::uint32_t i = 0; i < events_.size(); ++i) bpf_map_delete_elem(emitter_.map_fd(), &i);
  if (!mapping_.empty()) ::munmap(mapping_.data(), mapping_.size());
}

unsigned LiveReference::page_shift() const {
  return static_cast<unsigned>(std::countr_zero(os::page_size()));
}

perf_event_mmap_page& LiveReference::page() const {
  return *reinterpret_cast<perf_event_mmap_page*>(mapping_.data());
}

ReferenceStep LiveReference::run(const script::Step& step) {
  time_ = 0;
  ReferenceStep step_result;
  step_result.observed.result = act(step);
  ++steps_;
  step_result.observed.head = __atomic_load_n(&page().data_head, __ATOMIC_ACQUIRE);
  step_result.observed.tail = page().data_tail;
  for (std::size_t i = 0; i < events_.size(); ++i) step_result.observed.lost[i] = lost_of(i);
  step_result.time = time_;
  return step_result;
}

std::optional<std::string> LiveReference::ring_difference(std::span<const std::byte> ring) {
  return first_difference(ring_, ring);
}

std::int64_t LiveReference::act(const script::Step& step) {
  using script::Action;
  const int fd = events_[step.second ? 1 : 0].get();
  switch (step.action) {
    case Action::Output:
      return output(step);
    case Action::Drain:
    case Action::Throw:
      page().data_tail =
          rig::tail_after(ring_, settings_, page().data_head, page().data_tail, step.number);
      return 0;
    case Action::Tail:
      page().data_tail += step.number;
      return 0;
    case Action::Poll: {
      pollfd polled{.fd = fd, .events = POLLIN | POLLRDNORM, .revents = 0};
      checked(::poll(&polled, 1, 0), "poll");
      return readiness(static_cast<std::uint32_t>(polled.revents));
    }
    case Action::Epoll:
      return epoll_wait();
    case Action::Rearm: {
      epoll_event wanted{.events = rig::epoll_events(settings_.epoll), .data{.u64 = 0}};
      return ::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, fd, &wanted) == 0 ? 0 : -errno;
    }
    case Action::Pause:
    case Action::Resume: {
      const unsigned long pause = step.action == Action::Pause ? 1 : 0;
      return ::ioctl(fd, PERF_EVENT_IOC_PAUSE_OUTPUT, pause) == 0 ? 0 : -errno;
    }
    case Action::Die:
      break;  // nested, so not for a live kernel
    case Action::Disable:
    case Action::Enable: {
      const bool enable = step.action == Action::Enable;
      const auto done = enable ? os::perf_event_enable(fd) : os::perf_event_disable(fd);
      return done ? 0 : -done.error().value();
    }
  }
  throw std::invalid_argument{"unknown action"};
}

std::int64_t LiveReference::output(const script::Step& step) {
  const auto length = static_cast<std::size_t>(step.number);
  script::fill_payload(emitter_.payload().first(length), steps_);
  const std::uint64_t head = page().data_head;
  const std::uint64_t before = now();
  const int rc =
      emitter_.emit(static_cast<std::uint32_t>(identity_.cpu), length, step.second ? 1 : 0);
  const std::uint64_t after = now();
  if (rc == -ENOSPC) {
    ++unreported_;
    ++refused_[step.second ? 1 : 0];
  }
  if (rc != 0) return rc;
  live::await_wakeups();
  const std::uint64_t lost = unreported_ != 0 ? lost_size(settings_) : 0;
  unreported_ = 0;
  if ((settings_.sample_type & PERF_SAMPLE_TIME) == 0) return rc;
  time_ = time_at((settings_.write_backward ? page().data_head : head) + lost);
  // A record longer than the ring overwrites itself, including its TIME.
  const bool whole = lost + 8 * 10 + step.number <= ring_.size();
  if (whole && (time_ < before || time_ > after)) {
    throw std::runtime_error{"TIME is not the time at which the sample was written"};
  }
  return rc;
}

std::uint64_t LiveReference::time_at(std::uint64_t position) const {
  const std::uint64_t at =
      position + sizeof(perf_event_header) + 8 * fields_before_time(settings_.sample_type);
  std::uint64_t time = 0;
  std::memcpy(&time, &ring_[static_cast<std::size_t>(at % ring_.size())], sizeof(time));
  return time;
}

std::int64_t LiveReference::epoll_wait() {
  std::array<epoll_event, 2> ready{};
  const int count =
      checked(::epoll_wait(epoll_.get(), ready.data(), ready.size(), 0), "epoll_wait");
  std::int64_t result = 0;
  for (int i = 0; i < count; ++i) {
    const epoll_event& event = ready[static_cast<std::size_t>(i)];
    result |= readiness(event.events) << (16 * event.data.u64);
  }
  return result;
}

// Older kernels report IN without RDNORM (K26). The first report decides which kind this is.
std::int64_t LiveReference::readiness(std::uint32_t events) {
  if ((events & EPOLLIN) == 0) return events;
  if (!reports_rdnorm_) reports_rdnorm_ = (events & EPOLLRDNORM) != 0;
  return *reports_rdnorm_ ? events : events | EPOLLRDNORM;
}

// Returns the kernel's count, or the number of refusals by the helper on kernels without a count.
std::uint64_t LiveReference::lost_of(std::size_t index) const {
  if (!counts_lost_) return refused_[index];
  struct {
    std::uint64_t value, id, lost;
  } read{};
  if (::read(events_[index].get(), &read, sizeof(read)) != sizeof(read)) fail("read of an event");
  return read.lost;
}

}  // namespace perfring::differential
