#ifndef HARNESS_RECORD_VECTORS_H_
#define HARNESS_RECORD_VECTORS_H_

// Vectors: genuine records, a line of JSON each, with the attributes of the event that they are of
// and what was known of them from elsewhere (`known`). vectors.jsonl has some, and shows the form.

#include <linux/perf_event.h>

#include <cstddef>
#include <cstdint>
#include <expected>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

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
  nlohmann::ordered_json known = nlohmann::ordered_json::object();
  // The line's own `record`, `type`, `misc` and `size`, as far as it has them.
  nlohmann::ordered_json said = nlohmann::ordered_json::object();
};

// One line. An error says which field is wrong, and what is accepted.
std::expected<Vector, std::string> parse_vector(std::string_view line);

// Every line but empty ones. An error names the line too. Vectors of another byte order than this
// machine's are refused.
std::expected<std::vector<Vector>, std::string> parse_vectors(std::string_view text);

}  // namespace perfring::record

#endif  // HARNESS_RECORD_VECTORS_H_
