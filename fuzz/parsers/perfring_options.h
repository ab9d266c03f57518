#ifndef FUZZ_PARSERS_PERFRING_OPTIONS_H_
#define FUZZ_PARSERS_PERFRING_OPTIONS_H_

// The command lines of `perfring` and its commands.

#include <optional>

#include "fuzz/parsers/parser.h"
#include "harness/cli/command_line.h"

namespace perfring::fuzz {

// Parses `perfring COMMAND`, and a text's lines as its arguments. Returns what the command is asked
// for; nothing if the command line is refused, asks for help, or names another command.
template <class Options>
std::optional<Options> parse_perfring(std::string_view text, std::vector<std::string> command) {
  const bool named = !command.empty();
  const Arguments arguments{text, std::move(command)};
  const auto parsed = cli::parse_command_line(arguments.count(), arguments.values());
  const cli::Command* const asked = options_of(parsed);
  if (asked == nullptr) return std::nullopt;
  const Options* const options = std::get_if<Options>(asked);
  expect(options != nullptr || !named, "another command's options");
  return options == nullptr ? std::nullopt : std::optional{*options};
}

}  // namespace perfring::fuzz

#endif  // FUZZ_PARSERS_PERFRING_OPTIONS_H_
