#ifndef HARNESS_MODEL_PROGRAMS_PROGRAMS_H_
#define HARNESS_MODEL_PROGRAMS_PROGRAMS_H_

// Programs other than lib's Ring: algorithms with known verdicts, and the ring protocol.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "harness/model/engine/program.h"

namespace perfring::model {

// An algorithm that is correct, or has the usual mistake.
struct KnownProgram {
  std::string name;
  std::string what;
  Program (*make)();
  std::string violated;  // the check that a wrong one violates
};

std::span<const KnownProgram> known_programs();

// The ring protocol word by word, as in other checkers' models, with each part that can be left out
// or done wrong. The ring has 4 words. The word at position p is written as p + 1; a record's first
// word has its length in the upper half.

struct Protocol {
  // Form A: the ring's words are relaxed atomics. Form B: they are not atomic, so that an access
  // too many is a race, reads included. In form B the producer reads data_tail by an acquire load,
  // which stands in for its control dependency: C++ has none.
  enum class Form : std::uint8_t { A, B };
  enum class Barrier : std::uint8_t { None, Acquire, Release, Full, StoreStore };
  enum class Commit : std::uint8_t { AfterBatch, BeforeBatch, AfterEachRecord, AfterEachHeader };
  enum class Space : std::uint8_t { Checked, Unchecked, OneTooMany, AllOfIt };

  Form form = Form::A;
  unsigned records = 2;
  unsigned drains = 2;
  std::vector<unsigned> lengths = {1};  // of the records, used in turn

  bool control_dependency = true;                // A; RC11 ignores it
  Barrier before_head_store = Barrier::Release;  // B
  Barrier after_head_load = Barrier::Acquire;    // C
  Barrier before_tail_store = Barrier::Full;     // D
  Commit commit = Commit::AfterBatch;
  Space space = Space::Checked;
  bool modulo_size = false;             // data_head and data_tail are kept modulo the ring's size
  bool fence_before_head_load = false;  // C, but before the load
  bool head_read_again = false;         // data_head is loaded once more after C
  bool head_first = false;              // data_head is stored before the record
  // The last record writes more words than its length says, over unread words (K10). A drain may
  // then deliver any words, but must not read past data_head.
  bool oversize = false;
  bool header_read_twice = false;  // once to check a record's length, once to use it
};

Program protocol(const Protocol& options);

// A change of the protocol.
struct ProtocolFault {
  std::string name;  // as in the catalogue of harness/faults
  void (*change)(Protocol&);
  // The check that finds the fault in each form, with 3 records of 3, 2 and 1 words and 3 drains;
  // nullptr if none does.
  const char *in_a, *in_b;
};

std::span<const ProtocolFault> protocol_faults();
// Returns nullptr if no fault has that name.
const ProtocolFault* find_protocol_fault(const std::string& name);

}  // namespace perfring::model

#endif  // HARNESS_MODEL_PROGRAMS_PROGRAMS_H_
