#ifndef HARNESS_CONFORMANCE_SUPERVISOR_RING_ACCESSES_H_
#define HARNESS_CONFORMANCE_SUPERVISOR_RING_ACCESSES_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "harness/conformance/cases/case_producer.h"
#include "harness/conformance/cases/judge.h"

namespace perfring::conformance {

// What a program did with a ring's data_head and data_tail, access by access. Only for plain cases
// (Case::is_plain()): in others, the ledger has no answer.
class RingAccesses {
 public:
  // The program has read data_head.
  void read_head(std::uint64_t head) { heads_.push_back(head); }
  // The program has stored to data_head, which only the kernel does.
  void store_head(std::uint64_t from, std::uint64_t to, Cell& cell);
  // The program has moved data_tail: not beyond data_head, backwards, or into a record.
  void store_tail(const CaseProducer& producer, std::size_t cpu, const Tails& tails, Cell& cell);
  // Returns the first access that was wrong by itself, or else the one that shows why the first
  // event was not delivered intact: "data_tail was moved to 4128 while the record at 4096 was still
  // being read". Returns "" if none does. `died`: the program crashed while it read.
  std::string explain(const CaseProducer& producer, std::size_t cpu,
                      std::span<const Event> delivered, bool died) const;

 private:
  struct Store {
    std::uint64_t from = 0;
    std::uint64_t to = 0;
    std::vector<std::uint64_t> heads;  // read since the store before it
  };
  void note(CaseOutcome outcome, const std::string& what, Cell& cell);

  std::string wrong_;  // the first wrong access
  std::vector<std::uint64_t> heads_;
  std::vector<Store> stores_;
};

// Whether the event was read from bytes that had been released: it has them, or is an error.
bool is_of_released_bytes(const Event& event);

// Describes a store to data_head, which only the kernel makes.
std::string stored_to_head(std::uint64_t from, std::uint64_t to);

// Overwrites the released bytes, as the kernel may at once: with bytes that no producer writes.
// Does nothing if data_tail went backwards, or beyond data_head.
void overwrite_released(std::span<std::byte> data, const Tails& tails);

}  // namespace perfring::conformance

#endif  // HARNESS_CONFORMANCE_SUPERVISOR_RING_ACCESSES_H_
