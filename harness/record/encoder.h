#ifndef HARNESS_RECORD_ENCODER_H_
#define HARNESS_RECORD_ENCODER_H_

// The kernel's side of records: each output function of kernel/events/core.c (at v6.18) again, in
// its order of statements and by its name. Nothing here is of lib. Together with the bytes it says
// what they are, by the uapi's names, as vectors.h does.

#include <linux/perf_event.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <vector>

namespace perfring::record {

// The variable parts of a record. Each record takes those that it has use for.
struct Shape {
  std::uint32_t type = PERF_RECORD_SAMPLE;
  std::uint16_t misc = 0;
  std::size_t siblings = 0;   // of a group, besides the leader
  std::size_t callchain = 0;  // its entries
  std::size_t raw = 0;        // bytes that the tracepoint or program wrote
  bool has_branches = false;  // the CPU had a branch stack
  std::size_t branches = 0;
  std::uint64_t abi_user = 0;
  std::uint64_t abi_intr = 0;
  std::size_t stack = 0;  // a multiple of 8
  std::size_t aux = 0;    // a multiple of 8
  std::size_t text = 0;   // characters of a name
  std::size_t namespaces = 0;
  std::size_t old_len = 0;
  std::size_t new_len = 0;
  bool has_build_id = false;  // the mapped file has one, of 1 to 20 bytes
  std::size_t build_id = 20;
  std::size_t future = 0;  // bytes that a later kernel adds before sample_id
};

struct Encoded {
  std::vector<std::byte> bytes;
  nlohmann::ordered_json fields;
};

// The record that an event with these attributes writes; fields that are mere values are drawn from
// `value`.
Encoded encode(const perf_event_attr& attr, const Shape& shape,
               const std::function<std::uint64_t()>& value);

}  // namespace perfring::record

#endif  // HARNESS_RECORD_ENCODER_H_
