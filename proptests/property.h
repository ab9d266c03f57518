#ifndef PROPTESTS_PROPERTY_H_
#define PROPTESTS_PROPERTY_H_

// RapidCheck's properties as GoogleTest's tests.

#include <rapidcheck.h>
#include <rapidcheck/detail/Configuration.h>

#include <functional>
#include <optional>
#include <string>

#include "harness/oracle/invariant.h"

namespace perfring::proptests {

using oracle::Invariant;

// Draws what it needs (`*generator`), and fails by RC_ASSERT or RC_FAIL; or so that the failure
// names the invariant that is violated, by fail() or RC_ASSERT_INVARIANT.
using Property = std::function<void()>;

// Fails the property that is being checked.
[[noreturn]] void fail(const oracle::Violation& violation);

// As RC_ASSERT. Where the condition does not hold, this invariant is violated.
#define RC_ASSERT_INVARIANT(invariant, condition)                                              \
  ::rc::detail::doAssert(                                                                      \
      RC_INTERNAL_CAPTURE(condition), true, ::rc::detail::CaseResult::Type::Failure, __FILE__, \
      __LINE__,                                                                                \
      to_string(::perfring::oracle::Violation{::perfring::oracle::Invariant::invariant,        \
                                              "RC_ASSERT(" #condition ")"}))

// Checks it `times` times, or as RC_PARAMS says. A counterexample fails the test that calls this:
// shrunk, in words, with the line that replays it.
void always(const Property& property, int times = 300);

// Looks for a counterexample as `configuration` says: what it is and violates, in words; or
// nothing.
std::optional<std::string> search(const Property& property,
                                  const rc::detail::Configuration& configuration);

// A faulty kernel or consumer must be found out: looks for a counterexample, which is the same each
// time. The first failure must name `violated`: neither another invariant, nor an assertion that
// names none, nor an exception is one. Shrinking takes most of the time, so it is done only if
// `shrunk`.
std::optional<std::string> counterexample(const Property& property, Invariant violated,
                                          bool shrunk = false);

}  // namespace perfring::proptests

#endif  // PROPTESTS_PROPERTY_H_
