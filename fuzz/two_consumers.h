#ifndef FUZZ_TWO_CONSUMERS_H_
#define FUZZ_TWO_CONSUMERS_H_

// Compares two consumers, the drain and the slow reference, byte for byte and position for
// position. The simulated kernel writes the ring by a script, with any sample_type and direction;
// the ring may then be damaged. An input:
//
//   u8   bits 0-2: number D of damaged bytes, 3-4: number S of drains that stop early,
//        5: data_head is damaged, too
//   D x  u16 offset from data_tail, u8 bits to flip
//   S x  u8 number of the event at which the drain stops, less 1
//   u64  added to data_head, if it is damaged
//   ...  the script (script_bytes.h), without nesting

#include <linux/perf_event.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "fuzz/input.h"
#include "fuzz/script_bytes.h"
#include "harness/rig/simulated_kernel.h"
#include "harness/script/script.h"
#include "perfring/control_flow.h"
#include "perfring/perf_event.h"
#include "perfring/ring/default_memory.h"
#include "perfring/ring/memory.h"
#include "perfring/ring/ring.h"
#include "perfring/testing/copied_events.h"
#include "perfring/testing/reference_drain.h"

namespace perfring::fuzz {

struct Damage {
  std::uint16_t offset;
  std::uint8_t bits;
};

// R: the consumer; anything but Ring<M> only in the target's own test.
template <Memory M = DefaultMemory, class R = Ring<M> >
class TwoConsumers {
 public:
  explicit TwoConsumers(Input input) {
    const auto shape = input.take<std::uint8_t>();
    for (unsigned i = 0; i < (shape & 7); ++i) {
      const auto offset = input.take<std::uint16_t>();
      damages_.push_back({offset, input.take<std::uint8_t>()});
    }
    for (unsigned i = 0; i < (shape >> 3 & 3); ++i) {
      stops_.push_back(1U + input.take<std::uint8_t>());
    }
    if ((shape & 32) != 0) moved_ = input.take<std::uint64_t>();
    script_ = decode_script(input, Encoding::Full);
  }

  void run() {
    write();
    for (const std::size_t stop : stops_) compare(stop);
    compare(words_.size() * sizeof(std::uint64_t));
    expect(!ring().readable(), "readable() after a complete drain");
  }

 private:
  // Runs the script, and copies the ring into memory where the drains may write data_tail.
  void write() {
    rig::SimulatedKernel kernel{script_.settings};
    for (const script::Step& step : script_.steps) kernel.run(step);
    words_.resize(kernel.ring().data().size() / sizeof(std::uint64_t));
    std::memcpy(words_.data(), kernel.ring().data().data(), kernel.ring().data().size());
    page_.data_tail = kernel.ring().page().data_tail;
    page_.data_head = kernel.ring().page().data_head + moved_;
    const auto bytes = std::as_writable_bytes(std::span{words_});
    for (const Damage& damage : damages_) {
      const std::uint64_t at = (page_.data_tail + damage.offset) % bytes.size();
      bytes[static_cast<std::size_t>(at)] ^= std::byte{damage.bits};
    }
  }

  Bytes data() const { return std::as_bytes(std::span{words_}); }
  R ring() { return R::over(page_, data()).value(); }

  void compare(std::size_t stop) {
    std::vector<testing::ReferenceDrain::Event> expected =
        testing::ReferenceDrain{data(), page_.data_tail, page_.data_head}.drain();
    if (expected.size() > stop) expected.resize(stop);
    const std::uint64_t tail = expected.empty() ? page_.data_tail : expected.back().end;
    std::size_t events = 0;
    const auto visit = [&](Unit, const PerfEvent& event) -> ControlFlow<> {
      if (events == expected.size() || testing::copy(event) != expected[events].event) {
        fail("event " + std::to_string(events) + " is not the reference's, by this script:\n" +
             to_text(script_));
      }
      if (++events == stop) return Break{};
      return Continue{};
    };
    const ControlFlow<> flow = ring().try_fold(Unit{}, visit);
    expect(flow.is_break() == (events == stop), "try_fold's result");
    expect(events == expected.size(), "the reference has more events");
    expect(page_.data_tail == tail, "data_tail is not the reference's");
  }

  std::vector<Damage> damages_;
  std::vector<std::size_t> stops_;
  std::uint64_t moved_ = 0;
  script::Script script_;
  std::vector<std::uint64_t> words_;
  perf_event_mmap_page page_{};
};

}  // namespace perfring::fuzz

#endif  // FUZZ_TWO_CONSUMERS_H_
