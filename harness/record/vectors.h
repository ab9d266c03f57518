#ifndef HARNESS_RECORD_VECTORS_H_
#define HARNESS_RECORD_VECTORS_H_

// Vectors: records that real kernels wrote, one line of JSON each, with the attributes of the event
// and the values known from another source (`known`). vectors.jsonl is an example of the format.
// Also converts decoded records to JSON.

#include <linux/perf_event.h>

#include <cstddef>
#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/program/json.h"
#include "harness/program/numbers.h"
#include "perfring/record/decode.h"
#include "perfring/record/read_values.h"

namespace perfring::record {

struct Vector {
  std::string name;
  std::string arch;  // "x86-64 little endian"
  // The event's attributes that decoding depends on: sample_type, read_format, sample_id_all,
  // build_id, branch_sample_type, sample_regs_user and sample_regs_intr.
  perf_event_attr attr{};
  // A record; or, if is_read, the bytes that read(2) returned for an event with attr.read_format.
  std::vector<std::byte> bytes;
  bool is_read = false;
  Json known = Json::object();
  // The fields `record`, `type`, `misc` and `size` of the line, as far as they are present.
  Json stated = Json::object();
};

// Parses one line. An error names the wrong field and says what is accepted.
std::expected<Vector, std::string> parse_vector(std::string_view line);

// The vectors in a text, and an error for each line that is not a vector: "line 3: it is not JSON".
// Empty lines are skipped. Vectors in the other byte order than this machine's are refused.
struct VectorsRead {
  std::vector<Vector> vectors;
  std::vector<std::string> refused;
};
VectorsRead read_vectors(std::string_view text);
// As read_vectors(), but returns only the first error if there is one.
std::expected<std::vector<Vector>, std::string> parse_vectors(std::string_view text);

// Returns the number that a JSON value represents: 17, -1 (the u64 with the same bits), "0x11", or
// true as 1. Returns nullopt for every other value.
inline std::optional<std::uint64_t> number_of(const Json& value) {
  if (value.is_boolean()) return value.get<bool>() ? 1 : 0;
  if (value.is_number_unsigned()) return value.get<std::uint64_t>();
  if (value.is_number_integer()) return static_cast<std::uint64_t>(value.get<std::int64_t>());
  if (!value.is_string()) return std::nullopt;
  const auto& text = value.get_ref<const std::string&>();
  if (!text.starts_with("0x") && !text.starts_with("0X")) return std::nullopt;
  return parse_number(std::string_view{text}.substr(2), 16);
}

// Returns a record as JSON: `record` (the type's name, or "unknown"), `header`, then the fields
// with the uapi's names and in its order (perfring/record/fields.h). Addresses, masks and flags are
// strings of hexadecimal digits with 0x; byte sequences are such strings without 0x. In text that
// is not UTF-8, each offending byte becomes \xNN.
Json to_json(const Any& record);
// As above, for the values that read(2) returned.
Json to_json(const ReadValues& values);

// Returns a vector's `name`, followed by its record or its read(2) values as JSON. If read(2)
// returned too few bytes, the only other field is `malformed`.
Json decoded(const Vector& vector);

// Returns the JSON as one line of ASCII, with a newline.
std::string line_of(const Json& json);

}  // namespace perfring::record

#endif  // HARNESS_RECORD_VECTORS_H_
