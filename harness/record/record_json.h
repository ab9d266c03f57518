#ifndef HARNESS_RECORD_RECORD_JSON_H_
#define HARNESS_RECORD_RECORD_JSON_H_

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "harness/record/vectors.h"
#include "perfring/record/decode.h"

namespace perfring::record {

// A record as JSON: `record` (the type's name, or "unknown"), `header`, then its fields, by the
// uapi's names and in its order (perfring/record/fields.h). Addresses, masks and flags are strings
// of hexadecimal digits with 0x, bytes are such strings without. Text that is not UTF-8 has \xNN in
// place of what is not.
nlohmann::ordered_json to_json(const Any& record);
// The values that read(2) returned.
nlohmann::ordered_json to_json(const ReadValues& values);

// A vector's bytes, as the one or the other, behind its `name`. What read(2) gave too little of has
// the field `malformed`.
nlohmann::ordered_json decoded(const Vector& vector);

// In one line, in ASCII.
std::string line_of(const nlohmann::ordered_json& json);

}  // namespace perfring::record

#endif  // HARNESS_RECORD_RECORD_JSON_H_
