#ifndef HARNESS_PROGRAM_VERDICT_H_
#define HARNESS_PROGRAM_VERDICT_H_

// The verdict of a run, in the same words and with the same exit code in every program.

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace perfring {

// NotShown: nothing was violated, but nothing was proved: the run was cut short, or there was
// nothing to check.
enum class Verdict { Holds, Violated, NotShown };

inline constexpr int kHolds = 0;
inline constexpr int kViolated = 1;
inline constexpr int kUsageOrEnvironment = 2;
inline constexpr int kNotShown = 3;

inline constexpr const char* kExitCodes =
    "Exit codes: 0 holds, 1 violated, 2 usage or environment, 3 not shown: the run was cut short, "
    "or\nthere was nothing to check.";

int exit_code(Verdict verdict);
const char* to_string(Verdict verdict);

struct Conclusion {
  Verdict verdict = Verdict::Holds;
  bool interrupted = false;  // by a signal
  std::string not_shown;     // the reason, if this is the verdict
};

// A violation outweighs everything. `nothing` is the reason why the run shows nothing, or empty.
Conclusion conclude(bool violated, bool interrupted, std::string nothing = {});

// Returns `if_holds` if the verdict is Holds; otherwise the verdict and its reason.
std::string sentence(const Conclusion& conclusion, const std::string& if_holds);

// Returns the fields with which the JSON of every program begins: verdict, holds, interrupted,
// not_shown.
nlohmann::ordered_json to_json(const Conclusion& conclusion);
// Serializes the JSON in ASCII. Replaces bytes that are not UTF-8, such as part of a file's name.
std::string dump(const nlohmann::ordered_json& json);

}  // namespace perfring

#endif  // HARNESS_PROGRAM_VERDICT_H_
