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
  SequentiallyConsistent,  // of fences only
  StoreStore,              // of fences only: the kernel's smp_wmb()
};

constexpr bool acquires(Order order) {
  return order == Order::Acquire || order == Order::AcquireRelease ||
         order == Order::SequentiallyConsistent;
}
constexpr bool releases(Order order) {
  return order == Order::Release || order == Order::AcquireRelease ||
         order == Order::SequentiallyConsistent;
}

// A place in a program's source. As a default argument, here() is the call's.
struct Where {
  std::uint32_t line = 0;
  const char* file = "";
  std::uint32_t column = 0;

  static constexpr Where here(std::source_location at = std::source_location::current()) {
    return {at.line(), at.file_name(), at.column()};
  }
};

// The next step of a thread, as the memory sees it.
struct Step {
  enum class Kind : std::uint8_t {
    Read,
    Write,
    Update,  // reads, and writes if it succeeds: all at once
    Fence,
    Control,     // from here on the thread's stores depend on a branch on one of its reads
    Checkpoint,  // from here on the thread depends on nothing but the values given
    Fail,        // an assertion of the program does not hold
    Block,       // an assumption does not hold: the thread ends, and the execution does not count
    End,
  };
  enum class Update : std::uint8_t { Add, Exchange, CompareExchange };

  Kind kind = Kind::End;
  Order order = Order::Relaxed;
  Order failure = Order::Relaxed;  // of a CompareExchange
  Update update = Update::Add;
  std::uint16_t location = 0;
  Where where;
  std::uint64_t value = 0;  // to write, to add
  std::uint64_t expected = 0;
  std::string message;  // Fail: what does not hold
  // The number, from 1 on, of the read on which a Control, or a Write's value, depends. 0: none.
  std::uint32_t depends_on = 0;

  // Whether an Update that has read `read` writes, and which value.
  bool writes(std::uint64_t read) const {
    return kind == Kind::Write ||
           (kind == Kind::Update && (update != Update::CompareExchange || read == expected));
  }
  std::uint64_t written(std::uint64_t read) const {
    return kind == Kind::Update && update == Update::Add ? read + value : value;
  }
  bool reads() const { return kind == Kind::Read || kind == Kind::Update; }
  // The order of an Update that has read `read`.
  Order order_after(std::uint64_t read) const {
    return kind == Kind::Update && !writes(read) ? failure : order;
  }
};

}  // namespace perfring::model

#endif  // HARNESS_MODEL_ENGINE_STEP_H_
