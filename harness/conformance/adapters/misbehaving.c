// A hand-written subject: perfring conform -- misbehaving HOW {pages} {wakeup_events}. `well`
// prints the records of its ring until SIGINT; the tests of the supervisor have it do something
// else at the first one.
#define _GNU_SOURCE
#include <linux/perf_event.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

enum { kPage = 4096 };

static volatile sig_atomic_t stopped;
static const char* how;
static size_t size;
static unsigned wakeup_events = 1;

static void stop(int signal) {
  if (signal == SIGINT) stopped = 1;
}

static int is(const char* what) {
  return strcmp(how, what) == 0;
}

static int begins(const char* what) {
  return strncmp(how, what, strlen(what)) == 0;
}

static struct perf_event_mmap_page* open_ring(int* fd) {
  struct perf_event_attr attr;
  memset(&attr, 0, sizeof(attr));
  attr.type = PERF_TYPE_SOFTWARE;
  attr.config = PERF_COUNT_SW_BPF_OUTPUT;
  attr.size = sizeof(attr);
  attr.sample_type = PERF_SAMPLE_RAW;
  attr.wakeup_events = wakeup_events;
  attr.disabled = is("disabled");
  *fd = (int)syscall(SYS_perf_event_open, &attr, -1, 0, -1, PERF_FLAG_FD_CLOEXEC);
  return mmap(NULL, size + kPage, PROT_READ | PROT_WRITE, MAP_SHARED, *fd, 0);
}

static void misbehave(const struct perf_event_mmap_page* page) {
  if (is("killed")) raise(SIGKILL);
  while (is("floods")) puts("sample 00");
  while (is("spins")) continue;
  if (begins("crashes")) abort();
  if (is("reads") || is("alarms-reads")) (void)*((const volatile __u64*)page - 1);
}

// The record at a position, in one piece.
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
    printf("lost %llu\n", lost);
  } else if (header->type != PERF_RECORD_SAMPLE || raw > header->size - 12U) {
    puts("error");
  } else {
    fputs("sample ", stdout);
    for (__u32 i = 0; i < raw; i++) printf("%02x", record[12 + i]);
    putchar('\n');
  }
}

static void drain(struct perf_event_mmap_page* page) {
  const __u64 head = __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE);
  __u64 tail = page->data_tail;
  __u32 left = (__u32)(head - tail);  // a 32-bit kernel's data_head has 32 bits
  if (left != 0) misbehave(page);
  while (left != 0) {
    const unsigned char* const record = record_at((const unsigned char*)page + kPage, tail);
    const struct perf_event_header* const header = (const void*)record;
    if (header->size < 8 || header->size > left) {
      puts("error");
      tail += left;
      break;
    }
    if (!is("silent")) print(record);
    tail += header->size;
    left -= header->size;
  }
  __atomic_store_n(&page->data_tail, tail, __ATOMIC_RELEASE);
}

static void* consume(void* nothing) {
  struct pollfd ready = {.events = POLLIN};
  struct perf_event_mmap_page* const page = open_ring(&ready.fd);
  if (page == MAP_FAILED) return perror("mmap"), page;
  for (int i = 1, other; i < 100 && is("hundred"); i++) {
    if (open_ring(&other) == MAP_FAILED) return perror("mmap"), page;
  }
  // A poll without an end, after which nothing is read unless it reports something.
  const int patient = begins("alarms") || is("restarts") || is("dozes");
  const struct itimerval soon = {.it_value = {.tv_usec = 100000}};
  while (!stopped) {
    if (is("dozes")) setitimer(ITIMER_REAL, &soon, NULL);
    const int reported = poll(&ready, 1, patient ? -1 : 20);
    if (reported > 0 || !patient) drain(page);
    if (reported < 0 && is("dozes")) usleep(500000);
  }
  if (is("dozes") && poll(&ready, 1, 0) > 0) drain(page);
  return nothing;
}

// Leaves a process behind, which needs no system call to go on, and its number in a file.
static int leave(const char* file) {
  FILE* const out = fopen(file, "w");
  const pid_t child = fork();
  if (child == 0 && is("leaves-a-session")) setsid();
  while (child == 0) pause();
  return fprintf(out, "%d\n", (int)child) < 0 || fclose(out) != 0;
}

int main(int argc, char** argv) {
  if (argc < 3) return fputs("usage: misbehaving HOW PAGES [WAKEUP_EVENTS]\n", stderr), 2;
  how = argv[1];
  if (begins("leaves")) return leave(argv[2]);
  size = strtoul(argv[2], NULL, 10) * kPage;
  if (argc > 3) wakeup_events = (unsigned)strtoul(argv[3], NULL, 10);
  const struct sigaction action = {.sa_handler = is("ignores") ? SIG_IGN : stop,
                                   .sa_flags = is("restarts") || begins("alarms") ? SA_RESTART : 0};
  sigaction(SIGINT, &action, NULL);
  sigaction(SIGALRM, &action, NULL);
  const struct timeval often = {.tv_usec = 500};
  const struct itimerval alarms = {often, often};
  if (begins("alarms")) setitimer(ITIMER_REAL, &alarms, NULL);
  if (is("execs")) return execl("/proc/self/exe", argv[0], "well", argv[2], NULL);
  if (is("forks")) {
    const pid_t child = fork();
    while (child != 0 && waitpid(child, NULL, 0) < 0) continue;
    if (child != 0) return 0;
  }
  if (!is("threads") && !is("crashes-in-a-thread")) return consume(NULL) != NULL;
  pthread_t thread;
  void* failed = &thread;
  return pthread_create(&thread, NULL, consume, NULL) != 0 || pthread_join(thread, &failed) != 0 ||
         failed != NULL;
}
