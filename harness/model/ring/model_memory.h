#ifndef HARNESS_MODEL_RING_MODEL_MEMORY_H_
#define HARNESS_MODEL_RING_MODEL_MEMORY_H_

// The checker's memory: a policy for lib's Ring and a Cpu for the simulated kernel. Their accesses
// go to the Vars that stand for a ring's control page and data. Ring and the kernel run unchanged.
//
// Data consists of words of 4 bytes; a wider access is several accesses, and may tear. Form A:
// words are relaxed atomics. Form B: they are not atomic, so that an access too many is a race,
// reads included; an acquire fence stands in for the kernel's control dependency, which C++ does
// not have.

#include <linux/perf_event.h>

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "harness/kernel/cpu.h"
#include "harness/kernel/perf_event.h"
#include "harness/model/engine/program.h"
#include "harness/model/engine/step.h"
#include "harness/oracle/invariant.h"
#include "perfring/ring/memory.h"

namespace perfring::model {

inline constexpr NamedCheck kNothingWritten{oracle::Invariant::no_invention, "a word nobody wrote"};
inline constexpr NamedCheck kMalformed{oracle::Invariant::no_invention, "a malformed record"};
inline constexpr NamedCheck kAgain{oracle::Invariant::once,
                                   "a record was delivered again or out of order"};
inline constexpr NamedCheck kNestedAgain{oracle::Invariant::once,
                                         "the interrupt's record was delivered again"};
inline constexpr NamedCheck kAfterTheLast{oracle::Invariant::once,
                                          "an event was delivered after the drain's last"};
inline constexpr NamedCheck kOtherWord{oracle::Invariant::intact,
                                       "a word differs from what was written there"};
inline constexpr NamedCheck kOtherSize{oracle::Invariant::intact, "a payload of the wrong size"};
inline constexpr NamedCheck kMovesBefore{oracle::Invariant::tail_honest,
                                         "data_tail moves before the drain ends"};
inline constexpr NamedCheck kTailElsewhere{oracle::Invariant::tail_honest,
                                           "data_tail is not where the last event ends"};
inline constexpr NamedCheck kSkipsALap{oracle::Invariant::tail_honest, "data_tail skips a lap"};
inline constexpr NamedCheck kTailNotReleased{oracle::Invariant::tail_honest,
                                             "data_tail is not where the record ends"};
inline constexpr NamedCheck kTooMany{oracle::Invariant::bounded,
                                     "more events than fit in the ring"};
inline constexpr NamedCheck kNotEmptied{oracle::Invariant::bounded,
                                        "a drain of an idle ring did not empty it"};
inline constexpr NamedCheck kOutside{oracle::Invariant::in_ring, "an access outside the ring"};
inline constexpr NamedCheck kSliceOutside{oracle::Invariant::in_ring, "a slice outside the ring"};
inline constexpr NamedCheck kPastHead{oracle::Invariant::in_ring,
                                      "a record extends past data_head"};
inline constexpr NamedCheck kRefused{oracle::Invariant::no_loss,
                                     "a record was refused, though there was room"};
inline constexpr NamedCheck kUndelivered{oracle::Invariant::no_loss,
                                         "a published record was not delivered"};
inline constexpr NamedCheck kNotAll{oracle::Invariant::no_loss,
                                    "attempted differs from delivered + lost"};

// A ring with addresses, for address arithmetic only: the Vars have its contents.
class ModelRing {
 public:
  static constexpr std::size_t kWordBytes = 4;

  // Adds the ring's Vars to the program, with data_head and data_tail at the given positions.
  ModelRing(Program& program, std::size_t size, bool atomic_words, std::uint64_t head_start,
            std::uint64_t tail_start)
      : atomic_words_{atomic_words},
        head_{program.var("data_head", head_start)},
        tail_{program.var("data_tail", tail_start)},
        data_(size / sizeof(std::uint64_t)) {
    for (std::size_t at = 0; at < size; at += kWordBytes) {
      words_.push_back(program.var("data[" + std::to_string(at) + "]"));
    }
  }

  perf_event_mmap_page& page() { return page_; }
  const perf_event_mmap_page& page() const { return page_; }
  std::byte* data() { return reinterpret_cast<std::byte*>(data_.data()); }
  const std::byte* begin() const { return reinterpret_cast<const std::byte*>(data_.data()); }
  std::size_t size() const { return data_.size() * sizeof(std::uint64_t); }
  bool atomic_words() const { return atomic_words_; }

  const Var& position(const void* field) const { return field == &page_.data_head ? head_ : tail_; }
  const Var& tail() const { return tail_; }
  bool is_position(const void* address) const {
    return address == &page_.data_head || address == &page_.data_tail;
  }
  std::uint32_t read_word(const std::byte* address, Where where) const {
    const Var& word = at(address);
    return static_cast<std::uint32_t>(atomic_words_ ? word.load(std::memory_order_relaxed, where)
                                                    : word.read(where));
  }
  void write_word(const std::byte* address, std::uint32_t value, Where where) const {
    const Var& word = at(address);
    atomic_words_ ? word.store(value, std::memory_order_relaxed, where) : word.write(value, where);
  }

  // The ring that the running thread accesses. Each thread sets it at its beginning.
  static inline thread_local const ModelRing* here = nullptr;

 private:
  const Var& at(const std::byte* address) const {
    const auto offset = static_cast<std::size_t>(address - begin());
    check(offset % kWordBytes == 0 && offset < size(), kOutside);
    return words_[offset / kWordBytes % words_.size()];
  }

  const bool atomic_words_;
  Var head_;
  Var tail_;
  std::vector<Var> words_;
  perf_event_mmap_page page_{};
  std::vector<std::uint64_t> data_;
};

// The policy for Ring. A faulty policy derives from it and does one thing differently.
struct ModelMemory {
  static Position read_once(const SharedPosition& field, Where where = Where::here()) {
    return static_cast<Position>(
        ModelRing::here->position(&field).load(std::memory_order_relaxed, where));
  }
  static void write_once(SharedPosition& field, SharedPosition value, Where where = Where::here()) {
    ModelRing::here->position(&field).store(value, std::memory_order_relaxed, where);
  }
  static void fence_after_read_of(const SharedPosition&, Where where = Where::here()) {
    fence(std::memory_order_acquire, where);
  }
  static void fence_before_write_of(const SharedPosition&, Where where = Where::here()) {
    fence(std::memory_order_seq_cst, where);
  }
  // Returns all 64 bits of a position, for consumers with 64-bit positions.
  static std::uint64_t whole(const SharedPosition& field, Where where = Where::here()) {
    return ModelRing::here->position(&field).load(std::memory_order_relaxed, where);
  }
  static void note_read(const std::byte* address, std::size_t size, Where where = Where::here()) {
    for (std::size_t i = 0; i < size; i += ModelRing::kWordBytes) {
      static_cast<void>(ModelRing::here->read_word(address + i, where));
    }
  }
  template <class T>
  static T read(const std::byte* address, Where where = Where::here()) {
    const ModelRing& ring = *ModelRing::here;
    if (ring.is_position(address)) {
      return static_cast<T>(ring.position(address).load(std::memory_order_relaxed, where));
    }
    std::array<std::uint32_t, sizeof(T) / ModelRing::kWordBytes> words{};
    for (std::size_t i = 0; i < words.size(); ++i) {
      words[i] = ring.read_word(address + i * ModelRing::kWordBytes, where);
    }
    return std::bit_cast<T>(words);
  }
};

static_assert(Memory<ModelMemory>);

// The Cpu for the simulated kernel. A faulty Cpu derives from it and does one thing differently.
struct ModelCpu : kernel::HardwareCpu {
  std::uint32_t position_read = 0;  // the number of the last read of a position
  __u64 record_bytes = 0;           // of the current output
  __u64 tail_read = 0;

  __u64 clock() const { return 0; }

  __u64 read_once(const __u64& field, Where where = Where::here()) {
    tail_read = ModelRing::here->position(&field).load(std::memory_order_relaxed, where);
    position_read = last_read();
    return tail_read;
  }
  // K12. The output may also need room for a LOST (K14), and an interrupt may have taken some room.
  void on_drop(const kernel::perf_buffer& rb, const kernel::perf_event&) {
    constexpr __u64 kLost = 24, kUnused = 8;
    const __u64 unread = rb.unsigned_long(rb.head - tail_read);
    check(unread + record_bytes + kLost > rb.data_size() - kUnused, kRefused);
  }
  // RC11 has no control dependency: see the top of this file.
  void control_dependency(const __u64&, Where where = Where::here()) {
    if (!ModelRing::here->atomic_words()) fence(std::memory_order_acquire, where);
    model::control_dependency(position_read, where);
  }
  void copy(std::byte* to, const void* from, std::size_t size, Where where = Where::here()) {
    const auto* bytes = static_cast<const std::byte*>(from);
    for (std::size_t i = 0; i < size; i += ModelRing::kWordBytes) {
      std::uint32_t word = 0;
      std::memcpy(&word, bytes + i, sizeof(word));
      ModelRing::here->write_word(to + i, word, where);
    }
  }
  void smp_wmb(const __u64&, Where where = Where::here()) { fence_store_store(where); }
  void write_once(__u64& field, __u64 value, Where where = Where::here()) {
    ModelRing::here->position(&field).store(value, std::memory_order_relaxed, where);
  }
  void irq_work_queue(kernel::perf_event&) {}
};

}  // namespace perfring::model

#endif  // HARNESS_MODEL_RING_MODEL_MEMORY_H_
