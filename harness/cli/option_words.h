#ifndef HARNESS_CLI_OPTION_WORDS_H_
#define HARNESS_CLI_OPTION_WORDS_H_

#include <string>

namespace perfring::cli {

// Translates a message of the library about events: replaces the library functions that it names by
// options, event names and commands.
std::string to_option_words(std::string text);

}  // namespace perfring::cli

#endif  // HARNESS_CLI_OPTION_WORDS_H_
