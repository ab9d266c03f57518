# Stops with one line where the compiler, or its C++ library, is too old for perfring::perfring.
include(CheckCXXSourceCompiles)
include(CMakePushCheckState)

cmake_push_check_state()
# The standard of the project that this is a part of would come after the flag.
set(perfring_standard_before ${CMAKE_CXX_STANDARD})
set(CMAKE_CXX_STANDARD 23)
set(CMAKE_REQUIRED_FLAGS "${CMAKE_CXX23_STANDARD_COMPILE_OPTION}")
set(CMAKE_REQUIRED_QUIET ON)
check_cxx_source_compiles("#include <expected>\nint main() { return std::expected<int, int>{0}.value(); }"
  PERFRING_HAS_EXPECTED)
cmake_pop_check_state()
set(CMAKE_CXX_STANDARD ${perfring_standard_before})
if(NOT PERFRING_HAS_EXPECTED)
  message(FATAL_ERROR "perfring::perfring needs std::expected, as g++ 12 and clang 19 have it; "
    "${CMAKE_CXX_COMPILER} (${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}) has none. "
    "Choose another with -DCMAKE_CXX_COMPILER=..., in an empty build folder, or "
    "-DPERFRING_RING_ONLY=ON for the ring alone, which is C++20.")
endif()
