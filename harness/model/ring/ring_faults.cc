#include "harness/model/ring/ring_faults.h"

#include <algorithm>
#include <initializer_list>
#include <vector>

#include "harness/faults/consumer_faults.h"
#include "harness/faults/cursor_faults.h"
#include "harness/faults/kernel_faults.h"
#include "harness/faults/memory_faults.h"
#include "harness/model/ring/cursor_consumer.h"
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

template <class M>
using PulledCursor = Puller<Cursor<M>>;

// Of memory, around any consumer over a Memory.
template <template <class> class R>
std::vector<RingFault> memory_faults() {
  return {
      {"no_acquire_fence", ring_program<R<faults::NoAcquireFence<ModelMemory>>>, true, true},
      {"acquire_fence_first", ring_program<R<faults::AcquireFenceFirst<ModelMemory>>>, true, true},
      {"head_read_again", ring_program<R<faults::HeadReadAgain<ModelMemory>>>, true, true},
      {"no_full_fence", ring_program<R<faults::NoFullFence<ModelMemory>>>, false, true},
      {"release_for_full", ring_program<R<ReleaseForFull>>, false, false},
      {"acquire_for_full", ring_program<R<AcquireForFull>>, false, true},
      {"store_store_for_full", ring_program<R<StoreStoreForFull>>, false, true},
      {"commits_first", ring_program<R<faults::CommitsFirst<ModelMemory>>>, true, true},
  };
}

// Of the kernel, beside any consumer over a Memory.
template <template <class> class R>
std::vector<RingFault> kernel_faults() {
  using Sound = R<ModelMemory>;
  return {
      {"no_control_dependency", ring_program<Sound, faults::NoControlDependency<ModelCpu>>, false,
       true},
      {"no_smp_wmb", ring_program<Sound, faults::NoSmpWmb<ModelCpu>>, true, true},
      {"release_for_wmb", ring_program<Sound, ReleaseForWmb>, false, false},
      {"publishes_first", ring_program<Sound, faults::PublishesFirst<ModelCpu>>, true, true},
      {"publishes_nested", ring_program<Sound, faults::PublishesNested<ModelCpu>>, true, true,
       "ring/nested"},
      {"stores_after_publishing", ring_program<Sound, faults::StoresAfterPublishing<ModelCpu>>,
       true, true},
      {"space_off_by_8", ring_program<Sound, faults::SpaceOffBy8<ModelCpu>>, false, false},
      {"distance_modulo", ring_program<R<DistanceModuloSize>>, false, false},
      {"full_ring_modulo", ring_program<R<DistanceModuloSize>, faults::SpaceOffBy8<ModelCpu>>, true,
       true},
      {"one_record_too_many", ring_program<Sound, faults::OneRecordTooMany<ModelCpu>>, true, true},
      {"ignores_tail", ring_program<Sound, faults::IgnoresTail<ModelCpu>>, true, true},
  };
}

template <template <class> class F>
constexpr auto consumer = ring_program<F<ModelMemory>>;
template <template <class> class F>
constexpr auto cursor = ring_program<Puller<F<ModelMemory>>>;

std::vector<RingFault> all_of(std::initializer_list<std::vector<RingFault>> parts) {
  std::vector<RingFault> all;
  for (const std::vector<RingFault>& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

}  // namespace

std::span<const RingFault> ring_faults() {
  static const auto all = all_of({
      memory_faults<Ring>(),
      {{"commits_early", consumer<faults::CommitsEarly>, true, true},
       {"commits_each", consumer<faults::CommitsEach>, true, true},
       {"commits_each_unfenced", consumer<faults::CommitsEachUnfenced>, true, true},
       {"looks_afterwards", consumer<faults::LooksAfterwards>, true, true},
       {"releases_early", consumer<faults::ByReleasesEarly>, true, true}},
      kernel_faults<Ring>(),
      // In form B it is a race whatever user space does.
      {{"header_read_twice", ring_program<Ring<HeaderReadTwice>>, true, true, "ring/oversize"}},
  });
  return all;
}

std::span<const RingFault> cursor_faults() {
  static const auto all = all_of({
      memory_faults<PulledCursor>(),
      {{"releases_early", cursor<faults::ReleasesEarly>, true, true}},
      kernel_faults<PulledCursor>(),
  });
  return all;
}

const RingFault* find_ring_fault(std::span<const RingFault> among, const std::string& name) {
  const auto found = std::ranges::find(among, name, &RingFault::name);
  return found == among.end() ? nullptr : &*found;
}

}  // namespace model
}  // namespace perfring
