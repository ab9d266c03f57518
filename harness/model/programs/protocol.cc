#include "harness/model/programs/programs.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <memory>

#include "harness/model/engine/trace.h"
#include "harness/oracle/invariant.h"

namespace perfring::model {

namespace {

using oracle::Invariant;

constexpr NamedCheck kOtherWord{Invariant::intact, "a word differs from what was written there"};
constexpr NamedCheck kOtherLength{Invariant::intact, "a record's length is not what was written"};
constexpr NamedCheck kPastHead{Invariant::in_ring, "a record extends past data_head"};
constexpr NamedCheck kUndelivered{Invariant::no_loss, "not everything published was delivered"};

constexpr std::uint64_t kWords = 4;

constexpr unsigned kLengthAt = 32;  // in bits

struct Shared {
  Protocol options;
  Var head, tail;
  Var written, delivered;  // the positions that the threads have reached
  std::vector<Var> ring;

  bool atomic_words() const { return options.form == Protocol::Form::A; }
  unsigned length(unsigned record) const {
    return options.lengths[record % options.lengths.size()];
  }
  // Returns a position as data_head and data_tail store it.
  std::uint64_t stored(std::uint64_t position) const {
    return options.modulo_size ? position % kWords : position;
  }
  std::uint64_t distance(std::uint64_t from, std::uint64_t to) const { return stored(to - from); }
  const Var& word(std::uint64_t position) const { return ring[position % kWords]; }

  void write(std::uint64_t position, std::uint64_t length) const {
    const std::uint64_t value = (position + 1) | length << kLengthAt;
    if (atomic_words()) {
      word(position).store(value, std::memory_order_relaxed);
    } else {
      word(position).write(value);
    }
  }
  // Returns the length of the record that begins at `position`, if one does.
  std::uint64_t read(std::uint64_t position) const {
    const std::uint64_t value =
        atomic_words() ? word(position).load(std::memory_order_relaxed) : word(position).read();
    constexpr std::uint64_t kPosition = (std::uint64_t{1} << kLengthAt) - 1;
    check(options.oversize || (value & kPosition) == position + 1, kOtherWord);
    return value >> kLengthAt;
  }
};

void barrier(Protocol::Barrier barrier) {
  switch (barrier) {
    case Protocol::Barrier::None:
      return;
    case Protocol::Barrier::Acquire:
      return fence(std::memory_order_acquire);
    case Protocol::Barrier::Release:
      return fence(std::memory_order_release);
    case Protocol::Barrier::Full:
      return fence(std::memory_order_seq_cst);
    case Protocol::Barrier::StoreStore:
      return fence_store_store();
  }
}

bool has_space(const Shared& shared, std::uint64_t used, std::uint64_t need) {
  using Space = Protocol::Space;
  switch (shared.options.space) {
    case Space::Unchecked:
      return true;
    case Space::OneTooMany:
      return used + need <= kWords + 1;
    case Space::AllOfIt:
      return used + need <= kWords;
    case Space::Checked:
      break;
  }
  return used + need <= kWords - 1;
}

void write_record(const Shared& shared, std::uint64_t position, std::uint64_t length,
                  bool oversize) {
  for (std::uint64_t i = 0; i < length; ++i) shared.write(position + i, i == 0 ? length : 0);
  for (std::uint64_t i = length; oversize && i < kWords; ++i) {
    shared.write(position + i, 2 * kWords);
  }
}

void produce(const Shared& shared) {
  const Protocol& options = shared.options;
  const auto tail_order =
      shared.atomic_words() ? std::memory_order_relaxed : std::memory_order_acquire;
  std::uint64_t head = 0;
  for (unsigned record = 0; record < options.records; ++record) {
    checkpoint({record, head});
    const bool oversize = options.oversize && record + 1 == options.records;
    const std::uint64_t need = shared.length(record);
    const std::uint64_t tail = shared.tail.load(tail_order);  // A
    const std::uint32_t tail_read = last_read();
    if (!has_space(shared, shared.distance(tail, head), need)) continue;
    if (options.control_dependency) control_dependency(tail_read);
    if (!options.head_first) write_record(shared, head, need, oversize);
    barrier(options.before_head_store);  // B
    shared.head.store(shared.stored(head + need), std::memory_order_relaxed);
    if (options.head_first) write_record(shared, head, need, oversize);
    head += need;
  }
  shared.written.write(head);
}

void drain(const Shared& shared, std::uint64_t& tail) {
  using Commit = Protocol::Commit;
  const Protocol& options = shared.options;
  if (options.fence_before_head_load) fence(std::memory_order_acquire);
  std::uint64_t head = shared.head.load(std::memory_order_relaxed);
  barrier(options.after_head_load);  // C
  if (shared.distance(tail, head) == 0) return;
  if (options.head_read_again) head = shared.head.load(std::memory_order_relaxed);
  std::uint64_t left = shared.distance(tail, head);
  const auto commit = [&](std::uint64_t position) {
    barrier(options.before_tail_store);  // D
    shared.tail.store(shared.stored(position), std::memory_order_relaxed);
  };
  if (options.commit == Commit::BeforeBatch) commit(tail + left);
  while (left != 0) {
    std::uint64_t length = shared.read(tail);
    const bool believable = length != 0 && length <= left;
    check(options.oversize || believable, kOtherLength);
    if (!believable) length = left;
    if (options.header_read_twice) length = shared.read(tail);
    check(length != 0 && length <= left, kPastHead);
    length = std::clamp<std::uint64_t>(length, 1, left);  // on machines the thread continues
    if (options.commit == Commit::AfterEachHeader) commit(tail + length);
    for (std::uint64_t i = 1; i < length; ++i) shared.read(tail + i);
    tail += length;
    left -= length;
    if (options.commit == Commit::AfterEachRecord) commit(tail);
  }
  if (options.commit == Commit::AfterBatch) commit(tail);
}

}  // namespace

Program protocol(const Protocol& options) {
  Program program;
  program.name = "protocol";
  const auto shared = std::make_shared<Shared>();
  shared->options = options;
  shared->head = program.var("data_head");
  shared->tail = program.var("data_tail");
  shared->written = program.var("written");
  shared->delivered = program.var("delivered");
  for (std::uint64_t i = 0; i < kWords; ++i) {
    shared->ring.push_back(program.var(fmt::format("data[{}]", i)));
  }
  program.thread_names = {"kernel", "user"};
  program.threads.emplace_back([shared] { produce(*shared); });
  program.threads.emplace_back([shared] {
    std::uint64_t tail = 0;
    for (unsigned i = 0; i < shared->options.drains; ++i) {
      checkpoint({i, tail});
      drain(*shared, tail);
    }
    shared->delivered.write(tail);
  });
  program.finally = [shared] {
    std::uint64_t tail = shared->delivered.read();
    drain(*shared, tail);
    check(tail == shared->written.read(), kUndelivered);
  };
  return program;
}

namespace {

using B = Protocol::Barrier;
using C = Protocol::Commit;
using S = Protocol::Space;
using P = Protocol;

const std::array kFaults = {
    ProtocolFault{"no_acquire_fence", [](P& p) { p.after_head_load = B::None; }, kOtherWord,
                  kDataRace},
    ProtocolFault{"acquire_fence_first",
                  [](P& p) { p.after_head_load = B::None, p.fence_before_head_load = true; },
                  kOtherWord, kDataRace},
    ProtocolFault{"head_read_again", [](P& p) { p.head_read_again = true; }, kOtherWord, kDataRace},
    ProtocolFault{"no_control_dependency", [](P& p) { p.control_dependency = false; }, nullptr,
                  nullptr},
    ProtocolFault{"no_full_fence", [](P& p) { p.before_tail_store = B::None; }, nullptr, kDataRace},
    ProtocolFault{"release_for_full", [](P& p) { p.before_tail_store = B::Release; }, nullptr,
                  nullptr},
    ProtocolFault{"acquire_for_full", [](P& p) { p.before_tail_store = B::Acquire; }, nullptr,
                  kDataRace},
    ProtocolFault{"store_store_for_full", [](P& p) { p.before_tail_store = B::StoreStore; },
                  nullptr, kDataRace},
    ProtocolFault{"no_smp_wmb", [](P& p) { p.before_head_store = B::None; }, kOtherWord, kDataRace},
    ProtocolFault{"store_store_for_release", [](P& p) { p.before_head_store = B::StoreStore; },
                  nullptr, nullptr},
    ProtocolFault{"space_off_by_8", [](P& p) { p.space = S::AllOfIt; }, nullptr, nullptr},
    ProtocolFault{"full_ring_modulo", [](P& p) { p.space = S::AllOfIt, p.modulo_size = true; },
                  kUndelivered, kUndelivered},
    ProtocolFault{"ignores_tail", [](P& p) { p.space = S::Unchecked; }, kOtherWord, kOtherWord},
    ProtocolFault{"one_record_too_many", [](P& p) { p.space = S::OneTooMany; }, kOtherWord,
                  kOtherWord},
    ProtocolFault{"commits_before_reading", [](P& p) { p.commit = C::BeforeBatch; }, kOtherWord,
                  kDataRace},
    ProtocolFault{"commits_early", [](P& p) { p.commit = C::AfterEachHeader; }, kOtherWord,
                  kDataRace},
    ProtocolFault{"commits_by_record", [](P& p) { p.commit = C::AfterEachRecord; }, nullptr,
                  nullptr},
    ProtocolFault{"commits_by_record_unfenced",
                  [](P& p) { p.commit = C::AfterEachRecord, p.before_tail_store = B::None; },
                  nullptr, kDataRace},
    ProtocolFault{"publishes_before_writing", [](P& p) { p.head_first = true; }, kOtherWord,
                  kDataRace},
    ProtocolFault{"aya_until_2026",
                  [](P& p) { p.after_head_load = B::None, p.commit = C::AfterEachRecord; },
                  kOtherWord, kDataRace},
    // The kernel itself races, which user space cannot prevent.
    ProtocolFault{"oversize", [](P& p) { p.oversize = true; }, nullptr, kDataRace},
    ProtocolFault{"header_read_twice", [](P& p) { p.oversize = p.header_read_twice = true; },
                  kPastHead, kPastHead},
};

}  // namespace

std::span<const ProtocolFault> protocol_faults() {
  return kFaults;
}

const ProtocolFault* find_protocol_fault(const std::string& name) {
  const auto* const found = std::ranges::find(kFaults, name, &ProtocolFault::name);
  return found == kFaults.end() ? nullptr : found;
}

}  // namespace perfring::model
