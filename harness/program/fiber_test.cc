#include "harness/program/fiber.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <exception>
#include <functional>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <vector>

#include "harness/program/sanitizers.h"

namespace perfring {
namespace {

TEST(FiberTest, ResumeContinuesWhereFiberSuspended) {
  std::string trace;
  Fiber* self = nullptr;
  Fiber fiber{[&] {
    trace += 'a';
    self->suspend();
    trace += 'b';
    self->suspend();
    trace += 'c';
  }};
  self = &fiber;
  for (const char outside : {'1', '2', '3'}) {
    EXPECT_FALSE(fiber.done());
    fiber.resume();
    trace += outside;
  }
  EXPECT_TRUE(fiber.done());
  EXPECT_EQ(trace, "a1b2c3");
}

TEST(FiberTest, DestroyingAFiberThatHasNotRunIsSafe) {
  bool ran = false;
  {
    Fiber fiber{[&] { ran = true; }};
  }
  EXPECT_FALSE(ran);
}

TEST(FiberTest, AFiberWithoutMemoryForItsStackHasNotBegun) {
#if defined(PERFRING_ASAN) || defined(PERFRING_TSAN)
  GTEST_SKIP() << "the sanitizer needs memory as well";
#endif
  bool ran = false;
  Fiber fiber{[&] { ran = true; }};
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_AS, &before), 0);
  const rlimit none{.rlim_cur = 1, .rlim_max = before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_AS, &none), 0);
  constexpr std::size_t kSize = 1 << 20;
  void* const mapped =
      ::mmap(nullptr, kSize, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  bool threw = false;
  if (mapped == MAP_FAILED) {
    try {
      fiber.resume();
    } catch (const std::bad_alloc&) {
      threw = true;
    }
  }
  ASSERT_EQ(::setrlimit(RLIMIT_AS, &before), 0);
  if (mapped != MAP_FAILED) {
    ::munmap(mapped, kSize);
    GTEST_SKIP() << "RLIMIT_AS does not hold here";
  }
  EXPECT_TRUE(threw);
  EXPECT_FALSE(ran || fiber.suspended() || fiber.done());
  fiber.resume();
  EXPECT_TRUE(ran && fiber.done());
}

// The objects on its stack are not destroyed, because they may refer to objects that are gone.
TEST(FiberTest, DestroyingASuspendedFiberIsSafe) {
  bool unwound = false;
  struct Unwound {
    bool& flag;
    ~Unwound() { flag = true; }
  };
  {
    Fiber* self = nullptr;
    Fiber fiber{[&] {
      const Unwound on_its_stack{unwound};
      self->suspend();
    }};
    self = &fiber;
    fiber.resume();
    EXPECT_FALSE(fiber.done());
  }
  EXPECT_FALSE(unwound);
}

// Two fibers that each suspend between a throw and its end, first in, first out. If they shared one
// stack of exceptions, each would end the other's exception.
TEST(FiberTest, ExceptionsOfTwoFibersDoNotMix) {
  std::vector<std::unique_ptr<Fiber>> fibers(2);
  std::vector<std::string> caught(2);
  struct RestWhenUnwound {
    Fiber& fiber;
    ~RestWhenUnwound() {
      EXPECT_EQ(std::uncaught_exceptions(), 1);
      fiber.suspend();
      EXPECT_EQ(std::uncaught_exceptions(), 1);
    }
  };
  for (std::size_t i = 0; i < 2; ++i) {
    fibers[i] = std::make_unique<Fiber>([&, i] {
      try {
        const RestWhenUnwound rest{*fibers[i]};
        throw std::runtime_error{std::to_string(i)};
      } catch (const std::runtime_error& error) {
        fibers[i]->suspend();
        caught[i] = error.what();
        try {
          throw;
        } catch (const std::runtime_error& again) {
          caught[i] += again.what();
        }
      }
    });
  }
  while (!fibers[0]->done() || !fibers[1]->done()) {
    for (const auto& fiber : fibers) {
      if (!fiber->done()) fiber->resume();
      EXPECT_EQ(std::uncaught_exceptions(), 0);
    }
  }
  EXPECT_EQ(caught, (std::vector<std::string>{"00", "11"}));
}

// Holds values in registers while it calls `called`. On POWER the registers are named, because the
// compiler rarely chooses them.
[[gnu::noinline]] void expect_kept_across(const std::function<void()>& called,
                                          const volatile unsigned& first) {
  using Vector __attribute__((vector_size(16))) = unsigned;
#ifdef __powerpc64__
  register Vector vector asm("v31") = {first, first, first, first};
  register double number asm("fr31") = first;
  asm volatile("" : "+v"(vector), "+d"(number));
  called();
  asm volatile("" : "+v"(vector), "+d"(number));
#else
  const Vector vector{first, first, first, first};
  const double number = first;
  called();
#endif
  const Vector vector_after = vector;
  const double number_after = number;
  EXPECT_EQ(vector_after[0], first);
  EXPECT_EQ(number_after, first);
}

TEST(FiberTest, ASwitchKeepsTheRegistersThatACallKeeps) {
  Fiber* self = nullptr;
  Fiber fiber{[&] {
    for (const unsigned first : {2u, 20u}) expect_kept_across([&] { self->suspend(); }, first);
  }};
  self = &fiber;
  for (unsigned first = 3; !fiber.done(); ++first) {
    expect_kept_across([&] { fiber.resume(); }, first);
  }
}

}  // namespace
}  // namespace perfring
