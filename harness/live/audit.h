#ifndef HARNESS_LIVE_AUDIT_H_
#define HARNESS_LIVE_AUDIT_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "harness/live/generator.h"
#include "perfring/perf_event.h"

namespace perfring::live {

// Events of one CPU's ring, compared with those that the generator writes there.
struct AuditCounts {
  std::uint64_t delivered = 0;     // samples
  std::uint64_t lost = 0;          // sum of the LOST records' counts
  std::uint64_t malformed = 0;     // the ring's contract broken
  std::uint64_t out_of_order = 0;  // not the next sequence number, the lost ones counted
  std::uint64_t corrupt = 0;       // another CPU, checksum, size or body than was written
  std::uint64_t bytes = 0;         // of ring that the events took, headers included
};

// Checks each event of one CPU's ring, in the order of their delivery.
class Audit {
 public:
  Audit(std::uint32_t cpu, PayloadRange payload);

  void check(const PerfEvent& event);
  const AuditCounts& counts() const { return counts_; }

 private:
  void check_sample(const Sample& sample);
  bool is_intact(const Sample& sample, const generator_record& record) const;
  bool body_matches(const Sample& sample, std::size_t length, const unsigned char* body) const;

  std::uint32_t cpu_;
  PayloadRange payload_;
  std::vector<unsigned char> pattern_;
  std::uint64_t sequence_ = 0;  // that the next sample should have
  AuditCounts counts_;
};

}  // namespace perfring::live

#endif  // HARNESS_LIVE_AUDIT_H_
