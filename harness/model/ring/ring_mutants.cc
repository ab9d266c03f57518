#include "harness/model/ring/ring_mutants.h"

#include <algorithm>
#include <array>

#include "harness/model/ring/ring_program.h"

namespace perfring {
namespace model {
namespace {

struct NoAcquireFence : ModelMemory {
  static void fence_after_read_of(const SharedPosition&) {}
};
struct AcquireFenceFirst : ModelMemory {
  static Position read_once(const SharedPosition& field, Where where = Where::here()) {
    fence(std::memory_order_acquire);
    return ModelMemory::read_once(field, where);
  }
  static void fence_after_read_of(const SharedPosition&) {}
};
struct HeadReadAgain : ModelMemory {
  static Position read_once(const SharedPosition& field, Where where = Where::here()) {
    ModelMemory::read_once(field, where);
    fence(std::memory_order_acquire);
    return ModelMemory::read_once(field, where);
  }
  static void fence_after_read_of(const SharedPosition&) {}
};
struct NoFullFence : ModelMemory {
  static void fence_before_write_of(const SharedPosition&) {}
};
struct ReleaseForFull : ModelMemory {
  static void fence_before_write_of(const SharedPosition&) { fence(std::memory_order_release); }
};
struct AcquireForFull : ModelMemory {
  static void fence_before_write_of(const SharedPosition&) { fence(std::memory_order_acquire); }
};
struct StoreStoreForFull : ModelMemory {
  static void fence_before_write_of(const SharedPosition&) { fence_store_store(); }
};
struct TailFirst : ModelMemory {
  static void fence_after_read_of(const SharedPosition& head) {
    ModelMemory::fence_after_read_of(head);
    fence(std::memory_order_seq_cst);
    ModelRing::here->tail().store(ModelRing::here->position(&head).load(std::memory_order_relaxed),
                                  std::memory_order_relaxed);
  }
};
// When the next header is read, and without a fence.
struct TailAfterEachRecord : ModelMemory {
  template <class T>
  static T read(const std::byte* address, Where where = Where::here()) {
    if (sizeof(T) == sizeof(std::uint64_t) && !ModelRing::here->is_position(address)) {
      const std::uint64_t tail = own_tail();
      const auto at = static_cast<std::uint64_t>(address - ModelRing::here->begin());
      const std::uint64_t passed = (at - tail) & (ModelRing::here->size() - 1);
      ModelRing::here->tail().store(tail + passed, std::memory_order_relaxed);
    }
    return ModelMemory::read<T>(address, where);
  }
};
// When a sample's header has been read, and its payload not yet.
struct TailAfterEachHeader : ModelMemory {
  template <class T>
  static T read(const std::byte* address, Where where = Where::here()) {
    const T value = ModelMemory::read<T>(address, where);
    const auto header = std::bit_cast<perf_event_header>(std::uint64_t{value});
    if (sizeof(T) == sizeof(header) && !ModelRing::here->is_position(address) &&
        header.type == PERF_RECORD_SAMPLE) {
      const std::uint64_t tail = own_tail();
      const auto at = static_cast<std::uint64_t>(address - ModelRing::here->begin());
      const std::uint64_t passed = (at - tail) & (ModelRing::here->size() - 1);
      fence(std::memory_order_seq_cst);
      ModelRing::here->tail().store(tail + passed + header.size, std::memory_order_relaxed);
    }
    return value;
  }
};
// As if positions were kept modulo the ring's size: a ring that is full looks empty.
struct DistanceModuloSize : ModelMemory {
  static Position read_once(const SharedPosition& field, Where where = Where::here()) {
    const auto tail = static_cast<Position>(own_tail());
    const auto mask = static_cast<Position>(ModelRing::here->size() - 1);
    return tail + ((ModelMemory::read_once(field, where) - tail) & mask);
  }
};
// Once to check it, once to use it. No policy can do that: it specializes Drain's deliver step
// below, a private member, and must follow it if it is renamed.
struct HeaderReadTwice : ModelMemory {};

struct NoWmb : ModelCpu {
  void smp_wmb(const __u64&) {}
};
struct ReleaseForWmb : ModelCpu {
  void smp_wmb(const __u64&) { fence(std::memory_order_release); }
};
struct HeadFirst : ModelCpu {
  void on_reserve(kernel::perf_buffer& rb, __u64 position, std::size_t size) {
    ModelCpu::write_once(rb.user_page->data_head, position + size);
  }
};
struct PublishesNested : ModelCpu {
  const kernel::perf_buffer* buffer = nullptr;
  void on_reserve(const kernel::perf_buffer& rb, __u64, std::size_t) { buffer = &rb; }
  void step() {
    if (buffer == nullptr || buffer->nest < 2) return;
    ModelCpu::smp_wmb(buffer->user_page->data_head);
    ModelCpu::write_once(buffer->user_page->data_head, buffer->head);
  }
};
// Takes kMore used bytes for free ones. circ_space() keeps one byte free, and records are multiples
// of 8: with 8 more the ring gets completely full.
template <__u64 kMore>
struct MoreSpace : ModelCpu {
  __u64 read_once(const __u64& field) {
    const __u64 tail = ModelCpu::read_once(field);
    const __u64 head = ModelCpu::read_once(ModelRing::here->page().data_head);
    return tail + std::min(head - tail, kMore);
  }
};
struct NoSpaceCheck : ModelCpu {
  __u64 read_once(const __u64&) { return ModelCpu::read_once(ModelRing::here->page().data_head); }
};

}  // namespace
}  // namespace model

// The part of Drain that uses a header's size, after chase() has checked it.
template <>
template <class Visit>
bool internal::Drain<model::HeaderReadTwice>::deliver(At& at, std::size_t, std::size_t raw,
                                                      Visit& visit) {
  const Bytes payload{at + kPayloadAt, raw};
  const std::size_t size = size_of(header_at(at));
  model::check(size <= left(at), "in_ring: a record is taken to end past data_head");
  at = advance(at, std::min(size, left(at)));
  return visit(PerfEvent{Sample{payload, Bytes{}}});
}

namespace model {
namespace {

template <class M>
constexpr auto user = ring_program<M, ModelCpu>;
template <class C>
constexpr auto kernel_side = ring_program<ModelMemory, C>;

const std::array kMutants = {
    RingMutant{"no_acquire_fence", "no acquire fence after data_head is read", user<NoAcquireFence>,
               true, true},
    RingMutant{"acquire_fence_first", "the acquire fence before data_head is read",
               user<AcquireFenceFirst>, true, true},
    RingMutant{"head_read_again", "data_head read again, without a fence", user<HeadReadAgain>,
               true, true},
    RingMutant{"no_full_fence", "no fence before data_tail is written", user<NoFullFence>, false,
               true},
    RingMutant{"release_for_full", "a release fence before data_tail is written",
               user<ReleaseForFull>, false, false},
    RingMutant{"acquire_for_full", "an acquire fence before data_tail is written",
               user<AcquireForFull>, false, true},
    RingMutant{"store_store_for_full", "a store-store fence before data_tail is written",
               user<StoreStoreForFull>, false, true},
    RingMutant{"commits_first", "data_tail written before the batch is read", user<TailFirst>, true,
               true},
    RingMutant{"tail_each_unfenced", "data_tail written after each record, without a fence",
               user<TailAfterEachRecord>, true, true},
    RingMutant{"tail_after_each_header",
               "data_tail written after each header, before the payload is read",
               user<TailAfterEachHeader>, true, true},
    RingMutant{"no_smp_wmb", "no smp_wmb()", kernel_side<NoWmb>, true, true},
    RingMutant{"release_for_wmb", "smp_wmb() a release fence", kernel_side<ReleaseForWmb>, false,
               false},
    RingMutant{"publishes_first", "data_head published before the record is written",
               kernel_side<HeadFirst>, true, true},
    RingMutant{"publishes_nested", "a nested writer publishes what the outer one still writes",
               kernel_side<PublishesNested>, true, true, "ring/nested"},
    RingMutant{"full_ring", "a completely full ring", kernel_side<MoreSpace<8>>, false, false},
    RingMutant{"distance_modulo", "distances modulo the ring's size", user<DistanceModuloSize>,
               false, false},
    RingMutant{"full_ring_modulo", "both at once", ring_program<DistanceModuloSize, MoreSpace<8>>,
               true, true},
    RingMutant{"one_record_too_many", "16 bytes more than the ring has", kernel_side<MoreSpace<24>>,
               true, true},
    RingMutant{"ignores_tail", "data_tail is not looked at", kernel_side<NoSpaceCheck>, true, true},
    // In form B it is a race whatever user space does.
    RingMutant{"header_read_twice", "a header is read once to check it, once to use it",
               user<HeaderReadTwice>, true, true, "ring/oversize"},
};

}  // namespace

std::span<const RingMutant> ring_mutants() {
  return kMutants;
}

const RingMutant* find_ring_mutant(const std::string& name) {
  const auto* const found = std::ranges::find(kMutants, name, &RingMutant::name);
  return found == kMutants.end() ? nullptr : found;
}

}  // namespace model
}  // namespace perfring
