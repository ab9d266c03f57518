#include "perfring/testing/fake_kernel.h"

#include <fcntl.h>
#include <linux/netlink.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdarg>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>

namespace perfring::testing {
namespace {

FakeKernel* kernel = nullptr;

constexpr const char* kName = "perfring_fake_event";

int fail(int error) {
  errno = error;
  return -1;
}

// Precedes each message to a netlink socket.
struct Sender {
  std::uint32_t from;
  int error;  // of the receiver's call, if it is not 0
};

template <class T>
T* pointer_from(std::uint64_t address) {
  return reinterpret_cast<T*>(static_cast<std::uintptr_t>(address));
}

}  // namespace

FakeKernel::FakeKernel() {
  map_info.type = BPF_MAP_TYPE_PERF_EVENT_ARRAY;
  map_info.key_size = 4;
  map_info.value_size = 4;
  map_info.max_entries = 4096;
  kernel = this;
}

FakeKernel::~FakeKernel() {
  kernel = nullptr;
  if (netlink_[1] >= 0) ::close(netlink_[1]);
}

int FakeKernel::mappings() {
  std::ifstream maps{"/proc/self/maps"};
  int count = 0;
  for (std::string line; std::getline(maps, line);) count += line.find(kName) != line.npos;
  return count;
}

bool FakeKernel::is_mapped(int fd) {
  return mapped_size(fd) != 0;
}

std::size_t FakeKernel::mapped_size(int fd) {
  struct stat status{};
  if (::fstat(fd, &status) != 0) return 0;
  const std::string file = std::string{" "}.append(std::to_string(status.st_ino)).append(" ");
  std::ifstream maps{"/proc/self/maps"};
  std::size_t size = 0;
  for (std::string line; std::getline(maps, line);) {
    if (line.find(kName) == line.npos || line.find(file) == line.npos) continue;
    std::size_t end_of_first = 0;
    const std::uint64_t from = std::stoull(line, &end_of_first, 16);
    const std::uint64_t to = std::stoull(line.substr(end_of_first + 1), nullptr, 16);
    size += static_cast<std::size_t>(to - from);
  }
  return size;
}

bool FakeKernel::is_open(int fd) {
  return ::fcntl(fd, F_GETFD) != -1;
}

namespace {
// Distinguishes a file from a later one with the same descriptor.
ino_t inode_of(int fd) {
  struct stat status{};
  return ::fstat(fd, &status) == 0 ? status.st_ino : 0;
}
}  // namespace

std::vector<int> FakeKernel::opened() const {
  std::vector<int> all;
  for (const Opened& each : opened_) all.push_back(each.fd);
  return all;
}

int FakeKernel::perf_event_open(const perf_event_attr& attr) {
  event = attr;
  events.push_back(attr);
  if (open_errno != 0) return fail(open_errno);
  if (!knows_lost && (attr.read_format & PERF_FORMAT_LOST) != 0) return fail(EINVAL);
  const int fd =
      event_cannot_be_mapped ? ::eventfd(0, EFD_CLOEXEC) : ::memfd_create(kName, MFD_CLOEXEC);
  if (!event_cannot_be_mapped && ::ftruncate(fd, 1 << 20) != 0) std::abort();
  calls.push_back("open " + std::to_string(fd));
  // (All eventfds share one inode, with other files, too.)
  opened_.push_back({fd, event_cannot_be_mapped ? 0 : inode_of(fd)});
  return fd;
}

// Reads like perf_read_one(), for the formats that are used (kernel/events/core.c at v6.18).
std::optional<ssize_t> FakeKernel::read_event(int fd, void* to, std::size_t size) {
  const ino_t inode = inode_of(fd);
  const auto its = std::ranges::find(opened_, inode, &Opened::inode);
  if (inode == 0 || its == opened_.end()) return std::nullopt;
  const auto found = lost.find(its->fd);
  const std::uint64_t words[]{0, found == lost.end() ? 0 : found->second};
  const std::size_t length = knows_lost ? sizeof(words) : sizeof(words[0]);
  if (size < length) return fail(ENOSPC);
  std::memcpy(to, words, length);
  return static_cast<ssize_t>(length);
}

int FakeKernel::watch(int operation, int fd) {
  calls.push_back((operation == EPOLL_CTL_ADD ? "watch " : "unwatch ") + std::to_string(fd));
  return 0;
}

int FakeKernel::netlink_socket() {
  if (netlink_[1] >= 0) ::close(netlink_[1]);
  if (::socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, netlink_) != 0) {
    std::abort();
  }
  return netlink_[0];
}

void FakeKernel::send_uevent(std::string_view message, std::uint32_t from) const {
  const Sender sender{from, 0};
  std::string all(reinterpret_cast<const char*>(&sender), sizeof(sender));
  all += message;
  ASSERT_EQ(::send(netlink_[1], all.data(), all.size(), 0), static_cast<ssize_t>(all.size()));
}

void FakeKernel::drop_uevents() const {
  const Sender sender{0, ENOBUFS};
  ASSERT_EQ(::send(netlink_[1], &sender, sizeof(sender), 0), ssize_t{sizeof(sender)});
}

int FakeKernel::ioctl(int fd, unsigned long request, long argument) {
  if (request == PERF_EVENT_IOC_PAUSE_OUTPUT) {
    calls.push_back((argument != 0 ? "pause " : "resume ") + std::to_string(fd));
    return pause_errno != 0 ? fail(pause_errno) : 0;
  }
  if (request == PERF_EVENT_IOC_SET_OUTPUT) {
    calls.push_back("set_output " + std::to_string(fd));
    return output_errno != 0 ? fail(output_errno) : 0;
  }
  if (request == PERF_EVENT_IOC_ID) {
    *reinterpret_cast<std::uint64_t*>(argument) = static_cast<std::uint64_t>(fd);
    return 0;
  }
  const bool enable = request == PERF_EVENT_IOC_ENABLE;
  calls.push_back((enable ? "enable " : "disable ") + std::to_string(fd) +
                  (is_mapped(fd) ? ", mapped" : ", not mapped") +
                  (argument != 0 ? ", with its group" : ""));
  if (!is_open(fd)) return fail(EBADF);
  return enable && enable_errno != 0 ? fail(enable_errno) : 0;
}

int FakeKernel::bpf_call(int command, bpf_attr& attr) {
  std::memcpy(&bpf, &attr, sizeof(attr));
  switch (command) {
    case BPF_OBJ_GET_INFO_BY_FD:
      calls.push_back("info");
      if (info_errno != 0) return fail(info_errno);
      if (!is_open(static_cast<int>(attr.info.bpf_fd))) return fail(EBADF);
      if (attr.info.info_len != sizeof(map_info)) return fail(EFAULT);
      std::memcpy(pointer_from<void>(attr.info.info), &map_info, sizeof(map_info));
      return 0;
    case BPF_MAP_UPDATE_ELEM:
      calls.push_back("update");
      updated = {*pointer_from<const unsigned>(attr.key),
                 *pointer_from<const unsigned>(attr.value)};
      updates.push_back(updated);
      return update_errno != 0 ? fail(update_errno) : 0;
    case BPF_MAP_DELETE_ELEM:
      calls.push_back("delete " + std::to_string(*pointer_from<const unsigned>(attr.key)));
      return delete_errno != 0 ? fail(delete_errno) : 0;
    case BPF_OBJ_PIN:
      calls.push_back("pin");
      path = pointer_from<const char>(attr.pathname);
      return pin_errno != 0 ? fail(pin_errno) : 0;
    case BPF_OBJ_GET:
      calls.push_back("get");
      path = pointer_from<const char>(attr.pathname);
      if (attr.file_flags != 0 || attr.bpf_fd != 0) return fail(EINVAL);
      if (get_errno != 0) return fail(get_errno);
      return ::open("/dev/null", O_RDONLY | O_CLOEXEC);
    case BPF_MAP_CREATE:
      calls.push_back("create " + std::to_string(attr.map_type));
      if (create_errno != 0) return fail(create_errno);
      // Like array_map_alloc_check() and bpf_map_meta_alloc() (kernel/bpf/arraymap.c and
      // map_in_map.c at v6.18).
      if (attr.max_entries == 0 || attr.key_size != 4 || attr.value_size != 4) return fail(EINVAL);
      if (attr.map_type == BPF_MAP_TYPE_ARRAY_OF_MAPS &&
          (attr.inner_map_fd == 0 || !is_open(static_cast<int>(attr.inner_map_fd)))) {
        return fail(EBADF);
      }
      return ::open("/dev/null", O_RDONLY | O_CLOEXEC);
    default:
      calls.push_back("bpf " + std::to_string(command));
      return fail(EINVAL);
  }
}

int FakeKernel::open_file(const std::optional<std::string>& text, int open_flags) {
  file_flags = open_flags;
  if (!text) return fail(ENOENT);
  const int fd = ::memfd_create("perfring_fake_file", MFD_CLOEXEC);
  if (::pwrite(fd, text->data(), text->size(), 0) != static_cast<ssize_t>(text->size())) {
    std::abort();
  }
  return file_ = fd;
}

void FakeKernel::look_at_file(int fd) {
  if (fd == file_ && cut_to >= 0 && ::ftruncate(fd, cut_to) != 0) std::abort();
}

}  // namespace perfring::testing

// Replacements for libc's functions (ld --wrap), which pass everything else on to the originals.
extern "C" long __real_syscall(long number, ...) noexcept;
extern "C" int __real_ioctl(int fd, unsigned long request, ...) noexcept;
extern "C" int __real_epoll_ctl(int epoll, int operation, int fd, epoll_event* event) noexcept;
extern "C" int __real_open(const char* path, int flags, ...);
extern "C" int __real_fstat(int fd, struct stat* status) noexcept;
extern "C" int __real_socket(int domain, int type, int protocol) noexcept;
extern "C" int __real_bind(int socket, const sockaddr* address, socklen_t size) noexcept;
extern "C" ssize_t __real_recvfrom(int socket, void* to, size_t size, int flags, sockaddr* from,
                                   socklen_t* from_size);
extern "C" long __real_sysconf(int name) noexcept;
extern "C" ssize_t __real_read(int fd, void* to, size_t size);

extern "C" ssize_t __wrap_read(int fd, void* to, size_t size) {
  using perfring::testing::kernel;
  const auto length = kernel != nullptr ? kernel->read_event(fd, to, size) : std::nullopt;
  return length ? *length : __real_read(fd, to, size);
}

extern "C" long __wrap_syscall(long number, ...) noexcept {
  using perfring::testing::kernel;
  va_list list;
  va_start(list, number);
  long arguments[6];
  for (long& each : arguments) each = va_arg(list, long);
  va_end(list);
  if (kernel != nullptr && number == SYS_perf_event_open) {
    kernel->pid = static_cast<int>(arguments[1]);
    kernel->cpu = static_cast<int>(arguments[2]);
    kernel->group = static_cast<int>(arguments[3]);
    kernel->flags = static_cast<unsigned long>(arguments[4]);
    return kernel->perf_event_open(*reinterpret_cast<const perf_event_attr*>(arguments[0]));
  }
  if (kernel != nullptr && number == SYS_bpf) {
    kernel->bpf_size = static_cast<std::size_t>(arguments[2]);
    return kernel->bpf_call(static_cast<int>(arguments[0]),
                            *reinterpret_cast<bpf_attr*>(arguments[1]));
  }
  if (kernel != nullptr && number == SYS_epoll_pwait2 && kernel->pwait2_errno != 0) {
    return perfring::testing::fail(kernel->pwait2_errno);
  }
  if (kernel != nullptr && number == SYS_membarrier) {
    kernel->calls.push_back("membarrier");
    if (kernel->barrier_errno != 0) return perfring::testing::fail(kernel->barrier_errno);
    return 0;
  }
  return __real_syscall(number, arguments[0], arguments[1], arguments[2], arguments[3],
                        arguments[4], arguments[5]);
}

extern "C" int __wrap_ioctl(int fd, unsigned long request, ...) noexcept {
  using perfring::testing::kernel;
  va_list list;
  va_start(list, request);
  const long argument = va_arg(list, long);
  va_end(list);
  if (kernel != nullptr &&
      (request == PERF_EVENT_IOC_ENABLE || request == PERF_EVENT_IOC_DISABLE ||
       request == PERF_EVENT_IOC_SET_OUTPUT || request == PERF_EVENT_IOC_PAUSE_OUTPUT ||
       request == PERF_EVENT_IOC_ID)) {
    return kernel->ioctl(fd, request, argument);
  }
  return __real_ioctl(fd, request, argument);
}

// An event is a file in memory here, which epoll refuses (EPERM) to add and therefore to remove.
extern "C" int __wrap_epoll_ctl(int epoll, int operation, int fd, epoll_event* event) noexcept {
  using perfring::testing::kernel;
  const int returned = __real_epoll_ctl(epoll, operation, fd, event);
  if (kernel == nullptr || returned == 0 || errno != EPERM) return returned;
  return kernel->watch(operation, fd);
}

// The machine's uevents would end waits: a virtual machine that starts during the test sends one.
extern "C" int __wrap_socket(int domain, int type, int protocol) noexcept {
  using perfring::testing::kernel;
  if (kernel != nullptr && domain == AF_NETLINK) return kernel->netlink_socket();
  return __real_socket(domain, type, protocol);
}

extern "C" ssize_t __wrap_recvfrom(int socket, void* to, size_t size, int flags, sockaddr* from,
                                   socklen_t* from_size) {
  using perfring::testing::kernel;
  if (kernel == nullptr || !kernel->is_netlink(socket)) {
    return __real_recvfrom(socket, to, size, flags, from, from_size);
  }
  perfring::testing::Sender sender{};
  std::string all(sizeof(sender) + size, 0);
  const ssize_t received = __real_recvfrom(socket, all.data(), all.size(), flags, nullptr, nullptr);
  if (received < 0) return received;
  std::memcpy(&sender, all.data(), sizeof(sender));
  if (sender.error != 0) return perfring::testing::fail(sender.error);
  sockaddr_nl address{};
  address.nl_family = AF_NETLINK;
  address.nl_pid = sender.from;
  std::memcpy(from, &address, sizeof(address));
  *from_size = sizeof(address);
  const std::size_t length = static_cast<std::size_t>(received) - sizeof(sender);
  std::memcpy(to, all.data() + sizeof(sender), length);
  return static_cast<ssize_t>(length);
}

extern "C" int __wrap_bind(int socket, const sockaddr* address, socklen_t size) noexcept {
  if (perfring::testing::kernel != nullptr && address->sa_family == AF_NETLINK) return 0;
  return __real_bind(socket, address, size);
}

extern "C" int __wrap_open(const char* path, int flags, ...) {
  using perfring::testing::kernel;
  va_list list;
  va_start(list, flags);
  const mode_t mode = va_arg(list, mode_t);
  va_end(list);
  if (kernel != nullptr) {
    const auto file = kernel->files.find(path);
    if (file != kernel->files.end()) return kernel->open_file(file->second, flags);
  }
  return __real_open(path, flags, mode);
}

extern "C" int __wrap_fstat(int fd, struct stat* status) noexcept {
  const int returned = __real_fstat(fd, status);
  if (perfring::testing::kernel != nullptr) perfring::testing::kernel->look_at_file(fd);
  return returned;
}

// ThreadSanitizer calls this before any instrumented code may run.
#if defined(__clang__)
__attribute__((disable_sanitizer_instrumentation))
#endif
extern "C" long
__wrap_sysconf(int name) noexcept {
  using perfring::testing::kernel;
  if (name == _SC_PAGESIZE) {
    if (kernel != nullptr && kernel->page_size != 0) return static_cast<long>(kernel->page_size);
    if (const char* const size = ::getenv("PERFRING_PAGE_SIZE")) return std::atol(size);
  }
  return __real_sysconf(name);
}
