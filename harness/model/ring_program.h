#ifndef HARNESS_MODEL_RING_PROGRAM_H_
#define HARNESS_MODEL_RING_PROGRAM_H_

// The source that ships, as a program: the simulated kernel's perf_output_begin/copy/end against
// Ring's drains, on a ring of a few words.

#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "harness/kernel/perf_event.h"
#include "harness/kernel/sample.h"
#include "harness/model/model_memory.h"
#include "harness/model/program.h"
#include "perfring/ring/ring.h"

namespace perfring::model {

enum class Consume : std::uint8_t { ForEach, Fold, TryFold, Break, Throw };

struct RingOptions {
  bool atomic_words = true;  // form A; else B
  unsigned records = 6;
  unsigned drains = 3;
  std::size_t ring_bytes = 64;
  // Of the payloads, in turn: 4 more than a multiple of 8, so that nothing is padded.
  std::vector<std::uint32_t> payloads = {4};
  Consume consume = Consume::ForEach;
  kernel::Word word = kernel::Word::k64;
  std::uint64_t start = 0;  // of both positions
};

// What a payload's words hold: who wrote them.
constexpr std::uint32_t word_of(std::uint32_t record) {
  return 0x100 + record;
}

// What the consumer has been given.
struct Tally {
  std::uint32_t next = 0;  // the record that comes next, if none is lost
  std::uint32_t delivered = 0;
  std::uint32_t lost = 0;
};

// Reads the payload word by word: order, once, intact, no_invention, no_loss.
template <class M>
void take(Tally& tally, const PerfEvent& event, const RingOptions& options) {
  if (const auto* const lost = std::get_if<Lost>(&event)) {
    tally.next += static_cast<std::uint32_t>(lost->count);
    tally.lost += static_cast<std::uint32_t>(lost->count);
    return;
  }
  const auto* const sample = std::get_if<Sample>(&event);
  check(sample != nullptr, "no_invention: a malformed record");
  if (sample == nullptr) return;
  const std::uint32_t expected = word_of(tally.next);
  const std::size_t size = options.payloads[tally.next % options.payloads.size()];
  check(sample->head.size() + sample->tail.size() == size, "intact: a payload of another size");
  for (const Bytes piece : {sample->head, sample->tail}) {
    for (std::size_t i = 0; i < piece.size(); i += ModelRing::kWordBytes) {
      const auto word = M::template read<std::uint32_t>(piece.data() + i);
      check(word == expected, "intact: a word differs from what was written there");
    }
  }
  ++tally.next;
  ++tally.delivered;
}

template <class M>
void drain_once(Ring<M>& ring, Tally& tally, const RingOptions& options) {
  switch (options.consume) {
    case Consume::ForEach:
      return ring.for_each([&](const PerfEvent& event) { take<M>(tally, event, options); });
    case Consume::Fold:
      tally = ring.fold(tally, [&](Tally so_far, const PerfEvent& event) {
        take<M>(so_far, event, options);
        return so_far;
      });
      return;
    case Consume::TryFold:
    case Consume::Break: {
      const bool breaks = options.consume == Consume::Break;
      auto flow = ring.try_fold(
          tally, [&](Tally so_far, const PerfEvent& event) -> ControlFlow<Tally, Tally> {
            take<M>(so_far, event, options);
            if (breaks) return Break{so_far};
            return Continue{so_far};
          });
      tally = flow.is_break() ? flow.break_value() : flow.continue_value();
      return;
    }
    case Consume::Throw:
      try {
        ring.for_each([&](const PerfEvent& event) {
          take<M>(tally, event, options);
          throw tally.next;
        });
      } catch (std::uint32_t) {
      }
  }
}

// The kernel's ring on a few words: what perf_event_open() and perf_mmap() would make.
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
    event.rb.store(&rb);
  }
};

template <class M = ModelMemory, class C = ModelCpu>
Program ring_program(const RingOptions& options) {
  Program program;
  program.name = "ring";
  const __u64 head =
      options.word == kernel::Word::k64 ? options.start : options.start & 0xffff'ffff;
  const auto ring = std::make_shared<ModelRing>(program, options.ring_bytes, options.atomic_words,
                                                head, options.start);
  const Var attempts_lost = program.var("lost, not reported");
  const Var delivered = program.var("delivered");
  const Var reported = program.var("reported lost");
  program.threads.emplace_back([=] {
    ModelRing::here = ring.get();
    ModelEvent kernel{*ring, options};
    C cpu;
    for (std::uint32_t record = 0; record < options.records; ++record) {
      checkpoint({record, kernel.rb.head, kernel.rb.lost});
      const std::uint32_t size = options.payloads[record % options.payloads.size()];
      std::vector<std::uint32_t> payload(size / ModelRing::kWordBytes, word_of(record));
      kernel::perf_sample_data data;
      perf_sample_save_raw_data(data, kernel.event, std::as_bytes(std::span{payload}));
      perf_event_output(cpu, kernel.event, data);
    }
    attempts_lost.write(kernel.rb.lost);
  });
  program.threads.emplace_back([=] {
    ModelRing::here = ring.get();
    auto consumer = Ring<M>::over(ring->page(), {ring->data(), ring->size()}).value();
    Tally tally;
    for (unsigned drain = 0; drain < options.drains; ++drain) {
      checkpoint({drain, tally.next, tally.lost});
      drain_once(consumer, tally, options);
    }
    delivered.write(tally.delivered);
    reported.write(tally.lost);
  });
  program.finally = [=] {
    ModelRing::here = ring.get();
    auto consumer = Ring<M>::over(ring->page(), {ring->data(), ring->size()}).value();
    Tally tally;
    tally.delivered = static_cast<std::uint32_t>(delivered.read());
    tally.lost = static_cast<std::uint32_t>(reported.read());
    tally.next = tally.delivered + tally.lost;
    for (unsigned i = 0; i < options.records && consumer.readable(); ++i) {
      drain_once(consumer, tally, options);
    }
    check(tally.delivered + tally.lost + attempts_lost.read() == options.records,
          "no_loss: written differs from delivered + lost");
  };
  return program;
}

}  // namespace perfring::model

#endif  // HARNESS_MODEL_RING_PROGRAM_H_
