#ifndef HARNESS_RECORD_KNOWN_H_
#define HARNESS_RECORD_KNOWN_H_

// Compares the values known of a record from elsewhere with those decoded.

#include <string>
#include <vector>

#include "harness/program/json.h"
#include "harness/record/vectors.h"

namespace perfring::record {

// Whether the values are equal, "0x10" and 16 too. Of objects, `got` may have more fields.
bool agrees(const Json& known, const Json& got);

struct Difference {
  std::string field;
  std::string known;
  std::string decoded;
};

struct Comparison {
  std::size_t compared = 0;
  std::size_t of_known = 0;  // of these, fields of `known`
  std::vector<Difference> differences;
  // Fields of `known` that the record does not have: an event's id, where sample_type has no ID.
  std::vector<std::string> absent;
};

// Compares `known`, and what the vector's line says of the header, with the record as JSON
// (vectors.h). A field of `known` is found, in this order:
// - by the record's own name, or that of sample_id: `pid`, `sid_pid`; of the header: `misc`;
// - inside of a field: `hw_idx`, `regs_user_abi`, `aux_size`;
// - in the nth element of an array: `ids0`, `value1`, `lbr0_from`;
// - as what misc says: `user_mode`, `cpumode`, `exec`, `exact_ip`, `misc_build_id_bit`;
// - as a bound: `time_min_monotonic`, "at least 1, below 9", and `value1` of a sample's group,
// which
//   read(2) gave later;
// - in raw data: `raw_common_pid`, `raw_prev_pid_at_24`, `data_loc_filename`, `function`;
// - as a register of x86: `ax`, `first_argument_rdi`.
// `note` is for people.
Comparison compare(const Vector& vector, const Json& record);

}  // namespace perfring::record

#endif  // HARNESS_RECORD_KNOWN_H_
