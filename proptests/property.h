#ifndef PROPTESTS_PROPERTY_H_
#define PROPTESTS_PROPERTY_H_

// RapidCheck's properties as GoogleTest's tests. A property is a callable that draws what it needs
// and fails by RC_ASSERT or RC_FAIL.

#include <rapidcheck.h>
#include <rapidcheck/detail/Configuration.h>

#include <optional>
#include <string>
#include <utility>

namespace perfring::proptests {

// Checks it `times` times, or as RC_PARAMS says. A counterexample fails the test that calls this:
// shrunk, in words, with the line that replays it.
void expect_always(const rc::detail::Property& property, int times);

// Looks for a counterexample as `configuration` says: what it is and violates, in words; or
// nothing.
std::optional<std::string> search(const rc::detail::Property& property,
                                  const rc::detail::Configuration& configuration);

template <class Testable>
void always(Testable&& property, int times = 300) {
  expect_always(rc::detail::toProperty(std::forward<Testable>(property)), times);
}

// A faulty kernel or consumer must be found out: looks for a counterexample, which is the same each
// time. Shrinking takes most of the time, so it is done only if `shrunk`.
template <class Testable>
std::optional<std::string> counterexample(Testable&& property, bool shrunk = false) {
  rc::detail::Configuration configuration;
  configuration.testParams.seed = 1;
  configuration.testParams.maxSuccess = 10000;
  configuration.testParams.disableShrinking = !shrunk;
  return search(rc::detail::toProperty(std::forward<Testable>(property)), configuration);
}

}  // namespace perfring::proptests

#endif  // PROPTESTS_PROPERTY_H_
