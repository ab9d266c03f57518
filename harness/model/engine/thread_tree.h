#ifndef HARNESS_MODEL_ENGINE_THREAD_TREE_H_
#define HARNESS_MODEL_ENGINE_THREAD_TREE_H_

// Every course that one thread of a program can take. Its next steps are a function of the
// values that it has read so far, so its code is run once for each such history and remembered;
// the explorer walks these trees and runs no code of its own.
//
// The code runs on a fiber, which stops at each read. The first value tried lets the fiber go on;
// for another one, the code is run again from its beginning with the values that lead there.

#include <algorithm>
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
  // From one read, or the beginning, to the next, or the end.
  struct Node {
    std::vector<Step> steps;     // the last one reads or ends the thread, unless there is a `jump`
    const Node* jump = nullptr;  // the node after a checkpoint
    std::uint64_t id = 0;        // among this thread's

   private:
    friend class ThreadTree;
    std::vector<std::pair<std::uint64_t, const Node*>> children;
    const Node* parent = nullptr;
    bool answers = false;     // it follows the parent's read, not a checkpoint
    std::uint64_t value = 0;  // that the read returned
  };

  struct Options {
    bool merge = false;              // believe the program's checkpoints
    std::size_t steps_max = 10'000;  // of one run of the thread
    // For memory models in which a thread's later stores may have come first: dependencies are
    // steps, and a thread goes on after a check that fails.
    bool of_machine = false;
  };
  ThreadTree(std::function<void()> code, const Options& options);
  ~ThreadTree();
  ThreadTree(const ThreadTree&) = delete;
  ThreadTree& operator=(const ThreadTree&) = delete;

  const Node& root() const { return *nodes_.front(); }
  // The node that follows if this node's read returns `value`. Throws what the code throws.
  const Node& next(const Node& node, std::uint64_t value);
  std::size_t runs() const { return runs_; }
  // An estimate of the memory that the tree takes.
  std::size_t bytes() const { return nodes_.size() * sizeof(Node) + steps_ * sizeof(Step); }

 private:
  friend class Recorder;
  // File, then line, column and values.
  using Checkpoint = std::pair<std::string, std::vector<std::uint64_t>>;
  // vector's own <=> compares too few bytes on big-endian machines, before GCC 13.3 (its bug
  // 113960).
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
  std::size_t steps_ = 0;  // of all nodes
  std::vector<std::unique_ptr<Node>> nodes_;
  std::map<Checkpoint, const Node*, Lexicographically> checkpoints_;
  std::unique_ptr<class Recorder> recorder_;  // the last run, which waits for an answer
};

// One for each thread of the program, and one for `finally`, if there is one. Throws UsageError for
// too many threads, and for none.
std::vector<std::unique_ptr<ThreadTree>> trees_of(const Program& program,
                                                  const ThreadTree::Options& options);

}  // namespace perfring::model

#endif  // HARNESS_MODEL_ENGINE_THREAD_TREE_H_
