#ifndef PROPTESTS_PROPERTY_H_
#define PROPTESTS_PROPERTY_H_

// RapidCheck's properties as GoogleTest's tests. A property is a callable that draws what it needs
// and fails by RC_ASSERT or RC_FAIL.

#include <rapidcheck.h>

#include <optional>
#include <string>
#include <utility>

namespace perfring::proptests {

// Checks it `times` times, or as RC_PARAMS says. A counterexample fails the test that calls this:
// shrunk, in words, with the line that replays it.
void expect_always(const rc::detail::Property& property, int times);

// A faulty kernel or consumer must be found out: looks for a counterexample, the same search each
// time. What it violates, or nothing.
std::optional<std::string> fault_found(const rc::detail::Property& property);

template <class Testable>
void always(Testable&& property, int times = 300) {
  expect_always(rc::detail::toProperty(std::forward<Testable>(property)), times);
}

template <class Testable>
std::optional<std::string> counterexample(Testable&& property) {
  return fault_found(rc::detail::toProperty(std::forward<Testable>(property)));
}

}  // namespace perfring::proptests

#endif  // PROPTESTS_PROPERTY_H_
