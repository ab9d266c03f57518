#ifndef HARNESS_CLI_OPTION_WORDS_H_
#define HARNESS_CLI_OPTION_WORDS_H_

#include <string>

namespace perfring::cli {

// What the library says of events, in which it names functions of its own, in the words of a
// command line: options, names of events, commands.
std::string in_options(std::string said);

}  // namespace perfring::cli

#endif  // HARNESS_CLI_OPTION_WORDS_H_
