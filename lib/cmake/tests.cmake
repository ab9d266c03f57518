# The library's tests, as far as they need GoogleTest and no more. Bazel alone runs the shell scripts, and:
set(needs_bazel
  no_exceptions_test  # compiles the library in its own way
  readme_test         # what it compiles is cut out of the README
  ring_ordering_test) # ThreadSanitizer's verdict on faults

find_package(GTest CONFIG QUIET)
if(NOT GTest_FOUND)
  message(FATAL_ERROR "PERFRING_BUILD_TESTS needs GoogleTest (Debian: libgtest-dev, libgmock-dev)")
endif()

# They look at hidden functions too, so they have the sources in themselves, whatever the library is.
get_target_property(sources perfring SOURCES)
add_library(perfring_tested OBJECT ${sources})
target_link_libraries(perfring_tested PUBLIC perfring_ring)
target_include_directories(perfring_tested PUBLIC .)
target_compile_features(perfring_tested PUBLIC cxx_std_23)

# The kernel's stand-in, with what it wraps, and what of the tests' own headers brings it.
file(STRINGS perfring/testing/BUILD.bazel fake_options REGEX "--wrap=")
string(REGEX MATCH "-Wl,[^\"]+" fake_options "${fake_options}")
set(fakes "fake_kernel")
file(GLOB_RECURSE helpers CONFIGURE_DEPENDS perfring/testing/*.h)
foreach(helper IN LISTS helpers)
  file(STRINGS ${helper} brings REGEX "testing/fake_kernel\\.h")
  if(brings)
    cmake_path(GET helper STEM stem)
    string(APPEND fakes "|${stem}")
  endif()
endforeach()

file(GLOB_RECURSE tests CONFIGURE_DEPENDS RELATIVE "${CMAKE_CURRENT_SOURCE_DIR}" perfring/*_test.cc)
foreach(source IN LISTS tests)
  cmake_path(GET source STEM stem)
  string(REGEX REPLACE "^perfring/|\\.cc$" "" name "${source}")
  string(REPLACE "/" "_" name "${name}")
  if(stem IN_LIST needs_bazel)
    continue()
  endif()
  add_executable(${name} ${source})
  target_link_libraries(${name} PRIVATE perfring_tested GTest::gmock GTest::gtest_main)
  # The kernel's stand-in takes the place of what it wraps, so it is linked to those that want it.
  file(STRINGS ${source} fake REGEX "testing/(${fakes})\\.h")
  if(fake)
    target_sources(${name} PRIVATE perfring/testing/fake_kernel.cc)
    target_link_options(${name} PRIVATE ${fake_options})
  endif()
  add_test(NAME ${name} COMMAND ${name})
endforeach()
