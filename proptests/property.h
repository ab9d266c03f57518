#ifndef PROPTESTS_PROPERTY_H_
#define PROPTESTS_PROPERTY_H_

// Runs RapidCheck's properties as GoogleTest's tests.

#include <rapidcheck.h>
#include <rapidcheck/detail/Configuration.h>

#include <functional>
#include <optional>
#include <string>

#include "harness/oracle/invariant.h"

namespace perfring::proptests {

using oracle::Invariant;

// A property draws its values itself (`*generator`). It fails by RC_ASSERT or RC_FAIL; or, so that
// the failure names the violated invariant, by fail() or RC_ASSERT_INVARIANT.
using Property = std::function<void()>;

// Fails the property that is being checked, with the violated invariant.
[[noreturn]] void fail(const oracle::Violation& violation);

// RC_ASSERT, but the failure names `invariant` as violated.
#define RC_ASSERT_INVARIANT(invariant, condition)                                              \
  ::rc::detail::doAssert(                                                                      \
      RC_INTERNAL_CAPTURE(condition), true, ::rc::detail::CaseResult::Type::Failure, __FILE__, \
      __LINE__,                                                                                \
      to_string(::perfring::oracle::Violation{::perfring::oracle::Invariant::invariant,        \
                                              "RC_ASSERT(" #condition ")"}))

// Checks the property `times` times, or as often as RC_PARAMS says. A counterexample fails the
// calling test; the message has the shrunk counterexample in words and the line that replays it.
void always(const Property& property, int times = 300);

// Searches for a counterexample with this configuration. Returns it, and the assertion that failed,
// in words; nullopt if there is none.
std::optional<std::string> search(const Property& property,
                                  const rc::detail::Configuration& configuration);

// Searches for a counterexample that shows the fault of a kernel or consumer, with a fixed seed.
// The first failure must name the invariant `violated`. Returns nullopt if it names another
// invariant or none, or is an exception. Shrinks only if `shrunk`, because shrinking takes most of
// the time.
std::optional<std::string> counterexample(const Property& property, Invariant violated,
                                          bool shrunk = false);

}  // namespace perfring::proptests

#endif  // PROPTESTS_PROPERTY_H_
