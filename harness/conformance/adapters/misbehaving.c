// A hand-written subject: perfring conform -- misbehaving HOW {pages} {wakeup_events}. With HOW
// `well` it prints the records of its ring until SIGINT. The supervisor's tests give it another
// HOW: it misbehaves at the first record, or with its rings, or has a fault of harness/faults by
// name.
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/perf_event.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { kPage = 4096 };

static volatile sig_atomic_t stopped;
static const char* how;
static size_t size;
static unsigned wakeup_events = 1;
static int stops[2];  // a pipe, which SIGINT makes readable

static void stop(int signal) {
  if (signal == SIGINT) stopped = 1;
  if (signal == SIGINT && stops[1] != 0 && write(stops[1], "", 1) != 1) abort();
}

static int is(const char* what) {
  return strcmp(how, what) == 0;
}

static int begins(const char* what) {
  return strncmp(how, what, strlen(what)) == 0;
}

static int ends(const char* what) {
  return strlen(how) >= strlen(what) && strcmp(how + strlen(how) - strlen(what), what) == 0;
}

static void change_map(int command, __u32 key, int fd) {
  static int map = -1;
  union bpf_attr attr = {
      .map_type = BPF_MAP_TYPE_PERF_EVENT_ARRAY, .key_size = 4, .value_size = 4, .max_entries = 64};
  if (map < 0) map = (int)syscall(SYS_bpf, BPF_MAP_CREATE, &attr, sizeof(attr));
  memset(&attr, 0, sizeof(attr));
  attr.map_fd = (__u32)map;
  attr.key = (__u64)(size_t)&key;
  attr.value = (__u64)(size_t)&fd;
  if (syscall(SYS_bpf, command, &attr, sizeof(attr)) != 0) perror("bpf");
}

static void* map_ring(int fd) {
  return mmap(NULL, size + kPage, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
}

static int open_event(void) {
  struct perf_event_attr attr;
  memset(&attr, 0, sizeof(attr));
  attr.type = PERF_TYPE_SOFTWARE;
  attr.config = PERF_COUNT_SW_BPF_OUTPUT;
  attr.size = sizeof(attr);
  attr.sample_type = PERF_SAMPLE_RAW;
  attr.wakeup_events = wakeup_events;
  attr.disabled = is("disabled");
  return (int)syscall(SYS_perf_event_open, &attr, -1, 0, -1, PERF_FLAG_FD_CLOEXEC);
}

static struct perf_event_mmap_page* open_ring(int* fd) {
  *fd = open_event();
  return map_ring(*fd);
}

// Opens CPU 0's ring, and enters its event in the map.
static struct perf_event_mmap_page* enter_ring(int* fd) {
  int other = 0;
  if (is("probes") && open_ring(&other) != MAP_FAILED) close(other);
  if (is("enters-two") && open_ring(&other) != MAP_FAILED)
    change_map(BPF_MAP_UPDATE_ELEM, 0, other);
  if (is("three-pages")) size = 3 * kPage;
  struct perf_event_mmap_page* const page = open_ring(fd);
  if (!is("in-no-map")) change_map(BPF_MAP_UPDATE_ELEM, is("wrong-key") ? 1 : 0, *fd);
  if (is("enters-an-unmapped-one")) change_map(BPF_MAP_UPDATE_ELEM, 0, open_event());
  __u64 count;
  if (is("reads-the-count") && read(*fd, &count, sizeof(count)) != sizeof(count)) perror("read");
  if (is("reads-at-first")) (void)*((const volatile __u64*)page - 1);
  return page;
}

// Tries to truncate the ring, by its descriptor or by its name. No event's descriptor allows that.
static void cut_off(int fd) {
  char name[32];
  snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
  if (is("truncates") && ftruncate(fd, 0) == 0) puts("cut off");
  if (is("truncates-by-name") && truncate(name, kPage) == 0) puts("cut off");
  if (is("opens-anew") && open(name, O_RDWR | O_TRUNC) >= 0) puts("cut off");
}

static sigjmp_buf before_the_fault;

static void caught(int signal) {
  siglongjmp(before_the_fault, signal);
}

static void misbehave(const struct perf_event_mmap_page* page, int fd) {
  if (is("slow")) usleep(700000);
  cut_off(fd);
  if (is("deletes-its-key")) change_map(BPF_MAP_DELETE_ELEM, 0, fd);
  if (is("maps-twice")) (void)*((const volatile __u64*)map_ring(fd) - 1);
  if (is("catches") && sigsetjmp(before_the_fault, 1) == 0) {
    (void)*((const volatile __u64*)page - 1);
  }
  if (is("invents")) puts("sample 07");
  if (is("jumps")) (void)*(const volatile char*)16;
  if (is("killed")) raise(SIGKILL);
  while (begins("floods")) puts("sample 00");
  while (is("spins")) continue;
  if (begins("crashes")) abort();
  if (is("reads") || is("alarms-reads")) (void)*((const volatile __u64*)page - 1);
}

// Returns the record at a position, in one piece.
static const unsigned char* record_at(const unsigned char* data, __u64 position) {
  static unsigned char copy[65536];
  const size_t from = position & (size - 1);
  __u16 length;
  memcpy(&length, data + from + 6, sizeof(length));
  if (length <= size - from) return data + from;
  memcpy(copy, data + from, size - from);
  memcpy(copy + (size - from), data, length - (size - from));
  return copy;
}

static void print(const unsigned char* record) {
  const struct perf_event_header* const header = (const void*)record;
  __u64 lost;
  __u32 raw;
  memcpy(&lost, record + 16, sizeof(lost));
  memcpy(&raw, record + 8, sizeof(raw));
  if (header->type == PERF_RECORD_LOST) {
    if (!is("forgets_lost")) printf("lost %llu\n", lost);
  } else if (header->type != PERF_RECORD_SAMPLE ||
             (raw > header->size - 12U && !is("trusts_record_sizes"))) {
    puts("error");
  } else {
    fputs("sample ", stdout);
    for (__u32 i = 0; i < raw && !(ends("-24") && i == 24); i++) printf("%02x", record[12 + i]);
    putchar('\n');
  }
}

static __u64 load_head(const struct perf_event_mmap_page* page) {
  return __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE);
}

static void store_tail(struct perf_event_mmap_page* page, __u64 tail) {
  __atomic_store_n(&page->data_tail, tail, __ATOMIC_RELEASE);
}

static __u64 head_before_wait;

static void drain(struct perf_event_mmap_page* page, int fd) {
  const __u64 head = is("keeps-an-old-head") ? head_before_wait : load_head(page);
  static int complaints;
  if (is("complains") && head % 8 != 0) {
    if (complaints++ < 2) puts("error");
    return store_tail(page, head);
  }
  __u64 tail = page->data_tail;
  __u32 left = (__u32)(head - tail);  // a 32-bit kernel's data_head has 32 bits
  if (begins("compares") && head < tail) left = 0;
  if (left != 0) misbehave(page, fd);
  if (is("stores-before-the-copy")) store_tail(page, head);
  if (is("stores-to-data-head") && left != 0) page->data_head = head + 8;
  while (left != 0) {
    const unsigned char* const record = record_at((const unsigned char*)page + kPage, tail);
    const struct perf_event_header* const header = (const void*)record;
    if (header->size < 8 || header->size > left) {
      puts("error");
      tail += left;
      break;
    }
    const int is_last = left == header->size;
    const __u16 length = header->size;
    if (is("stores-before-each-copy")) store_tail(page, tail + length);
    if (!is("silent") && !(is("drops_last_event") && is_last)) print(record);
    if (is("delivers_twice")) print(record);
    if (is("counts-a-lost-twice") && header->type == PERF_RECORD_LOST) print(record);
    tail += length;
    left -= length;
    if (is("slow") && left != 0) usleep(700000);
  }
  static __u64 last_tail;
  if (is("reads-head-twice")) tail = load_head(page);
  if (is("stores-into-a-record")) store_tail(page, tail - 8);
  const __u64 stored = is("stores-an-old-tail") && last_tail != 0 ? last_tail : tail;
  last_tail = tail;
  if (!is("never_commits")) store_tail(page, stored);
}

static long long microseconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000000LL + now.tv_nsec / 1000;
}

// Makes the system call itself, because libc's select() is pselect(2). Prints an error if the call
// times out early.
static int select_for_900_ms(int fd) {
  fd_set set;
  FD_ZERO(&set);
  FD_SET(fd, &set);
  struct timeval time = {.tv_usec = 900000};
  const long long begin = microseconds();
  const long reported = syscall(SYS_select, fd + 1, &set, NULL, NULL, &time);
  if (reported == 0 && microseconds() - begin < 900000) puts("error");
  return (int)reported;
}

// poll(2) must report a descriptor that is not open at once.
static int poll_a_closed_one(struct pollfd* ready) {
  struct pollfd both[2] = {*ready, {.fd = 999, .events = POLLIN}};
  if (poll(both, 2, -1) <= 0 || both[1].revents != POLLNVAL) puts("error");
  return both[0].revents != 0 ? 1 : poll(ready, 1, -1);
}

static struct pollfd* protected_page;
static int faults;  // a userfaultfd(2)
static int state;   // /proc/PID/task/TID/stat of the thread that polls
static pthread_t polls;
static volatile int is_there;  // the interrupting thread runs: its tracer has let it go

static void protect(__u64 mode) {
  struct uffdio_writeprotect request = {{(size_t)protected_page, kPage}, mode};
  if (ioctl(faults, UFFDIO_WRITEPROTECT, &request) != 0) abort();
}

// Interrupts a poll(2) while the supervisor writes the answer, which blocks on the protected page.
// The signal has ended the poll once the polling thread stops for its tracer (state t). Only then
// does the write continue, and its answer reaches nobody.
static void* interrupt_the_answer(void* nothing) {
  struct uffd_msg fault;
  is_there = 1;
  if (read(faults, &fault, sizeof fault) != sizeof fault) abort();
  pthread_kill(polls, SIGALRM);
  char text[256] = "";
  while (strstr(text, ") t ") == NULL) {
    const ssize_t length = pread(state, text, sizeof text - 1, 0);
    text[length > 0 ? length : 0] = 0;
  }
  protect(0);
  return nothing;
}

static void protect_what_polls_answer(void) {
  char name[64];
  pthread_t other;
  struct uffdio_api api = {.api = UFFD_API, .features = UFFD_FEATURE_PAGEFAULT_FLAG_WP};
  protected_page = mmap(NULL, kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  memset(protected_page, 0, kPage);
  struct uffdio_register all = {{(size_t)protected_page, kPage}, UFFDIO_REGISTER_MODE_WP, 0};
  faults = (int)syscall(SYS_userfaultfd, O_CLOEXEC);
  snprintf(name, sizeof name, "/proc/self/task/%d/stat", (int)syscall(SYS_gettid));
  state = open(name, O_RDONLY);
  polls = pthread_self();
  if (faults < 0 || state < 0 || ioctl(faults, UFFDIO_API, &api) != 0 ||
      ioctl(faults, UFFDIO_REGISTER, &all) != 0 ||
      pthread_create(&other, NULL, interrupt_the_answer, NULL) != 0) {
    abort();
  }
  while (!is_there) usleep(1000);
}

static int poll_a_protected_page(const struct pollfd* ready) {
  if (protected_page == NULL) {
    protect_what_polls_answer();
    *protected_page = *ready;
    protect(UFFDIO_WRITEPROTECT_MODE_WP);
  }
  return poll(protected_page, 1, -1);
}

// Waits until the ring is readable, or for SIGINT, by another call than poll(2) of the ring alone.
static int wait_otherwise(struct pollfd* ready) {
  struct pollfd both[2] = {*ready, {.fd = stops[0], .events = POLLIN}};
  if (is("has-a-pipe")) return poll(both, 2, -1) > 0 && both[0].revents != 0;
  if (is("times-a-select")) return select_for_900_ms(ready->fd);
  if (is("polls-a-closed-one")) return poll_a_closed_one(ready);
  if (is("polls-a-protected-page")) return poll_a_protected_page(ready);
  sigset_t none;
  sigemptyset(&none);
  if (is("masks")) return ppoll(ready, 1, NULL, &none);
  fd_set set;
  FD_ZERO(&set);
  FD_SET(ready->fd, &set);
  if (is("masks-in-pselect")) return pselect(ready->fd + 1, &set, NULL, NULL, NULL, &none);
  return select(ready->fd + 1, &set, NULL, NULL, NULL) > 0 && FD_ISSET(ready->fd, &set);
}

static void nest_epolls(int fd) {
  struct epoll_event event = {.events = EPOLLIN};
  const int inner = epoll_create1(0);
  const int outer = epoll_create1(0);
  if (epoll_ctl(inner, EPOLL_CTL_ADD, fd, &event) != 0) perror("epoll_ctl");
  if (epoll_ctl(outer, EPOLL_CTL_ADD, inner, &event) != 0) perror("epoll_ctl");
}

static void* consume(void* nothing) {
  struct pollfd ready = {.events = is("sleeps-on") ? 0 : POLLIN};
  struct perf_event_mmap_page* const page = enter_ring(&ready.fd);
  if (page == MAP_FAILED) return perror("mmap"), page;
  for (int i = 1, other; i < 100 && is("hundred"); i++) {
    if (open_ring(&other) == MAP_FAILED) return perror("mmap"), page;
  }
  if (is("nests-epolls")) nest_epolls(ready.fd);
  const int otherwise = ends("selects") || begins("masks") || is("has-a-pipe") ||
                        is("times-a-select") || is("polls-a-closed-one") ||
                        is("polls-a-protected-page");
  // Waits without a time limit, and reads only if the wait reports something.
  const int patient = begins("alarms") || begins("restarts") || begins("keeps") || is("dozes") ||
                      is("sleeps-on") || otherwise;
  const int milliseconds = is("polls-on") ? 0 : 20;
  const struct itimerval soon = {.it_value = {.tv_usec = 100000}};
  while (!stopped) {
    if (is("dozes")) setitimer(ITIMER_REAL, &soon, NULL);
    if (is("runs-ahead")) page->data_tail += 64;
    head_before_wait = load_head(page);
    const int reported =
        otherwise ? wait_otherwise(&ready) : poll(&ready, 1, patient ? -1 : milliseconds);
    if (is("polls-on")) continue;
    if (is("runs-ahead")) page->data_tail -= 64;
    if (reported > 0 || !patient) drain(page, ready.fd);
    if (reported < 0 && is("dozes")) usleep(500000);
  }
  if (is("dozes") && poll(&ready, 1, 0) > 0) drain(page, ready.fd);
  if (is("sleeps-on")) drain(page, ready.fd);
  return nothing;
}

// Leaves a child running, which only pauses, and writes its pid to a file.
static int leave(const char* file) {
  FILE* const out = fopen(file, "w");
  // CLONE_UNTRACED hides the child from its parent's tracer.
  const pid_t child = is("leaves-an-untraced")
                          ? (pid_t)syscall(SYS_clone, CLONE_UNTRACED | SIGCHLD, 0, 0, 0, 0)
                          : fork();
  if (child == 0 && !is("leaves")) setsid();
  while (child == 0) pause();
  return fprintf(out, "%d\n", (int)child) < 0 || fclose(out) != 0;
}

int main(int argc, char** argv) {
  if (argc < 3) return fputs("usage: misbehaving HOW PAGES [WAKEUP_EVENTS]\n", stderr), 2;
  how = argv[1];
  if (begins("leaves")) return leave(argv[2]);
  size = strtoul(argv[2], NULL, 10) * kPage;
  if (argc > 3) wakeup_events = (unsigned)strtoul(argv[3], NULL, 10);
  const struct sigaction action = {
      .sa_handler = begins("ignores") ? SIG_IGN : stop,
      .sa_flags = begins("restarts") || begins("alarms") ? SA_RESTART : 0};
  sigaction(SIGINT, &action, NULL);
  sigaction(SIGALRM, &action, NULL);
  sigset_t blocked;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGINT);
  if (begins("masks")) sigprocmask(SIG_BLOCK, &blocked, NULL);
  if (is("has-a-pipe") && pipe(stops) != 0) return perror("pipe"), 1;
  if (is("slow")) signal(SIGINT, SIG_DFL), setvbuf(stdout, NULL, _IOLBF, 0);
  if (is("ignores-well")) setvbuf(stdout, NULL, _IOLBF, 0);
  if (is("catches")) signal(SIGSEGV, caught);
  if (is("floods-on")) signal(SIGXFSZ, SIG_IGN);
  if (is("starts-late")) sleep(3);
  const struct timeval often = {.tv_usec = 500};
  const struct itimerval alarms = {often, often};
  if (begins("alarms")) setitimer(ITIMER_REAL, &alarms, NULL);
  if (is("execs")) return execl("/proc/self/exe", argv[0], "well", argv[2], NULL);
  if (is("forks")) {
    const pid_t child = fork();
    while (child != 0 && waitpid(child, NULL, 0) < 0) continue;
    if (child != 0) return 0;
  }
  if (!is("threads") && !is("crashes-in-a-thread")) {
    return consume(NULL) != NULL || is("fails-at-the-end") ? 5 : 0;
  }
  pthread_t thread;
  void* failed = &thread;
  return pthread_create(&thread, NULL, consume, NULL) != 0 || pthread_join(thread, &failed) != 0 ||
         failed != NULL;
}
