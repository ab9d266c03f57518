#ifndef HARNESS_PROGRAM_FIBER_H_
#define HARNESS_PROGRAM_FIBER_H_

// A function with a stack of its own, that runs and rests by turns: Boost.Context's switch, plus
// what it leaves out. The C++ run-time keeps the exceptions in flight in one place for a thread:
// each fiber has its own. It names the stack in use to AddressSanitizer and ThreadSanitizer.
//
// Threads: a fiber stays in the thread that made it.

#include <boost/context/fiber.hpp>
#include <cstddef>
#include <functional>

namespace perfring {

class Fiber {
 public:
  // Runs nothing yet. `body` must not let an exception out.
  explicit Fiber(std::function<void()> body);
  // Abandons a fiber that is suspended: its stack is neither unwound nor freed, as the objects that
  // its destructors would touch may be gone.
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  // From outside: runs the body until it suspends, or ends. The first time it may throw
  // std::bad_alloc, for the stack: then the body has not begun.
  void resume();
  // From within the body: back to who resumed it, until resumed again.
  void suspend();
  bool done() const { return done_; }
  bool suspended() const { return started_ && !done_; }

 private:
  struct Exceptions {  // __cxa_eh_globals of the C++ ABI
    void* caught = nullptr;
    unsigned uncaught = 0;
#ifdef __ARM_EABI_UNWINDER__
    void* propagating = nullptr;
#endif
  };
  class Stack;

  boost::context::fiber run(boost::context::fiber outside);
  void swap_exceptions();

  std::function<void()> body_;
  union {
    boost::context::fiber inside_;  // and its stack; never destroyed, if abandoned
  };
  boost::context::fiber outside_;
  Exceptions exceptions_;
  bool started_ = false;
  bool done_ = false;

  // For the sanitizers.
  const void* stack_bottom_ = nullptr;
  std::size_t stack_size_ = 0;
  [[maybe_unused]] const void* outside_bottom_ = nullptr;
  [[maybe_unused]] std::size_t outside_size_ = 0;
  [[maybe_unused]] void* fake_stack_ = nullptr;
  [[maybe_unused]] void* outside_fake_stack_ = nullptr;
  [[maybe_unused]] void* tsan_inside_ = nullptr;
  [[maybe_unused]] void* tsan_outside_ = nullptr;
};

}  // namespace perfring

#endif  // HARNESS_PROGRAM_FIBER_H_
