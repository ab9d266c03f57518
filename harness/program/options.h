#ifndef HARNESS_PROGRAM_OPTIONS_H_
#define HARNESS_PROGRAM_OPTIONS_H_

// Command lines, by CLI11: the values that an option accepts, and the wording of refusals. The
// refusal of a validator is "--option: 'value' is not accepted: give ...".

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

// A compiler takes several seconds for CLI/CLI.hpp, so only units that declare options include it.
namespace CLI {
class App;
class Option;
class Validator;
}  // namespace CLI

namespace perfring {

// The text to print if there is nothing to run: the help, or why the command line is refused.
struct Answer {
  std::string text;
  bool refused = false;
};

// Prints the answer to stdout, or to stderr if it is a refusal. Returns the exit code.
int print_answer(const Answer& answer);

// Returns the refusal of a value, in the same words for every option.
std::string not_accepted(std::string_view text, std::string_view accepted);

// Accepts an unsigned number. (CLI11 by itself takes -1 for the largest one.)
CLI::Validator number_from(std::uint64_t least, std::uint64_t most = ~std::uint64_t{0});
CLI::Validator power_of_two_up_to(std::uint64_t most);
// Accepts a number of seconds above 0, at most a day.
CLI::Validator seconds();
// Accepts one of these names.
CLI::Validator one_of(std::vector<std::string> names);
// Does the same for many names. The command `lister` prints all of them; a refusal names the
// nearest.
CLI::Validator one_of_many(std::vector<std::string> names, const std::string& lister);
// Returns "the nearest are a, b, c; 'LISTER' prints all".
std::string nearest_to(std::string_view name, std::vector<std::string> names,
                       std::string_view lister);
// Accepts any text of at most this many bytes.
CLI::Validator no_longer_than(std::size_t bytes);
// Accepts any text but the empty one. parse() adds this validator to the options that take a value.
CLI::Validator not_empty();

// An option that requests something other than a run, and the options that may be given with it.
struct ExclusiveOption {
  const CLI::Option* option;
  std::vector<const CLI::Option*> with = {};
};
// Makes `command` refuse other options, which would be ignored. (With CLI11's excludes(), the help
// would consist mostly of exclusions.)
void refuse_other_options(CLI::App& command, std::vector<ExclusiveOption> all);

// Adds not_empty(), --version and the exit codes to the program and to each of its commands, and
// parses the arguments. Returns an answer if there is nothing to run. Refuses unexpected arguments.
std::optional<Answer> parse(CLI::App& app, int argc, const char* const* argv);

}  // namespace perfring

#endif  // HARNESS_PROGRAM_OPTIONS_H_
