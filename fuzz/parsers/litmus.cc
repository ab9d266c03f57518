// Litmus tests: what is accepted has every program, thread and number that the JSON has.

#include "harness/model/litmus/litmus.h"

#include <nlohmann/json.hpp>
#include <sstream>

#include "fuzz/parsers/parser.h"

namespace perfring::fuzz {
namespace {

// A number is what the text says, as far as 64 bits go, and no other that it was converted to.
bool is(const nlohmann::json& entry, const char* field, auto value) {
  if (!entry.contains(field)) return true;
  const auto& said = entry.at(field);
  return said.is_number_integer() && said.get<std::uint64_t>() == static_cast<std::uint64_t>(value);
}

void check(const model::Litmus& litmus, const nlohmann::json& said) {
  const std::size_t threads = litmus.program.threads.size();
  expect(threads >= 1 && threads <= model::Program::kThreadsMax, "too many threads");
  expect(litmus.text.threads.size() == threads, "operations of no thread");
  expect(!litmus.race || litmus.expected.empty(), "outcomes where there is a race");
  expect(is(said, "unset_register", litmus.text.unset_register), "an unset register's value");
  const auto rc11 = litmus.expected.find(model::MemoryModel::Rc11);
  if (rc11 != litmus.expected.end() && rc11->second.executions && said.contains("allowed")) {
    expect(is(said, "genmc_executions", *rc11->second.executions), "executions");
  }
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
