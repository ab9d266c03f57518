#include "harness/live/capabilities.h"

#include <gtest/gtest.h>

namespace perfring::live {
namespace {

TEST(CapabilitiesTest, MissingCapabilitiesAreNamedAndCounted) {
  EXPECT_EQ(advice_on_capabilities(false, true),
            "This process lacks CAP_BPF: run as root, or grant it");
  EXPECT_EQ(advice_on_capabilities(true, false),
            "This process lacks CAP_PERFMON: run as root, or grant it");
  EXPECT_EQ(advice_on_capabilities(false, false),
            "This process lacks CAP_BPF and CAP_PERFMON: run as root, or grant them");
  EXPECT_EQ(advice_on_capabilities(true, true), "");
}

}  // namespace
}  // namespace perfring::live
