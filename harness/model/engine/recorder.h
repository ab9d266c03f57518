#ifndef HARNESS_MODEL_ENGINE_RECORDER_H_
#define HARNESS_MODEL_ENGINE_RECORDER_H_

// One run of a thread's code, on a fiber: program.cc records its steps here, and thread_tree.cc
// answers its reads. No other file uses it.

#include <cstddef>
#include <cstdint>
#include <exception>
#include <span>
#include <vector>

#include "harness/model/engine/step.h"
#include "harness/model/engine/thread_tree.h"
#include "harness/program/fiber.h"

namespace perfring::model {

class Recorder {
 public:
  // Answers the first reads with `history`, and then records into `node`.
  Recorder(ThreadTree& tree, std::vector<std::uint64_t> history, ThreadTree::Node& node);
  ~Recorder();
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  // Returns the recorder of the current run. Throws UsageError outside a program's threads.
  static Recorder& here();

  // Called by ThreadTree.
  bool is_waiting_at(const ThreadTree::Node& node) const { return recording_ && node_ == &node; }
  void answer(std::uint64_t value, ThreadTree::Node& node);
  // Runs the code until its next read, or its end.
  void resume();
  void rethrow();

  // Called by the thread's code. read() returns the answer to the read.
  std::uint64_t read(Step step);
  void record(Step step);
  // Records a Fail or a Block, and ends the recording; on a machine, a Fail does not end it.
  void stop_with(Step step);
  void checkpoint(std::span<const std::uint64_t> values, Where where);
  std::uint32_t reads() const { return reads_; }
  void depend(Step control);
  void next_store_depends_on(std::uint32_t read) { data_from_ = read; }

 private:
  struct Abandoned {};

  void run();
  std::uint64_t read_unrecorded();

  static thread_local Recorder* current;

  ThreadTree& tree_;
  const std::vector<std::uint64_t> history_;
  std::size_t answered_ = 0;
  std::size_t steps_ = 0;
  unsigned unrecorded_ = 0;  // reads after the recording ended
  std::uint32_t reads_ = 0;
  std::uint32_t data_from_ = 0;
  ThreadTree::Node* node_;
  bool recording_ = true;
  std::uint64_t answer_ = 0;
  std::exception_ptr error_;
  Fiber fiber_{[this] { run(); }};
};

}  // namespace perfring::model

#endif  // HARNESS_MODEL_ENGINE_RECORDER_H_
