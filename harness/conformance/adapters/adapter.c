// A consumer in C: maps RING_FILE, drains it once, and prints the events.
// usage: adapter RING_FILE PAGES SAMPLE_TYPE
// The ring is mapped between guard pages, so that a read outside it raises a signal.
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static const unsigned char* data;
static size_t size;

// Returns the ring's bytes from a position on, in one piece.
static const void* at(__u64 position, size_t length) {
  static unsigned char copy[65536];
  const size_t from = position & (size - 1);
  if (length <= size - from) return data + from;
  memcpy(copy, data + from, size - from);
  memcpy(copy + (size - from), data, length - (size - from));
  return copy;
}

static void sample(__u64 position, size_t record, size_t raw_at) {
  __u32 raw = 0;
  if (record >= raw_at + 4) memcpy(&raw, at(position + raw_at, 4), 4);
  if (record < raw_at + 4 || raw > record - raw_at - 4) {
    puts("error a sample that is longer than its record");
    return;
  }
  const unsigned char* payload = at(position + raw_at + 4, raw);
  fputs("sample ", stdout);
  for (__u32 i = 0; i < raw; i++) printf("%02x", payload[i]);
  putchar('\n');
}

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  const size_t page = 4096;
  size = strtoull(argv[2], NULL, 10) * page;
  const __u64 fields = strtoull(argv[3], NULL, 10) & ~(__u64)PERF_SAMPLE_RAW;
  const size_t raw_at = 8 + 8 * (size_t)__builtin_popcountll(fields);
  const size_t guard = 1 << 20;
  const int fd = open(argv[1], O_RDWR);
  char* room = mmap(NULL, 2 * guard + page + size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  char* ring = room + guard;
  if (mmap(ring, page + size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) != ring) {
    perror(argv[1]);
    return 2;
  }
  struct perf_event_mmap_page* control = (void*)ring;
  data = (void*)(ring + page);

  const __u64 head = __atomic_load_n(&control->data_head, __ATOMIC_ACQUIRE);
  __u64 tail = control->data_tail;
  __u32 left = (__u32)(head - tail);  // a 32-bit kernel's data_head has 32 bits
  const __u64 end = tail + left;
  if (left != 0 && (left > size || head % 8 != 0 || tail % 8 != 0)) {
    puts("error positions");
    left = 0;
  }
  while (left != 0) {
    struct perf_event_header header;
    memcpy(&header, at(tail, sizeof(header)), sizeof(header));
    if (header.size < 8 || header.size % 8 != 0 || header.size > left) {
      puts("error header.size");
      break;
    }
    if (header.type == PERF_RECORD_SAMPLE) {
      sample(tail, header.size, raw_at);
    } else if (header.type == PERF_RECORD_LOST && header.size >= 24) {
      __u64 lost;
      memcpy(&lost, at(tail + 16, sizeof(lost)), sizeof(lost));
      printf("lost %llu\n", lost);
    } else {
      printf("error type %u\n", header.type);
    }
    tail += header.size;
    left -= header.size;
  }
  __atomic_store_n(&control->data_tail, end, __ATOMIC_RELEASE);
  printf("tail %llu\n", end);
  return fflush(stdout) == 0 ? 0 : 2;
}
