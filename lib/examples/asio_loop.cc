// All CPUs, in the order of their keys, in an Asio loop.   usage: asio_loop PIN SECONDS
// This header is first: Boost 1.74's headers lack an #include that C++23 needs (for std::exchange),
// and this one has it.
#include "perfring/rings/ring_set.h"

#include <unistd.h>

#include <boost/asio.hpp>
#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <functional>
#include <string>

#include "perfring/merge/key_at.h"

using namespace perfring;
using boost::asio::posix::stream_descriptor;

int main(int argc, char** argv) {
  if (argc != 3) return std::puts("usage: asio_loop PIN SECONDS"), 2;
  const auto array = PerfEventArray::from_pin(argv[1]);
  if (!array) return std::puts(array.error().explain().c_str()), 1;
  auto set = RingSet::open(*array);
  if (!set) return std::puts(set.error().explain().c_str()), 1;
  boost::asio::io_context loop;
  const int rings_fd = dup(set->fd());
  if (rings_fd < 0) return std::perror("dup"), 1;
  stream_descriptor rings{loop, rings_fd};
  boost::asio::steady_timer due{loop};
  const auto print = [](std::uint32_t cpu, const Ordered& event) {
    std::printf("CPU %" PRIu32 ", key %" PRIu64 "%s\n", cpu, event.key, event.late ? " late" : "");
  };
  const std::function<void()> read_all = [&] {  // of all rings, whatever was reported
    set->poll();
    set->merge(KeyAt{0}, {}, print);
    due.expires_at(set->next_deadline());
    due.async_wait(
        [&](const boost::system::error_code& error) { return error ? void() : read_all(); });
  };
  const std::function<void(boost::system::error_code)> wait = [&](boost::system::error_code) {
    rings.async_wait(stream_descriptor::wait_read, wait);  // before the rings are read
    read_all();
  };
  wait({});
  loop.run_for(std::chrono::seconds{std::stoi(argv[2])});
  return set->flush(Flush::Visible, KeyAt{0}, print).has_value() ? 0 : 1;
}
