#ifndef HARNESS_SIMULATOR_JUDGE_H_
#define HARNESS_SIMULATOR_JUDGE_H_

#include <linux/perf_event.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "harness/oracle/checker.h"
#include "harness/oracle/invariant.h"
#include "harness/oracle/ledger.h"
#include "perfring/perf_event.h"

namespace perfring::simulator {

// Decides whether one ring's consumer, and its kernel, keep the invariants.
class Judge {
 public:
  virtual ~Judge() = default;

  virtual void drain_begins() = 0;
  // From the drain's callback, before and after it looks at the event.
  virtual void delivered(const PerfEvent& event) = 0;
  virtual void finished_with(const PerfEvent& event) = 0;
  // `head`: data_head as this drain has read it first, if it has.
  virtual void drain_ends(std::optional<std::uint32_t> head) = 0;
  virtual void reads(const std::byte* address, std::size_t size) = 0;
  // The writer is done, and the consumer has found the ring empty.
  virtual void settle() = 0;

  virtual const oracle::Received& received() const = 0;
  // Up to where the consumer has released the ring, as far as it was entitled to.
  virtual std::uint64_t released() const = 0;
  // Whether the bytes of the event just delivered are determined: the same on every machine.
  virtual bool knows_the_bytes() const = 0;

  // Reports a violation that another part noticed. The first one stays.
  void violate(oracle::Invariant invariant, std::string message);
  const std::optional<oracle::Violation>& violation() const {
    return reported_ ? reported_ : noticed();
  }

 private:
  virtual const std::optional<oracle::Violation>& noticed() const = 0;

  std::optional<oracle::Violation> reported_;
};

// Judges a ring that a kernel writes, by the ledger.
std::unique_ptr<Judge> judge_by_ledger(const perf_event_mmap_page& page, Bytes data,
                                       oracle::Ledger& ledger);
// Judges a ring that an adversary writes, by the rules of any drain.
std::unique_ptr<Judge> judge_of_hostile_ring(const perf_event_mmap_page& page, Bytes data);

}  // namespace perfring::simulator

#endif  // HARNESS_SIMULATOR_JUDGE_H_
