#ifndef HARNESS_ORACLE_RECEIVED_H_
#define HARNESS_ORACLE_RECEIVED_H_

#include <cstdint>

namespace perfring::oracle {

// Totals of what a consumer took out of a ring.
struct Received {
  std::uint64_t delivered = 0;  // samples
  std::uint64_t lost = 0;       // sum of the LOSTs' counts
  std::uint64_t malformed = 0;
  std::uint64_t overwritten = 0;            // records whose bytes may have been overwritten (K10)
  std::uint64_t overwritten_lost = 0;       // losses reported by overwritten LOSTs
  std::uint64_t desynchronized_events = 0;  // delivered in place of overwritten records
  std::uint64_t bytes = 0;                  // bytes of the ring
};

}  // namespace perfring::oracle

#endif  // HARNESS_ORACLE_RECEIVED_H_
