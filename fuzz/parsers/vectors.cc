// Files of genuine records, with what is known of them: what is accepted can be decoded, printed
// and compared, whatever it says.

#include "harness/record/vectors.h"

#include "fuzz/parsers/parser.h"
#include "harness/record/known.h"
#include "harness/record/record_json.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace perfring;
  using fuzz::expect;
  const auto vectors = record::parse_vectors(fuzz::Input{data, size}.text());
  if (!fuzz::accepted(vectors)) return 0;
  for (const record::Vector& vector : *vectors) {
    expect(!vector.name.empty(), "a record without a name");
    const auto json = record::decoded(vector);
    const std::string line = record::line_of(json);
    expect(line.find('\n') == line.size() - 1, "a record of several lines");
    expect(nlohmann::ordered_json::parse(line, nullptr, false) == json,
           "JSON that is not read back");
    const record::Comparison comparison = compare(vector, json);
    expect(comparison.differences.size() <= comparison.compared, "more differs than is compared");
  }
  return 0;
}
