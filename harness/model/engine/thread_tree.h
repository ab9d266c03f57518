#ifndef HARNESS_MODEL_ENGINE_THREAD_TREE_H_
#define HARNESS_MODEL_ENGINE_THREAD_TREE_H_

// Every course that one thread of a program can take. A thread's next steps depend only on the
// values that it has read so far, so the tree runs the code once for each history of values and
// remembers the steps. The explorer walks these trees and does not run the code itself.
//
// The code runs on a fiber that stops at each read. The first value tried for a read resumes the
// fiber; for another value, the code runs again from its beginning with the values that lead there.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "harness/model/engine/step.h"

namespace perfring::model {

struct Program;

class ThreadTree {
 public:
  // The steps from one read, or the beginning, to the next read, or the end.
  struct Node {
    std::vector<Step> steps;     // the last one reads or ends the thread, unless `jump` is set
    const Node* jump = nullptr;  // the node after a checkpoint
    std::uint64_t id = 0;        // unique in this thread

   private:
    friend class ThreadTree;
    std::vector<std::pair<std::uint64_t, const Node*>> children;
    const Node* parent = nullptr;
    bool answers = false;     // follows the parent's read, not a checkpoint
    std::uint64_t value = 0;  // returned by the parent's read
  };

  struct Options {
    bool merge = false;              // trust the program's checkpoints
    std::size_t steps_max = 10'000;  // per run of the thread
    // For memory models in which a thread's later stores may take effect first: dependencies are
    // recorded as steps, and a thread continues after a failed check.
    bool of_machine = false;
  };
  ThreadTree(std::function<void()> code, const Options& options);
  ~ThreadTree();
  ThreadTree(const ThreadTree&) = delete;
  ThreadTree& operator=(const ThreadTree&) = delete;

  const Node& root() const { return *nodes_.front(); }
  // Returns the node that follows if this node's read returns `value`. Rethrows the code's
  // exceptions.
  const Node& next(const Node& node, std::uint64_t value);
  std::size_t runs() const { return runs_; }
  // Returns an estimate of the tree's memory.
  std::size_t bytes() const { return nodes_.size() * sizeof(Node) + steps_ * sizeof(Step); }

 private:
  friend class Recorder;
  // The file; then line, column and values.
  using Checkpoint = std::pair<std::string, std::vector<std::uint64_t>>;
  // vector's <=> compares too few bytes on big-endian machines before GCC 13.3 (GCC bug 113960).
  struct Lexicographically {
    bool operator()(const Checkpoint& a, const Checkpoint& b) const {
      if (a.first != b.first) return a.first < b.first;
      return std::ranges::lexicographical_compare(a.second, b.second);
    }
  };
  Node& make_node(const Node* parent, bool answers, std::uint64_t value);
  void run(std::vector<std::uint64_t> history, Node& node);

  const std::function<void()> code_;
  const Options options_;
  std::size_t runs_ = 0;
  std::size_t steps_ = 0;  // in all nodes
  std::vector<std::unique_ptr<Node>> nodes_;
  std::map<Checkpoint, const Node*, Lexicographically> checkpoints_;
  std::unique_ptr<class Recorder> recorder_;  // the last run, if it waits for an answer
};

// Returns one tree for each thread of the program, and one for `finally`, if it is set. Throws
// UsageError for too many threads, and for none.
std::vector<std::unique_ptr<ThreadTree>> trees_of(const Program& program,
                                                  const ThreadTree::Options& options);

}  // namespace perfring::model

#endif  // HARNESS_MODEL_ENGINE_THREAD_TREE_H_
