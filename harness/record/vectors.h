#ifndef HARNESS_RECORD_VECTORS_H_
#define HARNESS_RECORD_VECTORS_H_

// Vectors: genuine records, a line of JSON each, with the attributes of the event that they are of
// and what was known of them from elsewhere (`known`). vectors.jsonl has some, and shows the form.
// And decoded records as JSON.

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

namespace perfring::record {

struct Vector {
  std::string name;
  std::string arch;  // "x86-64 little endian"
  // The event's attributes that decoding rests on: sample_type, read_format,
  // sample_id_all, build_id, branch_sample_type, sample_regs_user and sample_regs_intr.
  perf_event_attr attr{};
  // A record. Or, in a vector without attributes, what read(2) gave of an event with this
  // read_format.
  std::vector<std::byte> bytes;
  bool is_read = false;
  Json known = Json::object();
  // The line's own `record`, `type`, `misc` and `size`, as far as it has them.
  Json said = Json::object();
};

// One line. An error says which field is wrong, and what is accepted.
std::expected<Vector, std::string> parse_vector(std::string_view line);

// Every line but empty ones, and the error of each that is not a vector: "line 3: it is not JSON".
// Vectors of another byte order than this machine's are refused.
struct VectorsRead {
  std::vector<Vector> vectors;
  std::vector<std::string> refused;
};
VectorsRead read_vectors(std::string_view text);
// The vectors of a text that has no other lines; the error names the first other line.
std::expected<std::vector<Vector>, std::string> parse_vectors(std::string_view text);

// The number that a JSON value stands for: 17, -1 (as the u64 of the same bits) or "0x11". nullopt
// for everything else.
inline std::optional<std::uint64_t> number_of(const Json& value) {
  if (value.is_boolean()) return value.get<bool>() ? 1 : 0;
  if (value.is_number_unsigned()) return value.get<std::uint64_t>();
  if (value.is_number_integer()) return static_cast<std::uint64_t>(value.get<std::int64_t>());
  if (!value.is_string()) return std::nullopt;
  const auto& text = value.get_ref<const std::string&>();
  if (!text.starts_with("0x") && !text.starts_with("0X")) return std::nullopt;
  return parse_number(std::string_view{text}.substr(2), 16);
}

// A record as JSON: `record` (the type's name, or "unknown"), `header`, then its fields, by the
// uapi's names and in its order (perfring/record/fields.h). Addresses, masks and flags are strings
// of hexadecimal digits with 0x, bytes are such strings without. Text that is not UTF-8 has \xNN
// for each such byte.
Json to_json(const Any& record);
// The values that read(2) returned.
Json to_json(const ReadValues& values);

// A vector's bytes, as the one or the other, behind its `name`; with the field `malformed` if
// read(2) gave too few.
Json decoded(const Vector& vector);

// In one line, in ASCII.
std::string line_of(const Json& json);

}  // namespace perfring::record

#endif  // HARNESS_RECORD_VECTORS_H_
