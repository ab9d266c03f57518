// `perfring inspect`.

#include <fmt/format.h>
#include <unistd.h>

#include <cstddef>
#include <expected>
#include <span>
#include <string>

#include "harness/cli/inspect/inspect.h"
#include "harness/conformance/inspection.h"
#include "harness/program/console.h"
#include "harness/program/json.h"
#include "harness/program/output_file.h"
#include "harness/program/verdict.h"
#include "harness/script/script.h"

namespace perfring::cli {
namespace {

std::expected<conformance::InspectedRing, std::string> ring_of(const InspectOptions& options,
                                                               const std::string& file) {
  if (!options.id.empty()) {
    return conformance::ring_of_vector(file, options.id, static_cast<std::size_t>(options.turn));
  }
  const auto bytes = std::as_bytes(std::span{file});
  return options.fuzz ? conformance::ring_of_fuzz_input(bytes) : conformance::ring_of_image(bytes);
}

}  // namespace

int run_command(const InspectOptions& options) {
  const auto file = read_input("FILE", options.file, kRecordsMax, Content::Binary);
  if (!file) return fail(file.error());
  auto ring = ring_of(options, *file);
  const std::string name = options.file == "-" ? "stdin" : in_quotes(options.file);
  if (!ring) return fail(fmt::format("FILE: {}: {}", name, ring.error()));
  if (!options.sample_type.empty()) {
    script::Settings settings;
    const auto parsed = script::parse_setting("sample_type " + options.sample_type, settings);
    if (!parsed) return fail("--sample-type: " + parsed.error());
    ring->sample_type = settings.sample_type;
    ring->has_sample_type = true;
  }
  const conformance::Inspection inspection = conformance::inspect(*ring);
  if (!options.svg.empty()) {
    const auto written = write_output("--svg", options.svg, conformance::to_svg(inspection));
    if (!written) return fail(written.error());
    if (options.svg == "-") return kHolds;
  }
  if (options.json) return deliver(dump(conformance::to_json(inspection)), kHolds, "the records");
  const bool colours = ::isatty(STDOUT_FILENO) == 1;
  return deliver(conformance::to_text(inspection, colours), kHolds, "the records");
}

}  // namespace perfring::cli
