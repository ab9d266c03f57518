#ifndef HARNESS_PROGRAM_OPTIONS_H_
#define HARNESS_PROGRAM_OPTIONS_H_

// Command lines, by CLI11: the values that an option accepts, and how others are refused. A
// validator's refusal is "--option: 'value' is not accepted: give ...".

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

// CLI/CLI.hpp takes a compiler several seconds: only units that declare options include it.
namespace CLI {
class App;
class Option;
class Validator;
}  // namespace CLI

namespace perfring {

// The text to print when there is nothing to run: the help, or why the command line is refused.
struct Answer {
  std::string text;
  bool refused = false;
};

// Gives it: to stdout, or to stderr if something is refused. Returns the exit code.
int give(const Answer& answer);

// The wording of every refusal of a value.
std::string not_accepted(std::string_view text, std::string_view accepted);

// An unsigned number. (CLI11 by itself takes -1 for the largest.)
CLI::Validator number_from(std::uint64_t least, std::uint64_t most = ~std::uint64_t{0});
CLI::Validator power_of_two_up_to(std::uint64_t most);
// A number of seconds, above 0; at most a day.
CLI::Validator seconds();
// One of these.
CLI::Validator one_of(std::vector<std::string> names);
// The same of many, all of which the command `lister` prints: a refusal names the nearest.
CLI::Validator one_of_many(std::vector<std::string> names, const std::string& lister);
// "the nearest are a, b and c; LISTER prints all"
std::string nearest_to(std::string_view name, std::vector<std::string> names,
                       std::string_view lister);
// Any text of at most this many bytes.
CLI::Validator no_longer_than(std::size_t bytes);
// Any text but the empty one: what an option without a validator of its own gets from parse().
CLI::Validator not_empty();

// An option that asks for something else than a run, and what may be given with it.
struct Alone {
  const CLI::Option* option;
  std::vector<const CLI::Option*> with = {};
};
// Has `command` refuse what would be passed over. (With CLI11's excludes() the help would be about
// little else.)
void refuse_more(CLI::App& command, std::vector<Alone> all);

// Adds not_empty(), --version and the exit codes to the program and to each of its commands, and
// parses. Returns an answer if there is nothing to run. Arguments that nothing takes are refused.
std::optional<Answer> parse(CLI::App& app, int argc, const char* const* argv);

}  // namespace perfring

#endif  // HARNESS_PROGRAM_OPTIONS_H_
