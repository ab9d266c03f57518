#ifndef HARNESS_CLI_OPTION_WORDS_H_
#define HARNESS_CLI_OPTION_WORDS_H_

#include <string>

namespace perfring::cli {

// Translates a message of the library about events: replaces the library functions that it names by
// options, event names and commands.
std::string in_options(std::string said);

}  // namespace perfring::cli

#endif  // HARNESS_CLI_OPTION_WORDS_H_
