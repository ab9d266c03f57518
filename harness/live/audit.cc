#include "harness/live/audit.h"

#include <algorithm>
#include <cstring>
#include <variant>

namespace perfring::live {
namespace {

constexpr std::size_t kSampleOverhead = 12;  // header and raw size
constexpr std::size_t kLostSize = 24;

// The raw size of a sample with `payload` bytes: what the kernel makes of it, padding included.
std::size_t raw_size(std::size_t payload) {
  return (payload + 4 + 7) / 8 * 8 - 4;
}

}  // namespace

Audit::Audit(std::uint32_t cpu, PayloadRange payload)
    : cpu_{cpu}, payload_{payload}, pattern_{generator_pattern()} {}

void Audit::check(const PerfEvent& event) {
  if (const auto* sample = std::get_if<Sample>(&event)) {
    check_sample(*sample);
  } else if (const auto* lost = std::get_if<Lost>(&event)) {
    counts_.lost += lost->count;
    counts_.bytes += kLostSize;
    sequence_ += lost->count;
  } else {
    const auto& malformed = std::get<Malformed>(event);
    counts_.malformed += 1;
    counts_.bytes += malformed.size();
  }
}

void Audit::check_sample(const Sample& sample) {
  counts_.delivered += 1;
  counts_.bytes += kSampleOverhead + sample.size();
  const auto record = sample.as<generator_record>();
  if (!record) {
    counts_.corrupt += 1;
    return;
  }
  const auto ahead = static_cast<std::int32_t>(record->sequence - static_cast<__u32>(sequence_));
  if (ahead != 0) {
    counts_.out_of_order += 1;
    sequence_ += static_cast<std::uint64_t>(std::int64_t{ahead});
  }
  if (!is_intact(sample, *record)) counts_.corrupt += 1;
  sequence_ += 1;
}

bool Audit::is_intact(const Sample& sample, const generator_record& record) const {
  const std::uint32_t payload = generator_payload_size(sequence_, cpu_, payload_.min, payload_.max);
  return record.cpu == static_cast<__u16>(cpu_) &&
         record.checksum == generator_checksum(sequence_, cpu_, payload) &&
         sample.size() == raw_size(payload) &&
         body_matches(sample, payload, pattern_.data() + generator_window(sequence_));
}

// Compares bytes 8 to `length` of the sample with those of `body`.
bool Audit::body_matches(const Sample& sample, std::size_t length,
                         const unsigned char* body) const {
  // `bytes` are those from offset `at` of the payload on.
  const auto matches = [&](Bytes bytes, std::size_t at) {
    const std::size_t from = std::max(at, sizeof(generator_record));
    const std::size_t to = std::min(at + bytes.size(), length);
    return from >= to || std::memcmp(bytes.data() + (from - at), body + from, to - from) == 0;
  };
  return matches(sample.head, 0) && matches(sample.tail, sample.head.size());
}

}  // namespace perfring::live
