#ifndef HARNESS_MODEL_LITMUS_TEXT_H_
#define HARNESS_MODEL_LITMUS_TEXT_H_

// A litmus test as a file has it: data, without a memory model. The engine runs it (litmus.h), and
// the axioms judge it (harness/model/reference).

#include <cstddef>
#include <cstdint>
#include <exception>
#include <iosfwd>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace perfring::model {

// The operations in JSON, with the fields in this order; registers belong to a thread:
//   ["W", location, value, na|rlx|rel]            ["WR", location, register], relaxed
//   ["R", register, location, na|rlx|acq]         ["F", acq|rel|ar|sc|wmb]
//   ["FA", register, location, addend, order]     fetch_add
//   ["XC", register, location, value, order]      exchange
//   ["CX", register, location, expected, value, order, failure order]   compare_exchange
//   ["IF", register, value, [operations]]         runs them if the register has the value
//   ["CTRL", register]      a branch on the register: later stores depend on the read that set it
//   ["ASSUME", register, value]                   if false: ends the thread, blocks the execution
//   ["CP", [registers]]     a checkpoint: from here on the thread depends on these registers only
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
    SequentiallyConsistent,  // fences only, as is
    StoreStore,              // smp_wmb()
  };

  Kind kind = Kind::Write;
  Order order = Order::Relaxed;
  Order failure = Order::Relaxed;  // for a CompareExchange that fails
  std::uint16_t location = 0;
  std::uint32_t line = 0;  // its number in its thread, counted from 1
  std::string reg;
  std::uint64_t value = 0;
  std::uint64_t expected = 0;          // CompareExchange only
  std::vector<std::string> registers;  // Checkpoint only
  std::vector<Op> body;                // If only

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
  std::uint64_t initial = 0;  // the value of each location
  std::vector<std::vector<Op>> threads;
  std::vector<std::string> observed;  // "x", "1:r0"
  std::int64_t unset_register = 0;    // the value of a register that is not assigned
};

// Parses a thread's operations. Throws a UsageError that names the operation.
std::vector<Op> read_ops(const nlohmann::ordered_json& list,
                         const std::vector<std::string>& locations);
// The inverse of read_ops().
nlohmann::ordered_json ops_json(const std::vector<Op>& ops,
                                const std::vector<std::string>& locations);
// Returns a whole test as JSON, without its expectations.
std::string text_json(const LitmusText& text);

// Parses the JSON of a file of litmus tests. Throws UsageError for text that is not JSON, for lists
// that are nested too deep, for an object with more than 1000 fields, and for a field that is given
// twice: the library would keep the last one.
nlohmann::ordered_json parse_litmus_json(std::istream& file);

// Returns the message of an exception of the library, without "[json.exception.type_error.302] ".
std::string message_of(const std::exception& error);

// Returns the number. Throws UsageError if it would be rounded or cut off: a misread number could
// agree by chance.
std::int64_t integer_of(const nlohmann::ordered_json& number);

}  // namespace perfring::model

#endif  // HARNESS_MODEL_LITMUS_TEXT_H_
