#ifndef HARNESS_DIFFERENTIAL_OPTIONS_H_
#define HARNESS_DIFFERENTIAL_OPTIONS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace perfring::differential {

struct CampaignOptions {
  std::uint64_t seed = 1;       // of the first script; the next one's is one more
  std::uint64_t scripts = 300;  // how many
  std::size_t steps_max = 80;
  int cpu = 0;  // that the calling thread is bound to
};

// What the command line asks for.
struct Options {
  CampaignOptions campaign{.scripts = 10000};
  std::string script;  // a file
  std::string record;  // a folder
  bool json = false;
};

// What to print and the exit code, where there is nothing to run.
struct Answer {
  int exit_code;
  std::string text;
};

// The options, of which --cpu is one of `cpus`, and the first of them if it is not given; or the
// answer to --help, or to what is not accepted.
std::variant<Options, Answer> parse(int argc, const char* const* argv,
                                    const std::vector<std::uint32_t>& cpus);

// Exit codes.
inline constexpr int kEqual = 0;
inline constexpr int kDifferent = 1;
inline constexpr int kUsageOrEnvironment = 2;

}  // namespace perfring::differential

#endif  // HARNESS_DIFFERENTIAL_OPTIONS_H_
