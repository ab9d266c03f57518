#ifndef HARNESS_RECORD_KNOWN_FIELDS_H_
#define HARNESS_RECORD_KNOWN_FIELDS_H_

// Compares the decoded values of a record with the values that are known from another source.

#include <cstddef>
#include <string>
#include <vector>

#include "harness/program/json.h"
#include "harness/record/vectors.h"

namespace perfring::record {

// Whether the values are equal; "0x10" equals 16. An object `found` may have additional fields.
bool agrees(const Json& known, const Json& found);

struct Difference {
  std::string field;
  std::string known;
  std::string decoded;
};

struct Comparison {
  std::size_t compared = 0;
  std::size_t of_known = 0;  // how many of `compared` are fields of `known`
  std::vector<Difference> differences;
  // Fields of `known` that the record lacks, such as the event's id if sample_type has no ID.
  std::vector<std::string> absent;
};

// Compares `known`, and the header fields in the vector's line, with the record as JSON
// (vectors.h).
// The name of a field of `known` is tried in this order as
// - a bound: `time_min_monotonic`, "at least 1, below 9" as the value, and `value1` of a sample's
//   group, which read(2) returned after the sample; `function`, in a probe's raw data;
// - a field of the record, of sample_id, or of the header: `pid`, `sid_pid`, `misc`;
// - a member of a field: `hw_idx`, `regs_user_abi`, `aux_size`;
// - the nth element of an array: `ids0`, `value1`, `lbr0_from`;
// - a bit or mode in misc: `user_mode`, `cpumode`, `exec`, `exact_ip`, `misc_build_id_bit`;
// - a place in raw data: `raw_common_pid`, `raw_prev_pid_at_24`, `data_loc_filename`;
// - an x86 register: `ax`, `first_argument_rdi`.
// `note` is for people and is not compared.
Comparison compare(const Vector& vector, const Json& record);

}  // namespace perfring::record

#endif  // HARNESS_RECORD_KNOWN_FIELDS_H_
