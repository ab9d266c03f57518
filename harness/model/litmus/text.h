#ifndef HARNESS_MODEL_LITMUS_TEXT_H_
#define HARNESS_MODEL_LITMUS_TEXT_H_

// A litmus test as it is written in a file: data, without a memory model. The engine runs it
// (litmus.h), and so do the axioms (harness/model/reference).

#include <cstddef>
#include <cstdint>
#include <exception>
#include <iosfwd>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace perfring::model {

// In JSON, with the fields in this order; registers are a thread's own:
//   ["W", location, value, na|rlx|rel]            ["WR", location, register], relaxed
//   ["R", register, location, na|rlx|acq]         ["F", acq|rel|ar|sc|wmb]
//   ["FA", register, location, addend, order]     fetch_add
//   ["XC", register, location, value, order]      exchange
//   ["CX", register, location, expected, value, order, failure order]   compare_exchange
//   ["IF", register, value, [operations]]         runs them if the register has the value
//   ["CTRL", register]      a branch on it: the thread's later stores depend on what it read
//   ["ASSUME", register, value]                   ends the thread, and blocks the execution, if not
//   ["CP", [registers]]     a checkpoint: from here on the thread depends on nothing but these
struct Op {
  enum class Kind : std::uint8_t {
    Write,
    WriteRegister,
    Read,
    Fence,
    FetchAdd,
    Exchange,
    CompareExchange,
    If,
    Control,
    Assume,
    Checkpoint,
  };
  enum class Order : std::uint8_t {
    NonAtomic,
    Relaxed,
    Acquire,
    Release,
    AcquireRelease,
    SequentiallyConsistent,  // of fences only, as is
    StoreStore,              // smp_wmb()
  };

  Kind kind = Kind::Write;
  Order order = Order::Relaxed;
  Order failure = Order::Relaxed;  // of a CompareExchange
  std::uint16_t location = 0;
  std::uint32_t line = 0;  // its number in its thread, from 1 on
  std::string reg;
  std::uint64_t value = 0;
  std::uint64_t expected = 0;          // of a CompareExchange
  std::vector<std::string> registers;  // of a Checkpoint
  std::vector<Op> body;                // of an If

  bool reads() const {
    return kind == Kind::Read || kind == Kind::FetchAdd || kind == Kind::Exchange ||
           kind == Kind::CompareExchange;
  }
  bool stores() const {
    return kind == Kind::Write || kind == Kind::WriteRegister || (reads() && kind != Kind::Read);
  }
};

struct LitmusText {
  std::string name;
  std::vector<std::string> locations;
  std::uint64_t initial = 0;  // of each location
  std::vector<std::vector<Op>> threads;
  std::vector<std::string> observed;  // "x", "1:r0"
  std::int64_t unset_register = 0;    // the value of a register that was not assigned
};

// A thread's operations. Throws UsageError, which names the operation.
std::vector<Op> read_ops(const nlohmann::ordered_json& list,
                         const std::vector<std::string>& locations);
// The reverse.
nlohmann::ordered_json ops_json(const std::vector<Op>& ops,
                                const std::vector<std::string>& locations);
// A whole test as JSON, without what is expected of it.
std::string text_json(const LitmusText& text);

// The JSON of a file of litmus tests. Throws UsageError for text that is not JSON, for lists nested
// too deep, for an object with more than 1000 fields, and for one that has a field twice, of which
// the library would keep the last.
nlohmann::ordered_json parse_litmus_json(std::istream& file);

// The message of an exception of the library's, without "[json.exception.type_error.302] ".
std::string message_of(const std::exception& error);

// Neither rounded nor cut off: a misread number could agree by chance.
std::int64_t integer_of(const nlohmann::ordered_json& number);

}  // namespace perfring::model

#endif  // HARNESS_MODEL_LITMUS_TEXT_H_
