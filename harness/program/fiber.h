#ifndef HARNESS_PROGRAM_FIBER_H_
#define HARNESS_PROGRAM_FIBER_H_

// A function with its own stack that runs and suspends in turns: Boost.Context's switch, with two
// additions. The C++ runtime keeps the exceptions in flight in one place per thread; here each
// fiber has its own. AddressSanitizer and ThreadSanitizer are told which stack is in use.
//
// Threads: a fiber stays in the thread that created it.

#include <boost/context/fiber.hpp>
#include <cstddef>
#include <functional>

namespace perfring {

class Fiber {
 public:
  // Does not run `body` yet. No exception may escape from `body`.
  explicit Fiber(std::function<void()> body);
  // Abandons a suspended fiber: its stack is neither unwound nor freed, because the objects that
  // its destructors would touch may be gone.
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  // Called from outside: runs the body until it suspends or ends. The first call may throw
  // std::bad_alloc for the stack; the body has not begun then.
  void resume();
  // Called by the body: returns to the caller of resume(), until the fiber is resumed again.
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
    boost::context::fiber inside_;  // with its stack; not destroyed if the fiber is abandoned
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
