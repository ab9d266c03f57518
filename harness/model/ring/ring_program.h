#ifndef HARNESS_MODEL_RING_RING_PROGRAM_H_
#define HARNESS_MODEL_RING_RING_PROGRAM_H_

// The source that ships, as a program: the simulated kernel's perf_output_begin/copy/end and Ring's
// drains, on a ring of a few words.

#include <linux/perf_event.h>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "harness/kernel/perf_event.h"
#include "harness/kernel/sample.h"
#include "harness/model/engine/program.h"
#include "harness/model/ring/model_memory.h"
#include "harness/model/ring/ring_consumer.h"
#include "perfring/ring/ring.h"

namespace perfring::model {

// The kernel's ring on a few words, as perf_event_open() and perf_mmap() would set it up.
struct ModelEvent {
  kernel::perf_buffer rb;
  kernel::perf_event event;

  ModelEvent(ModelRing& ring, const RingOptions& options) {
    event.attr.sample_type = PERF_SAMPLE_RAW;
    event.attr.wakeup_events = 1;
    event.word = rb.word = options.word;
    event.id = 1;
    rb.page_shift = static_cast<unsigned>(std::countr_zero(ring.size()));
    rb.nr_pages = 1;
    rb.watermark = static_cast<__s64>(ring.size() / 2);
    rb.user_page = &ring.page();
    rb.data_pages = ring.data();
    rb.head = rb.wakeup = rb.unsigned_long(options.start);
    rb.before_5_2 = options.before_5_2;
    event.rb.store(&rb);
  }
};

// A Cpu that takes an interrupt, or writes an oversize record.
template <class C>
struct ScriptedCpu : C {
  unsigned steps = 0;  // until the interrupt
  std::function<void()> interrupt;
  bool spoils = false;

  void step() {
    C::step();
    if (steps == 0 || --steps != 0) return;
    const ModelCpu registers = *this;
    interrupt();
    ModelCpu::operator=(registers);  // the interrupt restores them
  }
  // Fills everything that is not reserved with headers of samples as long as the ring.
  void on_reserve(kernel::perf_buffer& rb, __u64 position, std::size_t size) {
    C::on_reserve(rb, position, size);
    if (!std::exchange(spoils, false)) return;
    const perf_event_header header{PERF_RECORD_SAMPLE, 0, static_cast<__u16>(rb.data_size())};
    for (__u64 at = position + size; at < position + rb.data_size(); at += sizeof(header)) {
      C::copy(rb.data_pages + at % rb.data_size(), &header, sizeof(header));
    }
  }
};

template <class C>
void output(C& cpu, kernel::perf_event& event, std::uint32_t size, std::uint32_t word) {
  const std::vector<std::uint32_t> payload(size / ModelRing::kWordBytes, word);
  kernel::perf_sample_data data;
  perf_sample_save_raw_data(data, event, std::as_bytes(std::span{payload}));
  cpu.record_bytes = sizeof(perf_event_header) + sizeof(__u32) + size;
  perf_event_output(cpu, event, data);
}

// Outputs the records. Returns the number of losses that no LOST has reported.
template <class C>
std::uint64_t produce(ModelRing& ring, const RingOptions& options) {
  ModelEvent kernel{ring, options};
  ScriptedCpu<C> cpu;
  cpu.interrupt = [&] { output(cpu, kernel.event, options.payloads[0], kNestedWord); };
  for (std::uint32_t record = 0; record < options.records; ++record) {
    checkpoint({record, kernel.rb.head, kernel.rb.lost});
    cpu.steps = record == 1 ? options.interrupted_at : 0;
    cpu.spoils = record == 1 && options.oversize;
    output(cpu, kernel.event, options.payloads[record % options.payloads.size()], word_of(record));
  }
  return kernel.rb.lost;
}

// The kernel's thread: produce() with a Cpu.
using Producing = std::uint64_t (*)(ModelRing&, const RingOptions&);

// A consumer of any type.
class ModelConsumer {
 public:
  virtual ~ModelConsumer() = default;
  virtual void drain(Tally& tally, const RingOptions& options) = 0;
  virtual bool readable() = 0;
};
using Consuming = std::unique_ptr<ModelConsumer> (*)(ModelRing&);

// `R` is lib's Ring, or a faulty consumer with the same interface.
template <class R>
class ModelConsumerOf final : public ModelConsumer {
 public:
  explicit ModelConsumerOf(ModelRing& ring)
      : user_{*R::over(ring.page(), {ring.begin(), ring.size()})} {}
  void drain(Tally& tally, const RingOptions& options) override {
    drain_once(user_, tally, options);
  }
  bool readable() override { return user_.readable(); }

 private:
  R user_;
};

template <class R>
std::unique_ptr<ModelConsumer> consume(ModelRing& ring) {
  return std::unique_ptr<ModelConsumer>{new ModelConsumerOf<R>(ring)};
}

Program ring_program(const RingOptions& options, Producing kernel, Consuming user);

template <class R = Ring<ModelMemory>, class C = ModelCpu>
Program ring_program(const RingOptions& options) {
  return ring_program(options, produce<C>, consume<R>);
}

// The source that ships with one fault or variant next to it: a policy for Ring, a consumer around
// Ring, or a Cpu for the kernel. Most are in harness/faults; some need this memory
// (ring_faults.cc).
struct RingFault {
  std::string name;  // as in the catalogue of harness/faults
  Producing kernel;
  Consuming user;
  // The check that finds the fault in each form, with 6 records and 3 drains; nullptr if none does.
  const char *in_a, *in_b;
  std::string_view shows_in;  // the program in the catalogue
  bool in_any_order;          // also fails under sequential consistency

  Program make(const RingOptions& options) const { return ring_program(options, kernel, user); }
};

std::span<const RingFault> ring_faults();
// Returns the faults of memory order for a Cursor (ring_consumer.h): in the kernel or in the
// Cursor.
std::span<const RingFault> cursor_faults();
// Returns nullptr if no fault has that name.
const RingFault* find_ring_fault(std::span<const RingFault> among, const std::string& name);

}  // namespace perfring::model

#endif  // HARNESS_MODEL_RING_RING_PROGRAM_H_
