#include "harness/live/live_testing.h"

#include <grp.h>
#include <linux/bpf_common.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/hw_breakpoint.h>
#include <linux/perf_event.h>
#include <linux/prctl.h>
#include <linux/seccomp.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <fstream>
#include <ios>
#include <iterator>
#include <ostream>
#include <sstream>
#include <system_error>
#include <variant>

#include "harness/live/require_live_kernel.h"
#include "harness/program/child_process.h"
#include "harness/program/privileges.h"
#include "perfring/os/cpus.h"
#include "perfring/os/fd.h"
#include "perfring/perf_event.h"
#include "perfring/perf_event_array.h"

namespace perfring::live {
namespace {

// `event` is a Sample or a Malformed.
DeliveredEvent slices(DeliveredEvent::Kind kind, const auto& event) {
  DeliveredEvent copied{.kind = kind, .bytes{}, .head = event.head, .tail = event.tail};
  copied.bytes.resize(event.size());
  event.copy_to(copied.bytes);
  return copied;
}

DeliveredEvent copy_of(const Sample& sample) {
  return slices(DeliveredEvent::Kind::Sample, sample);
}
DeliveredEvent copy_of(const Lost& lost) {
  return {.kind = DeliveredEvent::Kind::Lost, .bytes{}, .count = lost.count, .head{}, .tail{}};
}
DeliveredEvent copy_of(const Malformed& malformed) {
  DeliveredEvent copied = slices(DeliveredEvent::Kind::Malformed, malformed);
  copied.defect = malformed.defect;
  return copied;
}

}  // namespace

std::uint64_t DeliveredEvent::number() const {
  std::uint64_t number = 0;
  if (bytes.size() < sizeof(number)) throw std::logic_error("a record too short for its number");
  std::memcpy(&number, bytes.data(), sizeof(number));
  return number;
}

DeliveredEvent copy_event(const PerfEvent& event) {
  return std::visit([](const auto& e) { return copy_of(e); }, event);
}

void PrintTo(const DeliveredEvent& copied, std::ostream* out) {
  switch (copied.kind) {
    case DeliveredEvent::Kind::Sample:
      *out << "Sample of " << copied.head.size() << " + " << copied.tail.size() << " bytes";
      return;
    case DeliveredEvent::Kind::Lost:
      *out << "Lost " << copied.count;
      return;
    case DeliveredEvent::Kind::Malformed:
      *out << to_string(copied.defect) << " of " << copied.bytes.size() << " bytes";
      return;
  }
}

MappedRing::MappedRing(const DeliveredEvent& first, std::size_t page_count)
    : page{*reinterpret_cast<const perf_event_mmap_page*>(first.head.data() - 12 -
                                                          os::page_size())},
      data{first.head.data() - 12, page_count * os::page_size()} {}

void LiveTest::SetUp() {
  if (!require_live_kernel()) return;
  cpus_ = os::online_cpus().value();  // why_no_live_kernel() has read them
  emitter_.emplace(must(Emitter::create()));
  array_.emplace(must(PerfEventArray::from_fd(emitter().map_fd())));
}

void RootTest::SetUp() {
  const bool has_perf = os::read_line("/proc/sys/kernel/perf_event_paranoid").has_value();
  if (is_root() && has_perf && !is_perf_event_open_filtered() && os::online_cpus()) return;
  constexpr const char* kNeeds = "it needs root, perf_event_open, and sysfs's list of online CPUs";
  if (std::getenv("PERFRING_REQUIRE_LIVE") != nullptr) FAIL() << kNeeds;
  GTEST_SKIP() << kNeeds;
}

void LiveTest::fill_payload(std::size_t size, unsigned seed) {
  const auto payload = emitter().payload().first(size);
  for (std::size_t i = 0; i < size; ++i) {
    payload[i] = static_cast<std::byte>((i * 31 + i / 251 + seed * 101 + 1) & 0xff);
  }
}

testing::AssertionResult LiveTest::is_payload(const DeliveredEvent& copied, std::size_t size) {
  if (!copied.is_sample()) return testing::AssertionFailure() << testing::PrintToString(copied);
  if (copied.bytes.size() != raw_size(size)) {
    return testing::AssertionFailure()
           << "raw size " << copied.bytes.size() << ", not " << raw_size(size);
  }
  const auto sent = emitter().payload().first(size);
  const auto differs = std::mismatch(sent.begin(), sent.end(), copied.bytes.begin()).first;
  if (differs == sent.end()) return testing::AssertionSuccess();
  return testing::AssertionFailure() << "byte " << differs - sent.begin() << " differs";
}

namespace {

constexpr const char* kPerfEvent = "anon_inode:[perf_event]";

void check(long rc, const char* what) {
  if (rc < 0) throw std::system_error(errno, std::generic_category(), what);
}

std::string text_of(const std::function<std::string()>& body) {
  try {
    return body();
  } catch (const std::exception& exception) {
    return std::string{"[threw "} + exception.what() + "]";
  }
}

std::string read_all(int fd) {
  std::string text;
  std::array<char, 4096> chunk;
  for (;;) {
    const ssize_t length = ::read(fd, chunk.data(), chunk.size());
    if (length < 0 && errno == EINTR) continue;
    check(length, "read");
    if (length == 0) return text;
    text.append(chunk.data(), static_cast<std::size_t>(length));
  }
}

void filter(std::span<sock_filter> program) {
  sock_fprog loaded{static_cast<unsigned short>(program.size()), program.data()};
  check(::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "PR_SET_NO_NEW_PRIVS");
  check(::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &loaded), "PR_SET_SECCOMP");
}

// Returns the offset of an argument's low word.
constexpr std::uint32_t low_word_of(std::uint32_t argument) {
  return static_cast<std::uint32_t>(offsetof(seccomp_data, args)) + argument * 8 +
         (std::endian::native == std::endian::big ? 4 : 0);
}

constexpr std::uint32_t with_errno(int error_number) {
  return SECCOMP_RET_ERRNO | static_cast<std::uint32_t>(error_number);
}

}  // namespace

std::size_t open_files() {
  const auto begin = std::filesystem::directory_iterator("/proc/self/fd");
  return static_cast<std::size_t>(std::distance(begin, {})) - 1;  // except the iterator's own
}

std::size_t perf_event_files() {
  std::size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    count += std::filesystem::read_symlink(entry) == kPerfEvent;
  }
  return count;
}

bool breakpoints_are_silent() {
  volatile int watched = 0;
  perf_event_attr attr{};
  attr.type = PERF_TYPE_BREAKPOINT;
  attr.size = sizeof(attr);
  attr.bp_type = HW_BREAKPOINT_W;
  attr.bp_addr = reinterpret_cast<std::uintptr_t>(&watched);
  attr.bp_len = HW_BREAKPOINT_LEN_4;
  attr.exclude_kernel = 1;
  const os::Fd event{
      static_cast<int>(::syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC))};
  watched = 1;
  std::uint64_t hits = 0;
  return ::read(event.get(), &hits, sizeof(hits)) == sizeof(hits) && hits == 0;
}

bool is_linux(int major, int minor) {
  utsname name{};
  std::pair<int, int> release;
  if (::uname(&name) != 0 ||
      std::sscanf(name.release, "%d.%d", &release.first, &release.second) != 2) {
    throw std::runtime_error{std::string{"not a version of Linux: "} + name.release};
  }
  return release >= std::pair{major, minor};
}

std::vector<MappedFile> perf_event_mappings() {
  std::vector<MappedFile> mappings;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    if (line.find(kPerfEvent) == std::string::npos) continue;
    std::istringstream fields(line);
    std::size_t from = 0;
    std::size_t to = 0;
    char dash = 0;
    std::string permissions;
    fields >> std::hex >> from >> dash >> to >> permissions;
    mappings.push_back({to - from, permissions});
  }
  return mappings;
}

std::string in_child(const std::function<std::string()>& body) {
  std::array<int, 2> ends{};
  check(::pipe(ends.data()), "pipe");
  os::Fd out{ends[0]};
  os::Fd in{ends[1]};
  ForkedChild child{[&] {
    const std::string text = text_of(body);
    const ssize_t written = ::write(in.get(), text.data(), text.size());
    return written == static_cast<ssize_t>(text.size()) ? 0 : 1;
  }};
  in = os::Fd{};
  const std::string text = read_all(out.get());
  const int status = child.wait();
  if (WIFSIGNALED(status)) return "[killed by signal " + std::to_string(WTERMSIG(status)) + "]";
  if (WEXITSTATUS(status) != 0) return "[exited " + std::to_string(WEXITSTATUS(status)) + "]";
  return text;
}

std::string with_tracefs(const std::function<std::string()>& body) {
  return in_child([&]() -> std::string {
    if (::unshare(CLONE_NEWNS) != 0 ||
        ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        (::mount("tracefs", "/sys/kernel/tracing", "tracefs", 0, nullptr) != 0 &&
         errno != EBUSY)) {  // already mounted
      return std::string{"no tracefs: "} + std::strerror(errno);
    }
    return body();
  });
}

void become(uid_t user, std::span<const int> capabilities) {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  std::array<__user_cap_data_struct, _LINUX_CAPABILITY_U32S_3> sets{};
  for (const int capability : capabilities) {
    auto& set = sets.at(static_cast<std::size_t>(capability) / 32);
    set.effective |= 1u << (capability % 32);
    set.permitted |= 1u << (capability % 32);
  }
  check(::prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0), "PR_SET_KEEPCAPS");
  check(::setgroups(0, nullptr), "setgroups");
  check(::setresgid(user, user, user), "setresgid");
  check(::setresuid(user, user, user), "setresuid");
  check(::syscall(SYS_capset, &header, sets.data()), "capset");
}

void refuse(long number, int error_number) {
  std::array program = std::to_array<sock_filter>({
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<std::uint32_t>(number), 0, 1),
      BPF_STMT(BPF_RET | BPF_K, with_errno(error_number)),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  });
  filter(program);
}

void refuse(long number, std::uint32_t second, int error_number) {
  std::array program = std::to_array<sock_filter>({
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<std::uint32_t>(number), 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, low_word_of(1)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, second, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, with_errno(error_number)),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  });
  filter(program);
}

}  // namespace perfring::live
