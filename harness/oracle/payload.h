#ifndef HARNESS_ORACLE_PAYLOAD_H_
#define HARNESS_ORACLE_PAYLOAD_H_

// Payloads: bytes that are a pure function of stream, sequence number and length. The oracle need
// not keep them, and a consumer in another thread can check a payload without any other data.
//
// A payload is a sequence of 8-byte words, each a u16, a u16 and a u32 in native byte order. A
// payload starts 4 bytes before a multiple of 8. A consumer that mistakes payload bytes for records
// (K9) therefore reads the same headers and sizes on every machine, provided that the length is a
// multiple of 4 (the padding after the payload holds older bytes).

#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "perfring/perf_event.h"

namespace perfring::oracle {

struct Payload {
  std::uint64_t sequence = 0;  // number within the stream
  std::uint32_t stream = 0;    // the writer's stream
  std::uint32_t length = 0;    // in bytes

  friend bool operator==(const Payload&, const Payload&) = default;
};

// A payload of at least this length contains its stream, sequence number and length.
inline constexpr std::size_t kSelfDescribing = 16;

// Returns "stream 3 sequence 12 of 40 bytes".
std::string name(const Payload& payload);

// Writes the payload in the given byte order. Precondition: to.size() == payload.length.
void fill(std::span<std::byte> to, const Payload& payload, std::endian order = std::endian::native);

// Returns true if the sample is this payload followed by the 0 to 7 bytes of padding that make the
// record's size a multiple of 8.
bool holds(const Sample& sample, const Payload& payload);

// Returns the payload that the sample's first bytes name, or nullopt if the sample is too short to
// name one. The rest of the sample may differ from that payload: see holds().
std::optional<Payload> claimed_payload(const Sample& sample);

// Returns the size of a sample's raw data for a payload of this length, padding included.
constexpr std::uint64_t raw_size(std::uint64_t length) {
  const std::uint64_t with_size_field = length + 4;
  return (with_size_field % 8 == 0 ? with_size_field : with_size_field + 8 - with_size_field % 8) -
         4;
}

// Returns the size of the record in the ring: header, u32, raw data.
constexpr std::uint64_t record_size(std::uint64_t length) {
  return 8 + 4 + raw_size(length);
}

}  // namespace perfring::oracle

#endif  // HARNESS_ORACLE_PAYLOAD_H_
