// Fuzz targets for the parsers of files: each function outside the anonymous namespaces is a
// target.

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "fuzz/input.h"
#include "harness/differential/trace.h"
#include "harness/model/engine/program.h"
#include "harness/model/engine/usage_error.h"
#include "harness/model/litmus/litmus.h"
#include "harness/model/litmus/memory_model.h"
#include "harness/program/json.h"
#include "harness/record/known_fields.h"
#include "harness/record/perf_data.h"
#include "harness/record/vectors.h"
#include "harness/script/script.h"
#include "harness/simulator/settings.h"
#include "perfring/event/event.h"
#include "perfring/event/tracepoint_fields.h"
#include "perfring/perf_event.h"
#include "perfring/record/decode.h"
#include "perfring/record/to_string.h"

namespace perfring::fuzz {

// Scripts as text: an accepted script can be run, and its printed text parses to the same script.
void script_text(std::string_view text) {
  const auto parsed = script::parse_script(text);
  if (!accepted(parsed)) return;
  expect(!why_impossible(*parsed), "an accepted script cannot be run");
  expect(script::parse_script(to_text(*parsed)) == *parsed, "a script does not round-trip");
}

// Scenarios of the simulator: an accepted scenario is within the limits, and its printed text
// parses to the same scenario.
void settings(std::string_view text) {
  const auto parsed = simulator::parse_settings(text, "text");
  if (!accepted(parsed)) return;
  for (const simulator::SettingName& name : simulator::setting_names()) {
    const auto value = name.get(*parsed);
    expect(!value || (*value >= name.min && *value <= name.max), "a setting outside its limits");
  }
  // Turn "a=1 b=2" into lines.
  std::string again = simulator::difference(*parsed, {});
  for (char& c : again) c = c == ' ' ? '\n' : c == '=' ? ' ' : c;
  expect(simulator::parse_settings(again, "again") == *parsed, "settings do not round-trip");
  static_cast<void>(simulator::impossible(*parsed));
}

// Traces of a real kernel: an accepted trace could be a real kernel's, its printed text parses to
// the same trace, and it can be replayed.
void trace(std::string_view text) {
  const auto parsed = differential::parse_traces(text);
  if (!accepted(parsed)) return;
  std::string printed;
  for (const differential::KernelTrace& trace : *parsed) {
    expect(trace.steps.size() == trace.script.steps.size(), "a step without an observation");
    expect(!why_impossible(trace.script) && !has_nested_steps(trace.script),
           "a trace that no real kernel can produce");
    differential::RecordedReference recorded{trace};
    for (const script::Step& step : trace.script.steps) recorded.run(step);
    printed += to_text(trace);
  }
  const auto again = differential::parse_traces(printed);
  expect(again.has_value(), "a printed trace is refused");
  std::string printed_again;
  for (const differential::KernelTrace& trace : *again) printed_again += to_text(trace);
  expect(printed_again == printed, "a trace does not round-trip");
}

// Files of genuine records with their known fields: an accepted file, whatever its content, can be
// decoded, printed and compared.
void vectors(std::string_view text) {
  const auto vectors = record::parse_vectors(text);
  if (!accepted(vectors)) return;
  for (const record::Vector& vector : *vectors) {
    expect(!vector.name.empty(), "a record without a name");
    const auto json = record::decoded(vector);
    const std::string line = record::line_of(json);
    expect(line.find('\n') == line.size() - 1, "a record of several lines");
    expect(Json::parse(line, nullptr, false) == json, "JSON that does not round-trip");
    const record::Comparison comparison = compare(vector, json);
    expect(comparison.differences.size() <= comparison.compared,
           "more differences than comparisons");
  }
}

// perf.data files: each record that for_each() passes on is in the file, after the previous one.
void perf_data(std::string_view text) {
  auto file = record::PerfData::over(text);
  if (!accepted(file)) return;
  std::uint64_t end = 0;
  file->for_each([&](const record::PerfData::Record& each) {
    expect(each.at >= end && each.at <= text.size(), "a record before its predecessor");
    end = each.at + each.bytes.size();
    expect(each.bytes.size() >= 8 && end <= text.size(), "a record outside the file");
    expect(std::equal(each.bytes.begin(), each.bytes.end(),
                      reinterpret_cast<const std::byte*>(text.data()) + each.at),
           "bytes that are not the file's");
    const record::Any decoded = file->decoded(each);
    expect(file->event_of(decoded) <= file->events().size(), "an event that is not in the file");
    expect(!record::to_string(decoded).empty(), "a record without text");
    return true;
  });
}

// Programs in which uprobes look up symbols: the lookup reads no byte outside the file, whatever
// the file's offsets say.
void elf(std::string_view text) {
  static const int file = ::memfd_create("elf", MFD_CLOEXEC);
  static const std::string path = "/proc/self/fd/" + std::to_string(file);
  expect(::ftruncate(file, 0) == 0 &&
             ::pwrite(file, text.data(), text.size(), 0) == static_cast<ssize_t>(text.size()),
         "no memory for a file");
  const auto offset = event::internal::file_offset_of(path.c_str(), "symbol");
  event::internal::may_be_code(text, accepted(offset) ? *offset : 0);
}

// The kernel's format files: an accepted field is found by its name, and is read from within the
// record's bytes or not at all.
void tracepoint_format(std::string_view text) {
  const auto parsed = event::TracepointFormat::parse(text);
  if (!accepted(parsed)) return;
  const auto* const bytes = reinterpret_cast<const std::byte*>(text.data());
  for (const event::FieldFormat& each : parsed->fields()) {
    const auto number = parsed->field<std::uint32_t>(each.name);
    const auto words = parsed->text(each.name);
    if (!number && !words) continue;
    for (const std::size_t size : {std::size_t{0}, text.size() / 2, text.size()}) {
      const Bytes raw{bytes, size};
      if (number) expect(!number->of(raw) || size >= 4, "a number outside the record");
      if (!words) continue;
      const auto field = words->of(raw);
      expect(
          !field || field->empty() ||
              (field->data() >= text.data() && field->data() + field->size() <= text.data() + size),
          "text outside the record");
    }
  }
}

namespace {

// Whether the parsed value equals the number in the text, modulo 2^64, or the text has no such
// field.
bool is(const Json& entry, const char* field, auto value) {
  if (!entry.contains(field)) return true;
  const auto& stated = entry.at(field);
  return stated.is_number_integer() &&
         stated.get<std::uint64_t>() == static_cast<std::uint64_t>(value);
}

bool given(const Json& entry, const std::string& field) {
  return entry.contains(field) && !entry.at(field).is_null();
}

// A model's second field counts if the first is missing or null.
struct Fields {
  model::MemoryModel model;
  std::array<const char*, 2> allowed, executions;
};
const std::array<Fields, 4> kOfModels = {
    {{model::MemoryModel::Rc11,
      {"allowed", "allowed_rc11"},
      {"genmc_executions", "executions_rc11"}},
     {model::MemoryModel::AArch64, {"allowed_aarch64"}, {"executions_aarch64"}},
     {model::MemoryModel::RiscV, {"allowed_riscv"}, {"executions_riscv"}},
     {model::MemoryModel::Lkmm,
      {"allowed_lkmm", "allowed_lkmm_rmb"},
      {"executions_lkmm", "executions_lkmm_rmb"}}}};

// Checks that the parser neither loses nor adds an expectation.
void check_expected(const model::Litmus& litmus, const Json& stated) {
  if (litmus.race) return;
  for (const Fields& fields : kOfModels) {
    const auto found = litmus.expected.find(fields.model);
    bool any = false, null = false;
    for (std::size_t i = 0; i < 2 && fields.allowed[i] != nullptr && !any; ++i) {
      any = given(stated, fields.allowed[i]) || given(stated, fields.executions[i]);
      null = null || stated.contains(fields.allowed[i]);
      if (!any) continue;
      expect(found != litmus.expected.end(), "an expectation is lost");
      expect(found->second.allowed.has_value() == given(stated, fields.allowed[i]), "outcomes");
      expect(found->second.executions.has_value() == given(stated, fields.executions[i]),
             "whether executions are counted");
      if (found->second.executions) {
        expect(is(stated, fields.executions[i], *found->second.executions), "executions");
      }
    }
    expect(any == (found != litmus.expected.end()), "an expectation that the file does not state");
    expect(litmus.not_expressible.contains(fields.model) == (null && !any), "null");
  }
}

void check(const model::Litmus& litmus, const Json& stated) {
  const std::size_t threads = litmus.program.threads.size();
  expect(threads >= 1 && threads <= model::Program::kThreadsMax, "too many threads");
  expect(litmus.text.threads.size() == threads, "operations without a thread");
  expect(!litmus.race || litmus.expected.empty(), "outcomes of a program with a race");
  expect(is(stated, "unset_register", litmus.text.unset_register), "an unset register's value");
  check_expected(litmus, stated);
  for (const model::Location& location : litmus.program.locations) {
    expect(is(stated, "initial", location.initial), "a location's initial value");
  }
}

}  // namespace

// Litmus tests: an accepted file keeps every program, thread and number of the JSON.
void litmus(std::string_view text) {
  std::istringstream file{std::string{text}};
  std::vector<model::Litmus> all;
  try {
    all = model::read_litmus(file);
  } catch (const model::UsageError& error) {
    expect(*error.what() != '\0', "refused without a reason");
    return;
  }
  const auto parsed = Json::parse(text);
  const auto& stated = parsed.is_object() ? parsed.at("programs") : parsed;
  expect(all.size() == stated.size(), "a program is lost");
  for (std::size_t i = 0; i < all.size(); ++i) check(all[i], stated[i]);
}

}  // namespace perfring::fuzz
