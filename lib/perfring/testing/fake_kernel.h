#ifndef PERFRING_TESTING_FAKE_KERNEL_H_
#define PERFRING_TESTING_FAKE_KERNEL_H_

#include <gtest/gtest.h>
#include <linux/bpf.h>
#include <linux/perf_event.h>
#include <sys/types.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace perfring::testing {

// Replaces the kernel in a process that links it: syscall(2) of perf_event_open and bpf, ioctl(2)
// and epoll_ctl(2) of events, open(2) and fstat(2) of chosen files, netlink sockets, which receive
// what a test sends, and sysconf(3) of the page size. An event is a file in memory, which mmap(2)
// maps like any other. There is one FakeKernel at a time; each test starts with a new one.
class FakeKernel {
 public:
  FakeKernel();
  ~FakeKernel();
  FakeKernel(const FakeKernel&) = delete;
  FakeKernel& operator=(const FakeKernel&) = delete;

  // The errno with which each call fails; 0: it succeeds.
  int open_errno = 0;
  int enable_errno = 0;
  int update_errno = 0;
  int delete_errno = 0;
  int info_errno = 0;
  int pin_errno = 0;
  int get_errno = 0;
  int pwait2_errno = 0;   // epoll_pwait2
  int create_errno = 0;   // BPF_MAP_CREATE
  int output_errno = 0;   // PERF_EVENT_IOC_SET_OUTPUT
  int pause_errno = 0;    // PERF_EVENT_IOC_PAUSE_OUTPUT
  int barrier_errno = 0;  // membarrier
  bool event_cannot_be_mapped = false;
  bool knows_lost = true;  // PERF_FORMAT_LOST; if false, it is refused (EINVAL)
  // The losses that read(2) reports for these events; the others have none.
  std::map<int, std::uint64_t> lost;

  // The contents of these files; nullopt: the file does not exist. All other files are the
  // machine's.
  std::map<std::string, std::optional<std::string>> files;

  // The page size; 0: this run's.
  std::size_t page_size = 0;

  // The kernel's answer about every map.
  bpf_map_info map_info{};

  // The calls so far, and the arguments of the last ones.
  std::vector<std::string> calls;  // "enable 5, mapped", ...
  perf_event_attr event{};
  std::vector<perf_event_attr> events;  // of all calls
  int pid = 0;
  int cpu = 0;
  int group = 0;
  unsigned long flags = 0;
  bpf_attr bpf{};  // of the last bpf()
  std::size_t bpf_size = 0;
  std::pair<unsigned, unsigned> updated{};             // key and value of the last update
  std::vector<std::pair<unsigned, unsigned>> updates;  // all of them
  std::string path;                                    // of the last pin or get
  int file_flags = 0;                                  // of the last open() of one of `files`

  // How many bytes of one of `files` are left after fstat(2) has reported its size; -1: all of
  // them.
  long cut_to = -1;

  // Sends to the netlink socket that was opened last: a message from this sender (0: the kernel),
  // or the error that messages were dropped (ENOBUFS).
  void send_uevent(std::string_view message, std::uint32_t from = 0) const;
  void drop_uevents() const;

  // The number of mappings of events that this process has.
  static int mappings();
  static bool is_mapped(int fd);
  // The number of bytes of this event's file that are mapped.
  static std::size_t mapped_size(int fd);
  static bool is_open(int fd);

  // The fakes of system calls: -1 and errno if they fail.
  int perf_event_open(const perf_event_attr& attr);
  int ioctl(int fd, unsigned long request, long argument);
  int bpf_call(int command, bpf_attr& attr);
  int watch(int operation, int fd);
  // The descriptors of all events, in the order of opening.
  std::vector<int> opened() const;
  // Returns nullopt if the descriptor is not an event's.
  std::optional<ssize_t> read_event(int fd, void* to, std::size_t size);
  int open_file(const std::optional<std::string>& text, int open_flags);
  void look_at_file(int fd);
  int netlink_socket();
  bool is_netlink(int fd) const { return fd == netlink_[0]; }

 private:
  struct Opened {
    int fd;
    ino_t inode;
  };
  std::vector<Opened> opened_;
  int file_ = -1;           // the last of `files` that was opened
  int netlink_[2]{-1, -1};  // the socket, which its opener closes, and the end that writes to it
};

// This run's page size: the machine's, or $PERFRING_PAGE_SIZE, which page_size_test.sh sets.
inline std::size_t page_size() {
  return static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

// Writes a sample of 4 bytes to the event's file, at `position` of a ring of `page_count` pages.
inline void emit(int fd, std::size_t page, std::size_t page_count, std::uint64_t position) {
  const perf_event_header header{PERF_RECORD_SAMPLE, 0, 16};
  const std::uint32_t words[]{4, 0xcafebabe};
  const std::uint64_t next = position + 16;
  const auto write = [&](const void* from, std::size_t length, std::size_t at) {
    ASSERT_EQ(::pwrite(fd, from, length, static_cast<off_t>(at)), static_cast<ssize_t>(length));
  };
  write(&header, 8, page + static_cast<std::size_t>(position % (page * page_count)));
  write(words, 8, page + static_cast<std::size_t>((position + 8) % (page * page_count)));
  write(&next, 8, offsetof(perf_event_mmap_page, data_head));
}

}  // namespace perfring::testing

#endif  // PERFRING_TESTING_FAKE_KERNEL_H_
