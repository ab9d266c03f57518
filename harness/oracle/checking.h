#ifndef HARNESS_ORACLE_CHECKING_H_
#define HARNESS_ORACLE_CHECKING_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "harness/oracle/hand_ring.h"
#include "harness/oracle/invariant.h"

namespace perfring::oracle {

// For tests of the Checker: a ring, and what is found of its history in the end.
class CheckerTest : public ::testing::Test {
 protected:
  void expect(Invariant invariant, const std::string& message = "") {
    ring_.checker.settle();
    ASSERT_TRUE(ring_.checker.violation().has_value());
    EXPECT_STREQ(to_string(ring_.checker.violation()->invariant), to_string(invariant))
        << ring_.checker.violation()->message;
    EXPECT_THAT(ring_.checker.violation()->message, ::testing::HasSubstr(message));
  }
  void expect_good() {
    ring_.checker.settle();
    const auto& violation = ring_.checker.violation();
    EXPECT_FALSE(violation.has_value())
        << to_string(violation->invariant) << ": " << violation->message;
  }

  HandRing ring_;
};

}  // namespace perfring::oracle

#endif  // HARNESS_ORACLE_CHECKING_H_
