// Litmus tests: what is accepted has every program, thread and number that the JSON has.

#include "harness/model/litmus/litmus.h"

#include <array>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "fuzz/parsers/parser.h"

namespace perfring::fuzz {
namespace {

// A number is what the text says, as far as 64 bits go, and no other that it was converted to.
bool is(const nlohmann::json& entry, const char* field, auto value) {
  if (!entry.contains(field)) return true;
  const auto& said = entry.at(field);
  return said.is_number_integer() && said.get<std::uint64_t>() == static_cast<std::uint64_t>(value);
}

bool given(const nlohmann::json& entry, const std::string& field) {
  return entry.contains(field) && !entry.at(field).is_null();
}

// The second field of a model counts where the first is missing or null.
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

// Nothing that is expected is lost, and nothing is added.
void check_expected(const model::Litmus& litmus, const nlohmann::json& said) {
  if (litmus.race) return;
  for (const Fields& fields : kOfModels) {
    const auto found = litmus.expected.find(fields.model);
    bool any = false, null = false;
    for (std::size_t i = 0; i < 2 && fields.allowed[i] != nullptr && !any; ++i) {
      any = given(said, fields.allowed[i]) || given(said, fields.executions[i]);
      null = null || said.contains(fields.allowed[i]);
      if (!any) continue;
      expect(found != litmus.expected.end(), "an expectation is lost");
      expect(found->second.allowed.has_value() == given(said, fields.allowed[i]), "outcomes");
      expect(found->second.executions.has_value() == given(said, fields.executions[i]),
             "whether executions are counted");
      if (found->second.executions) {
        expect(is(said, fields.executions[i], *found->second.executions), "executions");
      }
    }
    expect(any == (found != litmus.expected.end()), "an expectation that nobody has");
    expect(litmus.not_expressible.contains(fields.model) == (null && !any), "null");
  }
}

void check(const model::Litmus& litmus, const nlohmann::json& said) {
  const std::size_t threads = litmus.program.threads.size();
  expect(threads >= 1 && threads <= model::Program::kThreadsMax, "too many threads");
  expect(litmus.text.threads.size() == threads, "operations of no thread");
  expect(!litmus.race || litmus.expected.empty(), "outcomes where there is a race");
  expect(is(said, "unset_register", litmus.text.unset_register), "an unset register's value");
  check_expected(litmus, said);
  for (const model::Location& location : litmus.program.locations) {
    expect(is(said, "initial", location.initial), "a location's initial value");
  }
}

void read(std::string_view text) {
  std::istringstream file{std::string{text}};
  std::vector<model::Litmus> all;
  try {
    all = model::read_litmus(file);
  } catch (const model::UsageError& error) {
    expect(*error.what() != '\0', "refused without a reason");
    return;
  }
  const auto parsed = nlohmann::json::parse(text);
  const auto& said = parsed.is_object() ? parsed.at("programs") : parsed;
  expect(all.size() == said.size(), "a program is lost");
  for (std::size_t i = 0; i < all.size(); ++i) check(all[i], said[i]);
}

}  // namespace
}  // namespace perfring::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  perfring::fuzz::read(perfring::fuzz::Input{data, size}.text());
  return 0;
}
