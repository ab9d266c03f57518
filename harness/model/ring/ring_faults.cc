
#include <algorithm>
#include <atomic>
#include <cstddef>
#include <initializer_list>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "harness/faults/kernel_faults.h"
#include "harness/faults/loop_faults.h"
#include "harness/faults/memory_faults.h"
#include "harness/faults/planted.h"
#include "harness/model/engine/explorer.h"
#include "harness/model/engine/program.h"
#include "harness/model/engine/step.h"
#include "harness/model/engine/trace.h"
#include "harness/model/ring/model_memory.h"
#include "harness/model/ring/ring_consumer.h"
#include "harness/model/ring/ring_program.h"
#include "perfring/perf_event.h"
#include "perfring/ring/cursor.h"
#include "perfring/ring/drain.h"
#include "perfring/ring/memory.h"
#include "perfring/ring/ring.h"

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
// Treats positions as if they were kept modulo the ring's size: a full ring looks empty.
struct DistanceModuloSize : ModelMemory {
  static Position read_once(const SharedPosition& field, Where where = Where::here()) {
    const auto tail = static_cast<Position>(own_tail());
    const auto mask = static_cast<Position>(ModelRing::here->size() - 1);
    return tail + ((ModelMemory::read_once(field, where) - tail) & mask);
  }
};
// Reads each header twice: once to check it, once to use it. A policy cannot do that, so Drain's
// deliver step is specialized below. It is a private member: if it is renamed, rename this, too.
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
  model::check(size <= left(at), model::kPastHead);
  at = advance(at, std::min(size, left(at)));
  return visit(PerfEvent{Sample{payload, Bytes{}}});
}

namespace model {
namespace {

// A fault, as the kernel and the consumer of a program.
struct Halves {
  std::string name;
  Producing kernel;
  Consuming user;
};

constexpr Producing kRightKernel = produce<ModelCpu>;
constexpr Consuming kRightUser = consume<Ring<ModelMemory>>;
template <class M>
using PulledCursor = Puller<Cursor<M>>;

constexpr auto plant_kernel = []<template <class> class F>(faults::Named<F> fault) {
  return Halves{fault.name, produce<F<ModelCpu>>, kRightUser};
};
constexpr auto plant_memory = []<template <class> class F>(faults::Named<F> fault) {
  return Halves{fault.name, kRightKernel, consume<Ring<F<ModelMemory>>>};
};
constexpr auto plant_consumer = []<template <class> class F>(faults::Named<F> fault) {
  return Halves{fault.name, kRightKernel, consume<F<ModelMemory>>};
};

// Returns the faults of harness/faults that are templates, and the faults that need this memory.
std::vector<Halves> all_halves() {
  auto all = faults::plant_all<Halves>(plant_kernel, plant_memory, plant_consumer);
  all.insert(all.end(), {{"release_for_full", kRightKernel, consume<Ring<ReleaseForFull>>},
                         {"acquire_for_full", kRightKernel, consume<Ring<AcquireForFull>>},
                         {"store_store_for_full", kRightKernel, consume<Ring<StoreStoreForFull>>},
                         {"release_for_wmb", produce<ReleaseForWmb>, kRightUser},
                         {"distance_modulo", kRightKernel, consume<Ring<DistanceModuloSize>>},
                         {"full_ring_modulo", produce<faults::SpaceOffBy8<ModelCpu>>,
                          consume<Ring<DistanceModuloSize>>},
                         {"header_read_twice", kRightKernel, consume<Ring<HeaderReadTwice>>}});
  return all;
}

// The kernel's faults do not depend on the consumer: a Cursor finds the same ones. The faulty
// consumers are in `users`.
template <class M>
constexpr Consuming kPulled = consume<PulledCursor<M>>;
std::vector<Halves> cursor_halves() {
  auto all = all_halves();
  for (Halves& each : all) each.user = each.user == kRightUser ? kPulled<ModelMemory> : nullptr;
  const std::initializer_list<std::pair<const char*, Consuming>> users{
      {"no_acquire_fence", kPulled<faults::NoAcquireFence<ModelMemory>>},
      {"acquire_fence_first", kPulled<faults::AcquireFenceFirst<ModelMemory>>},
      {"head_read_again", kPulled<faults::HeadReadAgain<ModelMemory>>},
      {"no_full_fence", kPulled<faults::NoFullFence<ModelMemory>>},
      {"release_for_full", kPulled<ReleaseForFull>},
      {"acquire_for_full", kPulled<AcquireForFull>},
      {"store_store_for_full", kPulled<StoreStoreForFull>},
      {"commits_before_reading", kPulled<faults::CommitsBeforeReading<ModelMemory>>},
      {"releases_early", consume<Puller<faults::ReleasesEarly<ModelMemory>>>},
      {"distance_modulo", kPulled<DistanceModuloSize>},
      {"full_ring_modulo", kPulled<DistanceModuloSize>},
  };
  for (const auto& [name, user] : users) std::ranges::find(all, name, &Halves::name)->user = user;
  return all;
}

// The check that finds a fault, in each form, and the program that shows it.
struct FoundBy {
  const char* name;
  const char *in_a, *in_b;
  const char* shows_in = "ring";
};

// Faults of memory order.
constexpr FoundBy kOrder[]{
    {"no_acquire_fence", kNothingWritten, kDataRace},
    {"acquire_fence_first", kNothingWritten, kDataRace},
    {"head_read_again", kNothingWritten, kDataRace},
    {"no_full_fence", nullptr, kDataRace},
    {"release_for_full", nullptr, nullptr},
    {"acquire_for_full", nullptr, kDataRace},
    {"store_store_for_full", nullptr, kDataRace},
    {"commits_before_reading", kMovesBefore, kMovesBefore},
    {"commits_early", kMovesBefore, kMovesBefore},
    {"commits_each", kMovesBefore, kMovesBefore},
    {"commits_each_unfenced", kMovesBefore, kMovesBefore},
    {"reads_after_drain", kMovesBefore, kMovesBefore},
    {"releases_early", kMovesBefore, kMovesBefore},
    {"no_control_dependency", nullptr, kDataRace},
    {"no_smp_wmb", kNothingWritten, kDataRace},
    {"release_for_wmb", nullptr, nullptr},
    {"publishes_before_writing", kNothingWritten, kDataRace},
    {"publishes_nested", kNothingWritten, kDataRace, "ring/nested"},
    {"stores_after_publishing", kNothingWritten, kDataRace},
    {"space_off_by_8", nullptr, nullptr},
    {"distance_modulo", nullptr, nullptr},
    {"full_ring_modulo", kNotAll, kNotAll},
    {"one_record_too_many", kMalformed, kMalformed},
    {"ignores_tail", kMalformed, kMalformed},
    {"header_read_twice", kPastHead, kDataRace, "ring/oversize"},
};

// Faults that do not depend on memory order.
constexpr FoundBy kAnyOrder[]{
    {"exposes_reservations", kNothingWritten, kDataRace},
    {"publishes_unaligned", kMalformed, kMalformed},
    {"corrupts_ring_start", kNothingWritten, kNothingWritten},
    {"refuses_in_an_empty_ring", kRefused, kRefused},
    {"counts_losses_twice", kNotAll, kNotAll},
    {"forgets_losses", kNotAll, kNotAll},
    {"detaches_ring", kNotAll, kNotAll},
    {"writes_a_wrong_lost_count", kAgain, kAgain, "ring/straddle"},
    {"omits_last_word", kAgain, kAgain, "ring/straddle"},
    {"truncates_raw", nullptr, nullptr},
    {"wakes_nobody", nullptr, nullptr},
    {"sets_no_poll_flag", nullptr, nullptr},
    {"wakes_one_record_late", nullptr, nullptr},
    {"wakes_every_second_time", nullptr, nullptr},
    {"wakes_before_publishing", nullptr, nullptr},
    {"announces_refusals", nullptr, nullptr},
    {"tail_too_low", kTailElsewhere, kTailElsewhere},
    {"tail_too_high", kTailElsewhere, kTailElsewhere},
    {"commits_unaligned", kTailElsewhere, kTailElsewhere},
    {"never_commits", kTailElsewhere, kTailElsewhere},
    {"treats_retreat_as_damage", kMalformed, kMalformed, "ring/nested_before_5_2"},
    {"underreads", kOutside, kOutside},
    {"overreads", kOutside, kOutside},
    {"shortens_samples", kOtherSize, kOtherSize},
    {"ignores_top_size_bit", nullptr, nullptr},
    {"drops_second_slice", kOtherSize, kOtherSize, "ring/straddle"},
    {"redelivers_after_break", kTailElsewhere, kTailElsewhere, "ring/break"},
    {"commits_all_on_break", kTailElsewhere, kTailElsewhere, "ring/break"},
    {"no_commit_on_throw", kTailElsewhere, kTailElsewhere, "ring/throw"},
    {"forgets_lost", kOtherWord, kOtherWord},
    {"ignores_break", kAfterTheLast, kAfterTheLast, "ring/break"},
    {"takes_one_at_a_time", kNotEmptied, kNotEmptied},
    {"drops_last_event", kTailElsewhere, kTailElsewhere},
    {"delivers_twice", kAgain, kAgain},
    {"swaps_two", kOtherWord, kOtherWord},
    {"keeps_slices", kAgain, kAgain},
    {"sleeps_after_break", kNotAll, kNotAll},
    {"releases_undelivered", kTailElsewhere, kTailElsewhere, "ring/break"},
    {"trusts_record_sizes", kTooMany, kTooMany, "ring/oversize"},
    {"positions_of_64_bits", kNothingWritten, kNothingWritten, "ring/wrap_32"},
    {"leaves_last_record", kNotAll, kNotAll},
    {"ignores_wrap", kOutside, kOutside, "ring/straddle"},
};

// Faults of memory order, with a Cursor as the consumer: in the kernel or in the Cursor.
constexpr FoundBy kCursorOrder[]{
    {"no_acquire_fence", kMalformed, kDataRace},
    {"acquire_fence_first", kMalformed, kDataRace},
    {"head_read_again", kMalformed, kDataRace},
    {"no_full_fence", nullptr, kDataRace},
    {"release_for_full", nullptr, nullptr},
    {"acquire_for_full", nullptr, kDataRace},
    {"store_store_for_full", nullptr, kDataRace},
    {"commits_before_reading", kMovesBefore, kMovesBefore},
    {"releases_early", kMovesBefore, kMovesBefore},
    {"no_control_dependency", nullptr, kDataRace},
    {"no_smp_wmb", kNothingWritten, kDataRace},
    {"release_for_wmb", nullptr, nullptr},
    {"publishes_before_writing", kNothingWritten, kDataRace},
    {"publishes_nested", kNothingWritten, kDataRace, "ring/nested"},
    {"stores_after_publishing", kNothingWritten, kDataRace},
    {"space_off_by_8", nullptr, nullptr},
    {"distance_modulo", nullptr, nullptr},
    {"full_ring_modulo", kNotAll, kNotAll},
    {"one_record_too_many", kMalformed, kMalformed},
    {"ignores_tail", kMalformed, kMalformed},
};

std::vector<RingFault> faults_of(const std::vector<Halves>& halves, std::span<const FoundBy> rows,
                                 bool in_any_order) {
  std::vector<RingFault> all;
  for (const FoundBy& row : rows) {
    const Halves& found = *std::ranges::find(halves, row.name, &Halves::name);
    all.push_back(
        {found.name, found.kernel, found.user, row.in_a, row.in_b, row.shows_in, in_any_order});
  }
  return all;
}

}  // namespace

std::span<const RingFault> ring_faults() {
  static const auto all = [] {
    const auto halves = all_halves();
    auto both = faults_of(halves, kOrder, false);
    for (RingFault& each : faults_of(halves, kAnyOrder, true)) both.push_back(std::move(each));
    return both;
  }();
  return all;
}

std::span<const RingFault> cursor_faults() {
  static const auto all = faults_of(cursor_halves(), kCursorOrder, false);
  return all;
}

const RingFault* find_ring_fault(std::span<const RingFault> among, const std::string& name) {
  const auto found = std::ranges::find(among, name, &RingFault::name);
  return found == among.end() ? nullptr : &*found;
}

}  // namespace model
}  // namespace perfring
