#ifndef PROPTESTS_PROPERTY_H_
#define PROPTESTS_PROPERTY_H_

// RapidCheck's properties as GoogleTest's tests.

#include <rapidcheck.h>
#include <rapidcheck/detail/Configuration.h>

#include <functional>
#include <optional>
#include <string>

namespace perfring::proptests {

// Draws what it needs (`*generator`), and fails by RC_ASSERT or RC_FAIL.
using Property = std::function<void()>;

// Checks it `times` times, or as RC_PARAMS says. A counterexample fails the test that calls this:
// shrunk, in words, with the line that replays it.
void always(const Property& property, int times = 300);

// Looks for a counterexample as `configuration` says: what it is and violates, in words; or
// nothing.
std::optional<std::string> search(const Property& property,
                                  const rc::detail::Configuration& configuration);

// A faulty kernel or consumer must be found out: looks for a counterexample, which is the same each
// time. Shrinking takes most of the time, so it is done only if `shrunk`.
std::optional<std::string> counterexample(const Property& property, bool shrunk = false);

}  // namespace perfring::proptests

#endif  // PROPTESTS_PROPERTY_H_
