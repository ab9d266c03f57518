#include "harness/program/verdict.h"

#include <utility>

#include "harness/program/json.h"

namespace perfring {

int exit_code(Verdict verdict) {
  switch (verdict) {
    case Verdict::Holds:
      return kHolds;
    case Verdict::Violated:
      return kViolated;
    case Verdict::NotShown:
      break;
  }
  return kNotShown;
}

const char* to_string(Verdict verdict) {
  switch (verdict) {
    case Verdict::Holds:
      return "holds";
    case Verdict::Violated:
      return "violated";
    case Verdict::NotShown:
      break;
  }
  return "not shown";
}

Conclusion conclude(bool violated, bool interrupted, std::string nothing) {
  if (violated) return {Verdict::Violated, interrupted, {}};
  if (interrupted) return {Verdict::NotShown, true, "interrupted before the end"};
  if (!nothing.empty()) return {Verdict::NotShown, false, std::move(nothing)};
  return {};
}

std::string sentence(const Conclusion& conclusion, const std::string& if_holds) {
  switch (conclusion.verdict) {
    case Verdict::Holds:
      return if_holds;
    case Verdict::Violated:
      return conclusion.interrupted ? "Invariants are violated (interrupted)"
                                    : "Invariants are violated";
    case Verdict::NotShown:
      break;
  }
  return "Not shown: " + conclusion.not_shown + "; nothing was violated";
}

Json to_json(const Conclusion& conclusion) {
  return {{"verdict", to_string(conclusion.verdict)},
          {"holds", conclusion.verdict == Verdict::Holds},
          {"interrupted", conclusion.interrupted},
          {"not_shown", conclusion.not_shown}};
}

std::string dump(const Json& json) {
  constexpr int kIndent = 2;
  // ASCII only, so that no control character of Unicode reaches a terminal.
  return json.dump(kIndent, ' ', /*ensure_ascii=*/true, Json::error_handler_t::replace) + "\n";
}

}  // namespace perfring
