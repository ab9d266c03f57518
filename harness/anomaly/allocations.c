// LD_PRELOAD library: makes the n-th allocation of one program fail, and counts allocations in a
// one-word file, shared with the processes that the program forks. Programs that it executes are
// not counted.
//
// ANOMALY_PROGRAM: the program's path
// ANOMALY_COUNT: the file
// ANOMALY_ALLOCATION: n
// ANOMALY_MARKS: if set, counting begins at ANOMALY_MARK, else at main()

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "harness/anomaly/mark.h"

extern void* __libc_malloc(size_t size);
extern void* __libc_calloc(size_t count, size_t size);
extern void* __libc_realloc(void* old, size_t size);
extern void* __libc_memalign(size_t alignment, size_t size);

static uint64_t* allocations;  // null: not this program
static uint64_t failing;
static int counts;  // whether counting has begun

static int fails(void) {
  if (!__atomic_load_n(&counts, __ATOMIC_RELAXED)) return 0;
  if (__atomic_add_fetch(allocations, 1, __ATOMIC_RELAXED) != failing) return 0;
  errno = ENOMEM;
  return 1;
}

void* malloc(size_t size) {
  return fails() ? NULL : __libc_malloc(size);
}
void* calloc(size_t count, size_t size) {
  return fails() ? NULL : __libc_calloc(count, size);
}
void* realloc(void* old, size_t size) {
  return fails() ? NULL : __libc_realloc(old, size);
}
void* memalign(size_t alignment, size_t size) {
  return fails() ? NULL : __libc_memalign(alignment, size);
}
void* aligned_alloc(size_t alignment, size_t size) {
  return fails() ? NULL : __libc_memalign(alignment, size);
}
int posix_memalign(void** result, size_t alignment, size_t size) {
  if (fails()) return ENOMEM;
  *result = __libc_memalign(alignment, size);
  return *result == NULL ? ENOMEM : 0;
}

int prctl(int option, ...) {
  va_list list;
  va_start(list, option);
  unsigned long words[4];
  for (int i = 0; i < 4; ++i) words[i] = va_arg(list, unsigned long);
  va_end(list);
  if (option == ANOMALY_MARK && allocations != NULL) {
    __atomic_store_n(&counts, words[0] != 0, __ATOMIC_RELAXED);
  }
  return (int)syscall(SYS_prctl, option, words[0], words[1], words[2], words[3]);
}

static void begin(void) {
  const char* const program = getenv("ANOMALY_PROGRAM");
  const char* const file = getenv("ANOMALY_COUNT");
  const char* const number = getenv("ANOMALY_ALLOCATION");
  char own[PATH_MAX];
  const ssize_t length = readlink("/proc/self/exe", own, sizeof own - 1);
  if (program == NULL || file == NULL || number == NULL || length < 0) return;
  own[length] = '\0';
  if (strcmp(own, program) != 0) return;
  const int fd = open(file, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0 || ftruncate(fd, sizeof *allocations) != 0) return;
  void* const mapped = mmap(NULL, sizeof *allocations, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
  if (mapped == MAP_FAILED) return;
  failing = strtoull(number, NULL, 10);
  allocations = mapped;
  counts = getenv("ANOMALY_MARKS") == NULL;
}

static int (*real_main)(int, char**, char**);

static int counted_main(int argc, char** argv, char** environment) {
  begin();
  return real_main(argc, argv, environment);
}

int __libc_start_main(int (*of_program)(int, char**, char**), int argc, char** argv,
                      void (*init)(void), void (*fini)(void), void (*rtld_fini)(void),
                      void* stack_end) {
  typedef int (*Start)(int (*)(int, char**, char**), int, char**, void (*)(void), void (*)(void),
                       void (*)(void), void*);
  real_main = of_program;
  const Start start = (Start)dlsym(RTLD_NEXT, "__libc_start_main");
  return start(counted_main, argc, argv, init, fini, rtld_fini, stack_end);
}
