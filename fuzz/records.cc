#include <string_view>

#include "fuzz/any_record.h"

namespace perfring::fuzz {

// A fuzz target: no view of the record leaves its bytes, and what is malformed says where.
void record(std::string_view input) {
  AnyRecord<>{Input{input}}.run();
}

}  // namespace perfring::fuzz
