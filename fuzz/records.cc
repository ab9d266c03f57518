#include <string_view>

#include "fuzz/any_record.h"
#include "fuzz/input.h"

namespace perfring::fuzz {

// A fuzz target: no view of the record leaves the record's bytes, and a malformed record names the
// bad field.
void record(std::string_view input) {
  AnyRecord<>{Input{input}}.run();
}

}  // namespace perfring::fuzz
