#ifndef HARNESS_ORACLE_PAYLOAD_H_
#define HARNESS_ORACLE_PAYLOAD_H_

// Payloads: bytes that are a pure function of stream, sequence number and length. So they need not
// be kept, and a consumer in another thread can check them without anything else.
//
// Payloads are made of words of 8 bytes, each a u16, a u16 and a u32 in the machine's own order. As
// a payload starts 4 bytes before a multiple of 8, a consumer that takes its bytes for records (K9)
// reads the same headers and sizes on every machine, if the length is a multiple of 4: the padding
// after it holds older bytes.

#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "perfring/perf_event.h"

namespace perfring::oracle {

struct Payload {
  std::uint64_t sequence = 0;  // within its stream
  std::uint32_t stream = 0;    // who wrote it
  std::uint32_t length = 0;    // bytes

  friend bool operator==(const Payload&, const Payload&) = default;
};

// From this length on, the bytes identify their payload.
inline constexpr std::size_t kSelfDescribing = 16;

// "stream 3 sequence 12 of 40 bytes"
std::string name(const Payload& payload);

// Writes the payload, as a machine of this order does. Precondition: to.size() == payload.length.
void fill(std::span<std::byte> to, const Payload& payload, std::endian order = std::endian::native);

// Whether the sample holds this payload, and 0 to 7 bytes of padding after it that make its record
// a multiple of 8 bytes long.
bool holds(const Sample& sample, const Payload& payload);

// The payload that a sample's first bytes name, or nullopt if it is too short to name one. The rest
// may differ: see holds().
std::optional<Payload> claimed(const Sample& sample);

// Bytes of raw data in the sample of a payload of this length, padding included.
constexpr std::uint64_t raw_size(std::uint64_t length) {
  const std::uint64_t with_size_field = length + 4;
  return (with_size_field % 8 == 0 ? with_size_field : with_size_field + 8 - with_size_field % 8) -
         4;
}

// Bytes that such a record really takes of the ring: header, u32, raw.
constexpr std::uint64_t record_size(std::uint64_t length) {
  return 8 + 4 + raw_size(length);
}

}  // namespace perfring::oracle

#endif  // HARNESS_ORACLE_PAYLOAD_H_
