// All CPUs, in the order of their keys, in a libuv loop.   usage: uv_loop PIN SECONDS
#include <uv.h>

#include <algorithm>
#include <chrono>
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <string>

#include "perfring/merge/key_at.h"
#include "perfring/merge/merge.h"
#include "perfring/perf_event_array.h"
#include "perfring/rings/ring_set.h"
#include "perfring/rings/ring_set_options.h"

using namespace perfring;
static void print(std::uint32_t cpu, const Ordered& event) {
  std::printf("CPU %" PRIu32 ", key %" PRIu64 "%s\n", cpu, event.key, event.late ? " late" : "");
}

static void read_all(uv_timer_t* due) {  // of all rings, whatever was reported
  RingSet& set = *static_cast<RingSet*>(due->data);
  set.poll();
  set.merge(KeyAt{0}, {}, print);
  const auto wait = set.next_deadline() - std::min(set.next_deadline(), RingSet::Clock::now());
  const auto ms = std::chrono::ceil<std::chrono::milliseconds>(wait).count();
  uv_timer_start(due, read_all, static_cast<std::uint64_t>(ms), 0);
}

int main(int argc, char** argv) {
  if (argc != 3) return std::puts("usage: uv_loop PIN SECONDS"), 2;
  const auto array = PerfEventArray::from_pin(argv[1]);
  if (!array) return std::puts(array.error().explain().c_str()), 1;
  auto set = RingSet::open(*array);
  if (!set) return std::puts(set.error().explain().c_str()), 1;
  static uv_timer_t due, end;
  uv_poll_t rings;
  uv_loop_t* const loop = uv_default_loop();
  uv_timer_init(loop, &due), uv_timer_init(loop, &end), uv_poll_init(loop, &rings, set->fd());
  due.data = &*set;
  uv_poll_start(&rings, UV_READABLE, [](uv_poll_t*, int, int) { read_all(&due); });
  uv_timer_start(&end, [](uv_timer_t* of) { uv_stop(of->loop); }, 1000 * std::stoull(argv[2]), 0);
  uv_run(loop, UV_RUN_NOWAIT);  // starts watching the rings before they are read
  read_all(&due);
  uv_run(loop, UV_RUN_DEFAULT);
  return set->flush(Flush::Visible, KeyAt{0}, print).has_value() ? 0 : 1;
}
