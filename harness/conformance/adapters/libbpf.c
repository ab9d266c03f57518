// libbpf's perf_buffer as a subject of `perfring conform -- libbpf {pages}`: prints its callbacks'
// events until SIGINT. With `libbpf {pages} BYTES` it prints at most so many bytes of each sample.
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

static volatile sig_atomic_t stopped;
static __u32 most = (__u32)-1;

static void stop(int signal) {
  (void)signal;
  stopped = 1;
}

static void on_sample(void* context, int cpu, void* data, __u32 size) {
  (void)context, (void)cpu;
  fputs("sample ", stdout);
  for (__u32 i = 0; i < size && i < most; i++) printf("%02x", ((const unsigned char*)data)[i]);
  putchar('\n');
}

static void on_lost(void* context, int cpu, __u64 count) {
  (void)context, (void)cpu;
  printf("lost %llu\n", count);
}

int main(int argc, char** argv) {
  const size_t pages = argc >= 2 ? strtoul(argv[1], NULL, 10) : 64;
  if (argc == 3) most = (__u32)strtoul(argv[2], NULL, 10);
  const struct sigaction action = {.sa_handler = stop};
  sigaction(SIGINT, &action, NULL);
  const int map = bpf_map_create(BPF_MAP_TYPE_PERF_EVENT_ARRAY, "conform", 4, 4, 64, NULL);
  struct perf_buffer* buffer =
      map < 0 ? NULL : perf_buffer__new(map, pages, on_sample, on_lost, NULL, NULL);
  if (buffer == NULL) return perror("perf_buffer__new"), 1;
  while (!stopped) {
    const int result = perf_buffer__poll(buffer, 100);
    if (result < 0 && !stopped) printf("error %d\n", result);
  }
  fflush(stdout);
  perf_buffer__free(buffer);
  return 0;
}
