#ifndef HARNESS_MODEL_PROGRAMS_PROGRAMS_H_
#define HARNESS_MODEL_PROGRAMS_PROGRAMS_H_

// Programs beside those of Ring: algorithms whose verdicts are known, and the ring protocol.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "harness/model/engine/program.h"

namespace perfring::model {

// Right, or wrong in the way that is usual.
struct KnownProgram {
  std::string name;
  std::string what;
  Program (*make)();
  std::string violated;  // what a wrong one violates
};

std::span<const KnownProgram> known_programs();

// The ring protocol word by word, with each part that can be left out or done wrong, as in other
// checkers' models of it. A ring of 4 words. The word at position p is written as p + 1; a record's
// first word has its length in the upper half.

struct Protocol {
  // A: the ring's words are relaxed atomics. B: they are not atomic, so that an access too many is
  // a race, reads included; the producer's read of data_tail is then an acquire, which stands for
  // its control dependency, since C++ knows none.
  enum class Form : std::uint8_t { A, B };
  enum class Barrier : std::uint8_t { None, Acquire, Release, Full, StoreStore };
  enum class Commit : std::uint8_t { AfterBatch, BeforeBatch, AfterEachRecord, AfterEachHeader };
  enum class Space : std::uint8_t { Checked, Unchecked, OneTooMany, AllOfIt };

  Form form = Form::A;
  unsigned records = 2;
  unsigned drains = 2;
  std::vector<unsigned> lengths = {1};  // of the records, in turn

  bool control_dependency = true;                // A, which RC11 does not know
  Barrier before_head_store = Barrier::Release;  // B
  Barrier after_head_load = Barrier::Acquire;    // C
  Barrier before_tail_store = Barrier::Full;     // D
  Commit commit = Commit::AfterBatch;
  Space space = Space::Checked;
  bool modulo_size = false;             // data_head and data_tail are kept modulo the ring's size
  bool fence_before_head_load = false;  // where C is, but on the wrong side
  bool head_read_again = false;         // after C
  bool head_first = false;              // data_head is stored before the record
  // The last record writes more words than its length says, over unread words (K10). Any words may
  // be delivered then, but none past data_head may be read.
  bool oversize = false;
  bool header_read_twice = false;  // once to check a record's length, once to use it
};

Program protocol(const Protocol& options);

// A way to change the protocol.
struct ProtocolFault {
  std::string name;  // in the catalogue of harness/faults
  void (*change)(Protocol&);
  // The check that finds it, with 3 records of 3, 2 and 1 words, and 3 drains; nullptr: none does.
  const char *in_a, *in_b;
};

std::span<const ProtocolFault> protocol_faults();
// nullptr if no fault has that name.
const ProtocolFault* find_protocol_fault(const std::string& name);

}  // namespace perfring::model

#endif  // HARNESS_MODEL_PROGRAMS_PROGRAMS_H_
