#ifndef HARNESS_PROGRAM_VERDICT_H_
#define HARNESS_PROGRAM_VERDICT_H_

// The verdict of a run, in the same words and with the same exit code in every program.

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace perfring {

// NotShown: nothing was violated, and yet nothing was proved: the run was cut short, or there was
// nothing to look at.
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
  std::string not_shown;     // why, if that is the verdict
};

// A violation outweighs everything. `nothing` says why the run shows nothing, or is empty.
Conclusion conclude(bool violated, bool interrupted, std::string nothing = {});

// "holds" -> `if_holds`; otherwise what the verdict is, and why.
std::string sentence(const Conclusion& conclusion, const std::string& if_holds);

// The fields that the JSON of every program begins with: verdict, holds, interrupted, not_shown.
nlohmann::ordered_json to_json(const Conclusion& conclusion);
// Serializes it, in ASCII. Bytes that are not UTF-8, such as part of a file's name, are replaced.
std::string dump(const nlohmann::ordered_json& json);

}  // namespace perfring

#endif  // HARNESS_PROGRAM_VERDICT_H_
