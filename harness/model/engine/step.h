#ifndef HARNESS_MODEL_ENGINE_STEP_H_
#define HARNESS_MODEL_ENGINE_STEP_H_

#include <cstdint>
#include <source_location>
#include <string>
#include <vector>

namespace perfring::model {

enum class Order : std::uint8_t {
  NonAtomic,
  Relaxed,
  Acquire,
  Release,
  AcquireRelease,
  SequentiallyConsistent,  // fences only
  StoreStore,              // fences only: the kernel's smp_wmb()
};

constexpr bool acquires(Order order) {
  return order == Order::Acquire || order == Order::AcquireRelease ||
         order == Order::SequentiallyConsistent;
}
constexpr bool releases(Order order) {
  return order == Order::Release || order == Order::AcquireRelease ||
         order == Order::SequentiallyConsistent;
}

// A place in a program's source. As a default argument, here() returns the caller's place.
struct Where {
  std::uint32_t line = 0;
  const char* file = "";
  std::uint32_t column = 0;

  static constexpr Where here(std::source_location at = std::source_location::current()) {
    return {at.line(), at.file_name(), at.column()};
  }
};

// A step of a thread, as memory sees it.
struct Step {
  enum class Kind : std::uint8_t {
    Read,
    Write,
    Update,  // reads, and writes if it succeeds: atomically
    Fence,
    Control,     // a branch on one of the thread's reads, on which its later stores depend
    Checkpoint,  // from here on the thread depends only on the given values
    Fail,        // a check of the program fails
    Block,       // an assumption does not hold: the thread ends, and the execution does not count
    End,
  };
  enum class Update : std::uint8_t { Add, Exchange, CompareExchange };

  Kind kind = Kind::End;
  Order order = Order::Relaxed;
  Order failure = Order::Relaxed;  // for a CompareExchange that fails
  Update update = Update::Add;
  std::uint16_t location = 0;
  Where where;
  std::uint64_t value = 0;  // to write, or to add
  std::uint64_t expected = 0;
  std::string message;  // Fail: the failed check
  // The number of the read on which a Control or a Write's value depends, counted from 1, or 0.
  std::uint32_t depends_on = 0;

  // Whether the step writes, and the value that it writes. `read`: the value that an Update read.
  bool writes(std::uint64_t read) const {
    return kind == Kind::Write ||
           (kind == Kind::Update && (update != Update::CompareExchange || read == expected));
  }
  std::uint64_t written(std::uint64_t read) const {
    return kind == Kind::Update && update == Update::Add ? read + value : value;
  }
  bool reads() const { return kind == Kind::Read || kind == Kind::Update; }
  // Returns the step's order. `read`: the value that an Update read.
  Order order_after(std::uint64_t read) const {
    return kind == Kind::Update && !writes(read) ? failure : order;
  }
};

}  // namespace perfring::model

#endif  // HARNESS_MODEL_ENGINE_STEP_H_
