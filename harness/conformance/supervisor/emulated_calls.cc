#include "harness/conformance/supervisor/emulated_calls.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/audit.h>
#include <linux/bpf.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string_view>
#include <utility>

#include "harness/kernel/perf_event.h"
#include "harness/program/checked.h"
#include "perfring/os/cpus.h"
#include "perfring/os/syscalls.h"

namespace perfring::conformance {
namespace {

std::size_t size_of(std::uint64_t requested, std::size_t most) {
  return static_cast<std::size_t>(std::min<std::uint64_t>(requested, most));
}

constexpr std::uint32_t kIdOfI386 = 0x8004'2407;  // PERF_EVENT_IOC_ID, with a pointer of 4 bytes

ino_t inode_of(int fd) {
  struct stat of{};
  return fd >= 0 && ::fstat(fd, &of) == 0 ? of.st_ino : 0;
}

}  // namespace

ProgramEvent::ProgramEvent()
    : file{checked(::memfd_create("perf_event", MFD_CLOEXEC | MFD_ALLOW_SEALING), "memfd_create")},
      wake{checked(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), "eventfd")} {
  checked(::ftruncate(file.get(), 4096), "ftruncate");  // one page to read, for was_read()
}

ProgramEvent::~ProgramEvent() {
  waiter.reset();
  ring.reset();
  if (!memory.empty()) ::munmap(memory.data(), memory.size());
}

// The program's descriptor shares this one's offset, which a read moves.
bool ProgramEvent::was_read() const {
  return ::lseek(file.get(), 0, SEEK_CUR) > 0;
}

void ProgramEvent::make_ring(const script::Settings& settings) {
  ring = std::make_unique<rig::SimulatedRing>(settings, memory, identity_of_cpu(cpu));
  waiter = std::make_unique<kernel::EventfdWaiter>(ring->file(), wake.get());
  if (attr.disabled != 0) kernel::perf_event_disable(ring->event());
}

void ProgramEvent::set_enabled(bool enabled) {
  attr.disabled = enabled ? 0 : 1;
  if (ring == nullptr) return;
  enabled ? kernel::perf_event_enable(ring->event()) : kernel::perf_event_disable(ring->event());
}

bool ProgramEvent::take_flag() const {
  std::uint64_t count = 0;
  return ::read(wake.get(), &count, sizeof(count)) == sizeof(count);
}

void ProgramEvent::put_flag_back() const {
  static_cast<void>(::eventfd_write(wake.get(), 1));
}

EmulatedCalls::EmulatedCalls(TracedProcess& process, PlayListener& listener, live::Emitter* emitter,
                             bool loads_programs)
    : process_{process},
      listener_{listener},
      emitter_{emitter},
      map_{emitter != nullptr
               ? checked(::fcntl(emitter->map_fd(), F_DUPFD_CLOEXEC, 0), "fcntl(F_DUPFD_CLOEXEC)")
               : checked(::memfd_create("bpf_map", MFD_CLOEXEC), "memfd_create")} {
  if (loads_programs && emitter == nullptr) {  // a kernel that refuses will tell the program so
    auto map = os::bpf_map_create(BPF_MAP_TYPE_PERF_EVENT_ARRAY, 64, 0);
    if (map) map_ = *std::move(map);
  }
  if (const auto info = os::bpf_map_info_of(map_.get())) map_id_ = info->id;
}

// The kernel's own events share one inode, but each has an id.
ProgramEvent* EmulatedCalls::event_of(pid_t thread, int fd) {
  const os::Fd copy = process_.copy_of(thread, fd);
  const ino_t inode = inode_of(copy.get());
  std::uint64_t id = 0;
  if (emitter_ != nullptr && ::ioctl(copy.get(), PERF_EVENT_IOC_ID, &id) != 0) return nullptr;
  for (const auto& event : events_) {
    const bool same = id != 0 ? event->id == id : inode_of(event->file.get()) == inode;
    if (inode != 0 && same) return event.get();
  }
  return nullptr;
}

bool EmulatedCalls::is_map(pid_t thread, int fd) {
  const os::Fd copy = process_.copy_of(thread, fd);
  if (map_id_ == 0) return copy.get() >= 0 && inode_of(copy.get()) == inode_of(map_.get());
  const auto info = os::bpf_map_info_of(copy.get());
  return info && info->id == map_id_;
}

CallAnswer EmulatedCalls::answer(const seccomp_notif& call) {
  switch (emulated(call.data)) {
    case Emulated::PerfEventOpen:
      return open(call);
    case Emulated::Bpf:
      return bpf(call);
    case Emulated::Open:
      return open_file(call, call.data.args[0]);
    case Emulated::Openat:
      return open_file(call, call.data.args[1]);
    case Emulated::Ioctl:
      return control(call);
    case Emulated::EpollCtl:
      return add_to_epoll(call);
    case Emulated::Poll:
    case Emulated::Ppoll:
    case Emulated::PpollTime64:
    case Emulated::Select:
    case Emulated::Pselect:
    case Emulated::PselectTime64:
      return poll(call);
    case Emulated::EpollWait:  // by the kernel: eventfds wake the program
      if (std::ranges::find(epolls_, static_cast<int>(call.data.args[0])) != epolls_.end()) {
        listener_.on_wait();
      }
      return {.by_kernel = true};
    case Emulated::None:
      break;
  }
  return {.by_kernel = true};
}

CallAnswer EmulatedCalls::open(const seccomp_notif& call) {
  perf_event_attr attr{};
  std::uint32_t size = 0;
  const std::uint64_t address = call.data.args[0];
  const pid_t thread = thread_of(call);
  if (!process_.read(thread, address + offsetof(perf_event_attr, size), &size, sizeof(size))) {
    return {.value = -EFAULT};
  }
  if (size == 0) size = PERF_ATTR_SIZE_VER0;
  const std::size_t known = std::min<std::size_t>(size, sizeof(attr));
  if (!process_.read(thread, address, &attr, known)) return {.value = -EFAULT};
  if (attr.type != PERF_TYPE_SOFTWARE || attr.config != PERF_COUNT_SW_BPF_OUTPUT) {
    return {.by_kernel = true};
  }
  const auto cpu = std::max(static_cast<std::int32_t>(call.data.args[2]), 0);
  const Case& of = listener_.played_case();
  if (static_cast<std::uint64_t>(cpu) >= of.cpus) return {.value = -EINVAL};
  if (of.absent.contains(static_cast<std::uint64_t>(cpu))) return {.value = -ENODEV};  // K34
  auto event = std::make_unique<ProgramEvent>();
  event->attr = attr;
  event->cpu = static_cast<std::size_t>(cpu);
  event->of_32_bits = call.data.arch == AUDIT_ARCH_I386;
  if (emitter_ != nullptr) {
    attr.size = std::min<std::uint32_t>(attr.size, sizeof(attr));
    auto opened = os::perf_event_open(attr, static_cast<std::uint32_t>(cpu));
    if (!opened) return {.value = -opened.error().value()};
    event->file = *std::move(opened);
    ::ioctl(event->file.get(), PERF_EVENT_IOC_ID, &event->id);
  }
  events_.push_back(std::move(event));
  return {.fd = events_.back()->file.get()};
}

// Answers the opening of a CPU list: it lists the case's CPUs, on any machine (P9).
CallAnswer EmulatedCalls::open_file(const seccomp_notif& call, std::uint64_t path) {
  const Case& of = listener_.played_case();
  for (const std::string_view name : {"online", "possible", "present"}) {
    const std::string file = fmt::format("/sys/devices/system/cpu/{}", name);
    std::string requested_path(file.size() + 1, '\0');
    if (!process_.read(thread_of(call), path, requested_path.data(), requested_path.size()) ||
        requested_path != std::string_view{file.c_str(), requested_path.size()}) {
      continue;
    }
    std::vector<std::uint32_t> cpus;
    for (std::uint32_t cpu = 0; cpu < of.cpus; ++cpu) {
      if (name != "online" || !of.absent.contains(cpu)) cpus.push_back(cpu);
    }
    const std::string list = os::to_cpu_list(cpus) + "\n";
    cpu_list_ = os::Fd{checked(::memfd_create("cpus", MFD_CLOEXEC), "memfd_create")};
    checked(::pwrite(cpu_list_.get(), list.data(), list.size(), 0), "pwrite");
    return {.fd = cpu_list_.get()};
  }
  return {.by_kernel = true};
}

CallAnswer EmulatedCalls::bpf(const seccomp_notif& call) {
  union bpf_attr attr{};
  const std::size_t size = size_of(call.data.args[2], sizeof(attr));
  const pid_t thread = thread_of(call);
  if (!process_.read(thread, call.data.args[1], &attr, size)) return {.value = -EFAULT};
  switch (call.data.args[0]) {
    case BPF_MAP_CREATE:
      if (attr.map_type != BPF_MAP_TYPE_PERF_EVENT_ARRAY) return {.by_kernel = true};
      return {.fd = map_.get()};
    case BPF_MAP_GET_FD_BY_ID:
      return {.fd = map_.get()};
    case BPF_OBJ_GET_INFO_BY_FD:
      if (emitter_ != nullptr || !is_map(thread, static_cast<int>(attr.info.bpf_fd))) {
        return {.by_kernel = true};
      }
      return map_info(call);
    case BPF_MAP_UPDATE_ELEM:
      return update_map(thread, attr);
    case BPF_MAP_DELETE_ELEM: {
      if (!is_map(thread, static_cast<int>(attr.map_fd))) return {.by_kernel = true};
      std::uint32_t key = 0;
      if (!process_.read(thread, attr.key, &key, sizeof(key))) return {.value = -EFAULT};
      listener_.on_map_delete(key);
      return {.by_kernel = emitter_ != nullptr};
    }
    default:
      return {.by_kernel = true};
  }
}

// Updates the kernel's own map itself, because the producer writes right after the update.
CallAnswer EmulatedCalls::update_map(pid_t thread, const bpf_attr& attr) {
  std::uint32_t key = 0;
  std::uint32_t fd = 0;
  const bool ours = is_map(thread, static_cast<int>(attr.map_fd));
  if (!ours || !process_.read(thread, attr.key, &key, sizeof(key)) ||
      !process_.read(thread, attr.value, &fd, sizeof(fd))) {
    return {.by_kernel = true};
  }
  ProgramEvent* const event = event_of(thread, static_cast<int>(fd));
  if (event == nullptr) return {.by_kernel = emitter_ != nullptr};
  if (emitter_ != nullptr) {
    const auto copy = static_cast<std::uint32_t>(event->file.get());
    const auto done = os::bpf_map_update(map_.get(), key, copy);
    if (!done) return {.value = -done.error().value()};
  }
  listener_.on_map_update(key, *event);
  return {};
}

CallAnswer EmulatedCalls::map_info(const seccomp_notif& call) {
  const pid_t thread = thread_of(call);
  union bpf_attr attr{};
  process_.read(thread, call.data.args[1], &attr, size_of(call.data.args[2], sizeof(attr)));
  bpf_map_info info{};
  info.type = BPF_MAP_TYPE_PERF_EVENT_ARRAY;
  info.id = 1;
  info.key_size = info.value_size = 4;
  info.max_entries = static_cast<std::uint32_t>(listener_.played_case().cpus);
  std::strcpy(info.name, "conform");
  const std::size_t size = std::min<std::size_t>(attr.info.info_len, sizeof(info));
  return {.value = process_.write(thread, attr.info.info, &info, size) ? 0 : -EFAULT};
}

CallAnswer EmulatedCalls::control(const seccomp_notif& call) {
  ProgramEvent* const event = event_of(thread_of(call), static_cast<int>(call.data.args[0]));
  if (event == nullptr || emitter_ != nullptr) return {.by_kernel = true};
  const auto request = static_cast<std::uint32_t>(call.data.args[1]);
  if (request == kIdOfI386) return id_of(call, *event);
  switch (request) {
    case PERF_EVENT_IOC_ENABLE:
    case PERF_EVENT_IOC_DISABLE:
      event->set_enabled(request == PERF_EVENT_IOC_ENABLE);
      if (event->attr.disabled == 0) listener_.on_enabled(*event);
      return {};
    case PERF_EVENT_IOC_ID:
      return id_of(call, *event);
    case PERF_EVENT_IOC_RESET:
      return {};
    default:
      listener_.on_not_emulated(fmt::format("ioctl {:#x}", call.data.args[1]));
      return {.value = -ENOTTY};
  }
}

CallAnswer EmulatedCalls::id_of(const seccomp_notif& call, const ProgramEvent& event) {
  const std::uint64_t id = identity_of_cpu(event.cpu).ids[0];
  const bool written = process_.write(thread_of(call), call.data.args[2], &id, sizeof(id));
  return {.value = written ? 0 : -EFAULT};
}

}  // namespace perfring::conformance
