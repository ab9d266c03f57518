#include "perfring/perf_event.h"

#include <gtest/gtest.h>

#include <string_view>
#include <type_traits>
#include <variant>

namespace perfring {
namespace {

// Events are views: they are copied without a thought, and own nothing.
static_assert(std::is_trivially_copyable_v<Sample> && std::is_trivially_copyable_v<Lost>);
static_assert(std::is_trivially_copyable_v<Malformed>);
static_assert(std::is_trivially_copyable_v<PerfEvent>);
static_assert(std::is_trivially_destructible_v<PerfEvent>);

// Bytes of the ring cannot be written through them.
static_assert(std::is_const_v<Bytes::element_type>);

static_assert(std::is_same_v<PerfEvent, std::variant<Sample, Lost, Malformed>>);

TEST(DefectTest, EachDefectHasAName) {
  EXPECT_EQ(std::string_view{to_string(Defect::BadSample)}, "BadSample");
  EXPECT_EQ(std::string_view{to_string(Defect::BadLost)}, "BadLost");
  EXPECT_EQ(std::string_view{to_string(Defect::UnexpectedType)}, "UnexpectedType");
  EXPECT_EQ(std::string_view{to_string(Defect::BadSize)}, "BadSize");
  EXPECT_EQ(std::string_view{to_string(Defect::BadPositions)}, "BadPositions");
  EXPECT_EQ(std::string_view{to_string(Defect{99})}, "unknown defect");
}

}  // namespace
}  // namespace perfring
