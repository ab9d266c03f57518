#include "harness/model/engine/thread_tree.h"

#include <exception>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "harness/model/engine/program.h"
#include "harness/model/engine/recorder.h"
#include "harness/model/engine/usage_error.h"

namespace perfring::model {

ThreadTree::ThreadTree(std::function<void()> code, const Options& options)
    : code_{std::move(code)}, options_{options} {
  run({}, make_node(nullptr, false, 0));
}

ThreadTree::~ThreadTree() = default;

ThreadTree::Node& ThreadTree::make_node(const Node* parent, bool answers, std::uint64_t value) {
  auto& node = *nodes_.emplace_back(std::make_unique<Node>());
  node.id = nodes_.size();
  node.parent = parent;
  node.answers = answers;
  node.value = value;
  return node;
}

void ThreadTree::run(std::vector<std::uint64_t> history, Node& node) {
  recorder_ = nullptr;
  recorder_ = std::make_unique<Recorder>(*this, std::move(history), node);
  ++runs_;
  recorder_->resume();
  recorder_->rethrow();
}

const ThreadTree::Node& ThreadTree::next(const Node& node, std::uint64_t value) {
  for (const auto& [answer, child] : node.children) {
    if (answer == value) return *child;
  }
  Node& child = make_node(&node, true, value);
  const_cast<Node&>(node).children.emplace_back(value, &child);
  if (recorder_->is_waiting_at(node)) {
    recorder_->answer(value, child);
    recorder_->resume();
    recorder_->rethrow();
    return child;
  }
  std::vector<std::uint64_t> history;
  for (const Node* at = &child; at != nullptr; at = at->parent) {
    if (at->answers) history.push_back(at->value);
  }
  run({history.rbegin(), history.rend()}, child);
  return child;
}

std::vector<std::unique_ptr<ThreadTree>> trees_of(const Program& program,
                                                  const ThreadTree::Options& options) {
  if (program.threads.empty() || program.threads.size() > Program::kThreadsMax) {
    throw UsageError{"a program has 1 to " + std::to_string(Program::kThreadsMax) + " threads"};
  }
  std::vector<std::unique_ptr<ThreadTree>> trees;
  for (const auto& code : program.threads) {
    trees.push_back(std::make_unique<ThreadTree>(code, options));
  }
  if (program.finally) trees.push_back(std::make_unique<ThreadTree>(program.finally, options));
  return trees;
}

thread_local Recorder* Recorder::current = nullptr;

Recorder::Recorder(ThreadTree& tree, std::vector<std::uint64_t> history, ThreadTree::Node& node)
    : tree_{tree}, history_{std::move(history)}, node_{&node} {}

Recorder::~Recorder() {
  recording_ = false;
  if (fiber_.suspended()) resume();
}

Recorder& Recorder::here() {
  if (current == nullptr) throw UsageError{"a Var is used outside the threads of a program"};
  return *current;
}

void Recorder::answer(std::uint64_t value, ThreadTree::Node& node) {
  answer_ = value;
  node_ = &node;
}

void Recorder::resume() {
  struct Running {
    ~Running() { current = outer; }
    Recorder* const outer;
  };
  const Running running{std::exchange(current, this)};
  fiber_.resume();
}

void Recorder::rethrow() {
  if (error_ != nullptr) std::rethrow_exception(std::exchange(error_, nullptr));
}

std::uint64_t Recorder::read(Step step) {
  ++reads_;
  if (!recording_) return read_unrecorded();
  if (answered_ < history_.size()) return history_[answered_++];
  record(std::move(step));
  fiber_.suspend();
  return recording_ ? answer_ : read_unrecorded();
}

void Recorder::depend(Step control) {
  if (tree_.options_.of_machine) record(std::move(control));
}

void Recorder::record(Step step) {
  if (step.kind == Step::Kind::Write) step.depends_on = std::exchange(data_from_, 0);
  if (!recording_ || answered_ < history_.size()) return;
  if (++steps_ > tree_.options_.steps_max) {
    throw UsageError{"a thread takes more than " + std::to_string(tree_.options_.steps_max) +
                     " steps: bound its loops, or raise the limit"};
  }
  node_->steps.push_back(std::move(step));
  ++tree_.steps_;
}

void Recorder::stop_with(Step step) {
  if (answered_ < history_.size()) return;
  const bool continues = tree_.options_.of_machine && step.kind == Step::Kind::Fail;
  record(std::move(step));
  recording_ = recording_ && continues;
}

void Recorder::checkpoint(std::span<const std::uint64_t> values, Where where) {
  if (!tree_.options_.merge || !recording_ || answered_ < history_.size()) return;
  ThreadTree::Checkpoint key{where.file, {where.line, where.column}};
  key.second.insert(key.second.end(), values.begin(), values.end());
  const auto [found, added] = tree_.checkpoints_.try_emplace(std::move(key), nullptr);
  if (added) {
    ThreadTree::Node& after = tree_.make_node(node_, false, 0);
    found->second = node_->jump = &after;
    node_ = &after;
  } else {
    node_->jump = found->second;
    recording_ = false;
  }
}

void Recorder::run() {
  try {
    tree_.code_();
    record(Step{});
  } catch (const Abandoned&) {
  } catch (...) {
    if (recording_) error_ = std::current_exception();
  }
  recording_ = false;
}

// Answers the reads of a run that is no longer recorded. Zeros take most code to its end. An
// exception cannot pass through noexcept code, so it is thrown only if the code loops on zeros.
std::uint64_t Recorder::read_unrecorded() {
  constexpr unsigned kReadsMax = 64;
  if (++unrecorded_ > kReadsMax) throw Abandoned{};
  return 0;
}

}  // namespace perfring::model
