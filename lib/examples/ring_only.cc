// perfring::Ring alone, in C++20, over memory of your own: anything that has the layout of a perf
// ring, such as a file, another process's shared memory, or an array.
#include <linux/perf_event.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>

#include "perfring/perf_event.h"
#include "perfring/ring/ring.h"

using namespace perfring;

int main() {
  constexpr std::size_t page_size = 4096;
  alignas(page_size) static std::byte mapping[3 * page_size];  // a control page, two data pages

  // The producer writes a sample of "hello", as the kernel lays it out, and then data_head.
  struct {
    perf_event_header header{PERF_RECORD_SAMPLE, 0, 24};
    std::uint32_t size = 12;
    char payload[12] = "hello";
  } record;
  static_assert(sizeof(record) == 24);
  std::memcpy(mapping + page_size, &record, sizeof(record));
  auto& page = *reinterpret_cast<perf_event_mmap_page*>(mapping);
  __atomic_store_n(&page.data_head, sizeof(record), __ATOMIC_RELEASE);

  auto ring = Ring<>::over(mapping, page_size);
  if (!ring) return std::puts("a ring's data is a power of two long"), 1;
  ring->for_each(Overloaded{
      [](const Sample& sample) {
        std::byte scratch[64];  // used if the sample straddles the ring's end
        const Bytes text = sample.contiguous(scratch);
        std::printf("%s\n", reinterpret_cast<const char*>(text.data()));
      },
      [](const auto&) { std::puts("something else"); },
  });
}
