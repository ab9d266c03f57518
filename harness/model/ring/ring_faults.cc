#include "harness/model/ring/ring_faults.h"

#include <algorithm>
#include <array>

#include "harness/faults/consumer_faults.h"
#include "harness/faults/kernel_faults.h"
#include "harness/faults/memory_faults.h"
#include "harness/model/ring/ring_program.h"

namespace perfring {
namespace model {
namespace {

struct ReleaseForFull : ModelMemory {
  static void fence_before_write_of(const SharedPosition&) { fence(std::memory_order_release); }
};
struct AcquireForFull : ModelMemory {
  static void fence_before_write_of(const SharedPosition&) { fence(std::memory_order_acquire); }
};
struct StoreStoreForFull : ModelMemory {
  static void fence_before_write_of(const SharedPosition&) { fence_store_store(); }
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

struct ReleaseForWmb : ModelCpu {
  void smp_wmb(const __u64&) { fence(std::memory_order_release); }
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

template <class C>
constexpr auto kernel_side = ring_program<Ring<ModelMemory>, C>;
template <class M>
constexpr auto policy = ring_program<Ring<M>>;
template <template <class> class F>
constexpr auto consumer = ring_program<F<ModelMemory>>;

const std::array kFaults = {
    RingFault{"no_acquire_fence", policy<faults::NoAcquireFence<ModelMemory>>, true, true},
    RingFault{"acquire_fence_first", policy<faults::AcquireFenceFirst<ModelMemory>>, true, true},
    RingFault{"head_read_again", policy<faults::HeadReadAgain<ModelMemory>>, true, true},
    RingFault{"no_full_fence", policy<faults::NoFullFence<ModelMemory>>, false, true},
    RingFault{"release_for_full", policy<ReleaseForFull>, false, false},
    RingFault{"acquire_for_full", policy<AcquireForFull>, false, true},
    RingFault{"store_store_for_full", policy<StoreStoreForFull>, false, true},
    RingFault{"commits_first", policy<faults::CommitsFirst<ModelMemory>>, true, true},
    RingFault{"commits_early", consumer<faults::CommitsEarly>, true, true},
    RingFault{"commits_each", consumer<faults::CommitsEach>, true, true},
    RingFault{"commits_each_unfenced", consumer<faults::CommitsEachUnfenced>, true, true},
    RingFault{"looks_afterwards", consumer<faults::LooksAfterwards>, true, true},
    RingFault{"no_control_dependency", kernel_side<faults::NoControlDependency<ModelCpu>>, false,
              true},
    RingFault{"no_smp_wmb", kernel_side<faults::NoSmpWmb<ModelCpu>>, true, true},
    RingFault{"release_for_wmb", kernel_side<ReleaseForWmb>, false, false},
    RingFault{"publishes_first", kernel_side<faults::PublishesFirst<ModelCpu>>, true, true},
    RingFault{"publishes_nested", kernel_side<faults::PublishesNested<ModelCpu>>, true, true,
              "ring/nested"},
    RingFault{"stores_after_publishing", kernel_side<faults::StoresAfterPublishing<ModelCpu>>, true,
              true},
    RingFault{"space_off_by_8", kernel_side<faults::SpaceOffBy8<ModelCpu>>, false, false},
    RingFault{"distance_modulo", policy<DistanceModuloSize>, false, false},
    RingFault{"full_ring_modulo",
              ring_program<Ring<DistanceModuloSize>, faults::SpaceOffBy8<ModelCpu>>, true, true},
    RingFault{"one_record_too_many", kernel_side<faults::OneRecordTooMany<ModelCpu>>, true, true},
    RingFault{"ignores_tail", kernel_side<faults::IgnoresTail<ModelCpu>>, true, true},
    // In form B it is a race whatever user space does.
    RingFault{"header_read_twice", policy<HeaderReadTwice>, true, true, "ring/oversize"},
};

}  // namespace

std::span<const RingFault> ring_faults() {
  return kFaults;
}

const RingFault* find_ring_fault(const std::string& name) {
  const auto* const found = std::ranges::find(kFaults, name, &RingFault::name);
  return found == kFaults.end() ? nullptr : found;
}

}  // namespace model
}  // namespace perfring
