#include "harness/conformance/supervisor.h"

#include <fmt/format.h>
#include <linux/bpf.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstring>
#include <ctime>
#include <memory>
#include <system_error>
#include <utility>

#include "harness/conformance/traced_process.h"
#include "harness/kernel/eventpoll.h"
#include "harness/program/console.h"

namespace perfring::conformance {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr std::uint64_t kGuard = 2U << 20;
constexpr std::uint64_t kRingMax = 64U << 20;
constexpr int kSigints = 20;  // one may be lost (P25)
constexpr auto kPause = milliseconds{100};
constexpr auto kIdle = milliseconds{2000};  // for a program that opens no ring, or never waits

std::size_t size_of(std::uint64_t asked, std::size_t most) {
  return static_cast<std::size_t>(std::min<std::uint64_t>(asked, most));
}

ino_t inode_of(int fd) {
  struct stat of{};
  return fd >= 0 && ::fstat(fd, &of) == 0 ? of.st_ino : 0;
}

// A perf event of the subject's, and its ring once it is mapped.
struct Opened {
  perf_event_attr attr{};
  os::Fd file{::memfd_create("perf_event", MFD_CLOEXEC)};
  os::Fd wake{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
  std::span<std::byte> memory{};
  std::unique_ptr<rig::SimulatedRing> ring{};
  std::unique_ptr<kernel::EventfdWaiter> waiter{};
  std::uint64_t base = 0;  // in the subject

  Opened() = default;
  Opened(const Opened&) = delete;
  Opened& operator=(const Opened&) = delete;
  ~Opened() {
    waiter.reset();
    ring.reset();
    if (!memory.empty()) ::munmap(memory.data(), memory.size());
  }
  bool take_flag() const {
    std::uint64_t count = 0;
    return ::read(wake.get(), &count, sizeof(count)) == sizeof(count);
  }
};

class Supervisor {
 public:
  Supervisor(const std::vector<std::string>& command, const Case& of, const Supervision& limits)
      : case_{of},
        limits_{limits},
        process_{command,
                 {limits.cpu_seconds, limits.output},
                 {.call = [this](const seccomp_notif& call) { return answer(call); },
                  .maps_ring = [this](pid_t, int fd,
                                      std::uint64_t length) { return maps_ring(fd, length); },
                  .mapped = [this](std::uint64_t base, std::uint64_t) { mapping_->base = base; }}} {
  }

  Cell run(Reader read);

 private:
  struct Later {
    std::uint64_t id;
    Clock::time_point at;
  };

  Answer answer(const seccomp_notif& call);
  Answer open(const seccomp_notif& call);
  Answer bpf(const seccomp_notif& call);
  Answer map_info(const seccomp_notif& call);
  Answer control(const seccomp_notif& call);
  Answer add_to_epoll(const seccomp_notif& call);
  Answer poll(const seccomp_notif& call);
  bool maps_ring(int fd, std::uint64_t length);
  std::string why_impossible(const Opened& event, std::uint64_t pages) const;
  Opened* event_of(int fd);
  bool is_map(int fd);
  void producers_turn();
  void end_when_due();
  bool is_asleep();
  bool ended_badly(Cell& cell);
  Cell judge(Reader read);

  const Case& case_;
  const Supervision limits_;
  std::vector<std::unique_ptr<Opened>> events_;
  Opened* mapping_ = nullptr;  // that is being mapped
  Opened* playing_ = nullptr;  // in whose ring the case is played
  std::unique_ptr<Producer> producer_;
  os::Fd map_{::memfd_create("bpf_map", MFD_CLOEXEC)};
  std::vector<int> epolls_;  // that have a ring's descriptor
  std::vector<Later> later_;
  std::string impossible_;
  Tails tails_;
  std::uint64_t turns_ = 0;
  std::uint64_t waits_after_ = 0;
  int sigints_ = 0;
  bool killed_ = false;
  Clock::time_point begin_ = Clock::now();
  Clock::time_point checked_ = begin_;
  std::int64_t cpu_ = 0;
  TracedProcess process_;  // last: its handlers use all of the above
};

Opened* Supervisor::event_of(int fd) {
  const os::Fd copy = process_.copy_of(fd);
  const ino_t inode = inode_of(copy.get());
  for (const auto& event : events_) {
    if (inode != 0 && inode_of(event->file.get()) == inode) return event.get();
  }
  return nullptr;
}

bool Supervisor::is_map(int fd) {
  const os::Fd copy = process_.copy_of(fd);
  return copy.get() >= 0 && inode_of(copy.get()) == inode_of(map_.get());
}

Answer Supervisor::answer(const seccomp_notif& call) {
  switch (call.data.nr) {
    case SYS_perf_event_open:
      return open(call);
    case SYS_bpf:
      return bpf(call);
    case SYS_ioctl:
      return control(call);
    case SYS_epoll_ctl:
      return add_to_epoll(call);
#ifdef SYS_poll
    case SYS_poll:
#endif
    case SYS_ppoll:
      return poll(call);
    default:  // epoll_wait and its like: the subject sleeps and wakes by itself
      if (std::ranges::find(epolls_, static_cast<int>(call.data.args[0])) != epolls_.end()) {
        producers_turn();
      }
      return {.by_kernel = true};
  }
}

Answer Supervisor::open(const seccomp_notif& call) {
  perf_event_attr attr{};
  std::uint32_t size = 0;
  const std::uint64_t address = call.data.args[0];
  const auto thread = static_cast<pid_t>(call.pid);
  if (!process_.read(thread, address + offsetof(perf_event_attr, size), &size, sizeof(size))) {
    return {.value = -EFAULT};
  }
  if (size == 0) size = PERF_ATTR_SIZE_VER0;
  const std::size_t known = std::min<std::size_t>(size, sizeof(attr));
  if (!process_.read(thread, address, &attr, known)) return {.value = -EFAULT};
  if (attr.type != PERF_TYPE_SOFTWARE || attr.config != PERF_COUNT_SW_BPF_OUTPUT) {
    return {.by_kernel = true};
  }
  events_.push_back(std::make_unique<Opened>());
  events_.back()->attr = attr;
  return {.fd = events_.back()->file.get()};
}

Answer Supervisor::bpf(const seccomp_notif& call) {
  union bpf_attr attr{};
  const std::size_t size = size_of(call.data.args[2], sizeof(attr));
  const auto thread = static_cast<pid_t>(call.pid);
  if (!process_.read(thread, call.data.args[1], &attr, size)) return {.value = -EFAULT};
  switch (call.data.args[0]) {
    case BPF_MAP_CREATE:
      if (attr.map_type != BPF_MAP_TYPE_PERF_EVENT_ARRAY) return {.by_kernel = true};
      return {.fd = map_.get()};
    case BPF_MAP_GET_FD_BY_ID:
      return {.fd = map_.get()};
    case BPF_OBJ_GET_INFO_BY_FD:
      if (!is_map(static_cast<int>(attr.info.bpf_fd))) return {.by_kernel = true};
      return map_info(call);
    case BPF_MAP_UPDATE_ELEM: {
      std::uint32_t fd = 0;
      process_.read(thread, attr.value, &fd, sizeof(fd));
      Opened* const event = event_of(static_cast<int>(fd));
      if (event == nullptr) return {.by_kernel = !is_map(static_cast<int>(attr.map_fd))};
      if (event == playing_ && turns_ == 0) producer_->while_registering();
      return {};
    }
    case BPF_MAP_DELETE_ELEM:
      return {.by_kernel = !is_map(static_cast<int>(attr.map_fd))};
    default:
      return {.by_kernel = true};
  }
}

Answer Supervisor::map_info(const seccomp_notif& call) {
  const auto thread = static_cast<pid_t>(call.pid);
  union bpf_attr attr{};
  process_.read(thread, call.data.args[1], &attr, size_of(call.data.args[2], sizeof(attr)));
  bpf_map_info info{};
  info.type = BPF_MAP_TYPE_PERF_EVENT_ARRAY;
  info.id = 1;
  info.key_size = info.value_size = 4;
  info.max_entries = static_cast<std::uint32_t>(::sysconf(_SC_NPROCESSORS_CONF));
  std::strcpy(info.name, "conform");
  const std::size_t size = std::min<std::size_t>(attr.info.info_len, sizeof(info));
  return {.value = process_.write(thread, attr.info.info, &info, size) ? 0 : -EFAULT};
}

Answer Supervisor::control(const seccomp_notif& call) {
  if (event_of(static_cast<int>(call.data.args[0])) == nullptr) return {.by_kernel = true};
  switch (static_cast<std::uint32_t>(call.data.args[1])) {
    case PERF_EVENT_IOC_ENABLE:
    case PERF_EVENT_IOC_DISABLE:
    case PERF_EVENT_IOC_RESET:
      return {};
    default:
      impossible_ = fmt::format("ioctl {:#x} is not emulated", call.data.args[1]);
      return {.value = -ENOTTY};
  }
}

// The subject's epoll instance gets an eventfd in place of the ring's descriptor (P16).
Answer Supervisor::add_to_epoll(const seccomp_notif& call) {
  const Opened* const event = event_of(static_cast<int>(call.data.args[2]));
  if (event == nullptr) return {.by_kernel = true};
  const auto instance = static_cast<int>(call.data.args[0]);
  const auto operation = static_cast<int>(call.data.args[1]);
  epoll_event asked{};
  if (operation != EPOLL_CTL_DEL) {
    const auto thread = static_cast<pid_t>(call.pid);
    if (!process_.read(thread, call.data.args[3], &asked, sizeof(asked))) {
      return {.value = -EFAULT};
    }
    event->take_flag();  // K28
  }
  asked.events |= EPOLLET;  // K27
  const os::Fd copy = process_.copy_of(instance);
  if (::epoll_ctl(copy.get(), operation, event->wake.get(), &asked) != 0) return {.value = -errno};
  epolls_.push_back(instance);
  return {};
}

// A regular file is always ready, so this is answered here; it waits no longer than it asks for.
Answer Supervisor::poll(const seccomp_notif& call) {
  std::vector<pollfd> asked(size_of(call.data.args[1], 1024));
  const auto thread = static_cast<pid_t>(call.pid);
  const std::size_t size = asked.size() * sizeof(pollfd);
  if (!process_.read(thread, call.data.args[0], asked.data(), size)) return {.by_kernel = true};
  std::vector<std::pair<pollfd*, Opened*>> rings;
  for (pollfd& each : asked) {
    each.revents = 0;
    if (Opened* const event = each.fd >= 0 ? event_of(each.fd) : nullptr) {
      rings.emplace_back(&each, event);
    }
  }
  if (rings.empty()) return {.by_kernel = true};
  producers_turn();
  std::int64_t ready = 0;
  for (const auto& [each, event] : rings) {
    if (!event->take_flag()) continue;
    each->revents = static_cast<short>(each->events & (POLLIN | POLLRDNORM));
    ready += each->revents != 0 ? 1 : 0;
  }
  process_.write(thread, call.data.args[0], asked.data(), size);
  if (ready != 0) return {.value = ready};
  std::int64_t wait = static_cast<std::int32_t>(call.data.args[2]);  // milliseconds
  if (call.data.nr == SYS_ppoll) {
    timespec time{};
    const bool has_time =
        call.data.args[2] != 0 && process_.read(thread, call.data.args[2], &time, sizeof(time));
    wait = has_time ? time.tv_sec * 1000 + time.tv_nsec / 1'000'000 : -1;
  }
  if (wait == 0) return {};
  const auto longest = std::chrono::hours{1};
  later_.push_back({call.id, Clock::now() + (wait < 0 ? longest : milliseconds{wait})});
  return {.later = true};
}

std::string Supervisor::why_impossible(const Opened& event, std::uint64_t pages) const {
  const script::Settings& wanted = case_.settings;
  const auto& type = event.attr.sample_type;
  if ((type & PERF_SAMPLE_RAW) == 0 || (type & ~kernel::kSampleTypes) != 0) {
    return fmt::format("sample_type {:#x} is not simulated", std::uint64_t{type});
  }
  const bool others = wanted.sample_type != PERF_SAMPLE_RAW || wanted.sample_id_all;
  if (others && (wanted.sample_type != type || wanted.sample_id_all != event.attr.sample_id_all)) {
    return "the case is of another sample_type";
  }
  if (pages < wanted.pages || (case_.exact && pages != wanted.pages)) {
    return fmt::format("the ring has {} pages, the case needs {}", pages, wanted.pages);
  }
  return {};
}

bool Supervisor::maps_ring(int fd, std::uint64_t length) {
  Opened* const event = event_of(fd);
  const std::uint64_t pages = length / 4096 - 1;
  if (event == nullptr || event->ring != nullptr || length % 4096 != 0 ||
      !std::has_single_bit(pages) || length > kRingMax) {
    return false;
  }
  if (::ftruncate(event->file.get(), static_cast<off_t>(length)) != 0) return false;
  void* const mapped = ::mmap(nullptr, static_cast<std::size_t>(length), PROT_READ | PROT_WRITE,
                              MAP_SHARED, event->file.get(), 0);
  if (mapped == MAP_FAILED) return false;
  mapping_ = event;
  event->memory = {static_cast<std::byte*>(mapped), static_cast<std::size_t>(length)};
  const bool plays = playing_ == nullptr;
  if (plays) impossible_ = why_impossible(*event, pages);
  script::Settings settings = case_.settings;
  if (!plays) settings = {};
  // A ring that is longer ends as far behind the start.
  const std::uint64_t size = settings.pages * 4096;
  if (settings.start % size != 0 && settings.start < size) {
    settings.start += pages * 4096 - size;
  }
  settings.pages = pages;
  settings.sample_type = event->attr.sample_type & kernel::kSampleTypes;
  settings.sample_id_all = event->attr.sample_id_all != 0;
  settings.watermark = event->attr.watermark != 0;
  settings.wakeup = event->attr.wakeup_events;
  event->ring = std::make_unique<rig::SimulatedRing>(settings, event->memory);
  event->waiter = std::make_unique<kernel::EventfdWaiter>(event->ring->file(), event->wake.get());
  if (!plays) return true;
  playing_ = event;
  tails_ = {settings.start, settings.start, settings.start};
  producer_ = std::make_unique<Producer>(case_, *event->ring);
  return true;
}

void Supervisor::producers_turn() {
  if (playing_ == nullptr || !impossible_.empty()) {
    ++waits_after_;
    return;
  }
  const perf_event_mmap_page& page = playing_->ring->page();
  tails_.after = page.data_tail;
  if (!producer_->turn()) {
    ++waits_after_;
    return;
  }
  ++turns_;
  tails_ = {page.data_tail, page.data_head, page.data_tail};
}

// Little CPU time since the last look.
bool Supervisor::is_asleep() {
  clockid_t clock{};
  timespec time{};
  ::clock_getcpuclockid(process_.id(), &clock);
  ::clock_gettime(clock, &time);
  const std::int64_t now = time.tv_sec * 1'000'000'000 + time.tv_nsec;
  return now - std::exchange(cpu_, now) < 2'000'000;
}

// The subject is told to end once it has waited twice with nothing new, or sleeps for long; and is
// killed if it does not, or is out of time.
void Supervisor::end_when_due() {
  const auto now = Clock::now();
  if (std::chrono::duration<double>(now - begin_).count() > limits_.seconds) {
    killed_ = true;
    process_.signal(SIGKILL);
    return;
  }
  if (now - checked_ < (sigints_ == 0 && waits_after_ < 2 ? 4 * kPause : kPause)) return;
  checked_ = now;
  const bool asleep = is_asleep();
  // A producer need not wait until its consumer waits once more.
  if (asleep && turns_ != 0 && !producer_->is_over()) return producers_turn();
  const bool idle = turns_ == 0 && now - begin_ > kIdle;
  const bool over = waits_after_ >= 2 || (asleep && (idle || (producer_ && producer_->is_over())));
  if (!over && sigints_ == 0) return;
  process_.signal(++sigints_ <= kSigints ? SIGINT : SIGKILL);
}

Cell Supervisor::run(Reader read) {
  while (process_.step()) {
    end_when_due();
    const auto now = Clock::now();
    std::erase_if(later_, [&](const Later& each) {
      if (each.at > now) return false;
      process_.answer_later(each.id, 0);
      return true;
    });
  }
  return judge(read);
}

bool Supervisor::ended_badly(Cell& cell) {
  const int status = process_.status();
  const std::string err = process_.err();
  const std::string first = one_line(err.substr(0, std::min<std::size_t>(err.find('\n'), 200)));
  const std::string said = err.empty() ? "" : ": " + first;
  if (WIFEXITED(status)) {
    if (sigints_ > 0 || WEXITSTATUS(status) == 0) return false;
    cell.worsen(Outcome::Crashes, fmt::format("exit code {}{}", WEXITSTATUS(status), said));
    return true;
  }
  const int signal = WTERMSIG(status);
  if (signal == SIGXFSZ) {
    cell.worsen(Outcome::Floods, fmt::format("more than {} bytes of output", limits_.output));
  } else if (signal == SIGXCPU || killed_ || (signal == SIGKILL && sigints_ == 0)) {
    cell.worsen(Outcome::Hangs, fmt::format("no end; data_tail {:#x}, data_head {:#x}",
                                            playing_->ring->page().data_tail, tails_.head));
  } else if (signal == SIGINT || signal == SIGKILL) {
    return false;
  } else {
    const auto& fault = process_.fault();
    const std::uint64_t length = playing_->memory.size();
    const std::uint64_t at = fault ? fault->address - playing_->base : 0;
    if (fault && at + kGuard < length + 2 * kGuard) {
      cell.worsen(Outcome::OutOfBounds, fmt::format("signal {} at byte {} of the ring's {}", signal,
                                                    static_cast<std::int64_t>(at), length));
    } else {
      cell.worsen(Outcome::Crashes, fmt::format("signal {}{}", signal, said));
    }
  }
  return true;
}

Cell Supervisor::judge(Reader read) {
  Cell cell;
  const auto not_run = [&](const std::string& why) {
    Cell none;
    none.worsen(Outcome::NotRun, why);
    none.unsupported = !impossible_.empty();
    return none;
  };
  if (playing_ == nullptr) {
    const int status = process_.status();
    const bool absent = WIFEXITED(status) && WEXITSTATUS(status) == 127;
    const std::string err = process_.err();
    return not_run(fmt::format(
        "{}{}{}", absent ? "it cannot be started" : "it opened no ring", err.empty() ? "" : ": ",
        one_line(err.substr(0, std::min<std::size_t>(err.find('\n'), 200)))));
  }
  if (!impossible_.empty()) return not_run(impossible_);
  if (turns_ == 0 && producer_->expected_so_far().empty()) return not_run("it never waited");
  if (ended_badly(cell)) return cell;
  if (!producer_->is_over()) return not_run("it ended before the case did");
  const auto seen = read(process_.out());
  if (!seen) return not_run("its output is not understood: " + seen.error());
  tails_.after = playing_->ring->page().data_tail;
  judge_events(case_, producer_->expected_so_far(), *seen, cell);
  judge_tail(case_, tails_, cell);
  return cell;
}

}  // namespace

Cell run_supervised(const std::vector<std::string>& command, const Case& of, Reader read,
                    const Supervision& limits) {
  Cell cell;
  if (of.settings.word == kernel::Word::k32) {
    cell.worsen(Outcome::NotRun, "a 32-bit kernel runs no 64-bit program");
    cell.unsupported = true;
    return cell;
  }
  std::vector<std::string> words = command;
  for (std::string& word : words) {
    const std::size_t at = word.find("{pages}");
    if (at != std::string::npos) word.replace(at, 7, std::to_string(of.settings.pages));
  }
  try {
    return Supervisor{words, of, limits}.run(read);
  } catch (const std::system_error& error) {
    cell.worsen(Outcome::NotRun, fmt::format("this system does not allow it: {}", error.what()));
    return cell;
  }
}

}  // namespace perfring::conformance
