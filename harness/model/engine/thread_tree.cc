#include "harness/model/engine/thread_tree.h"

#include <utility>

#include "harness/model/engine/recorder.h"

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
  if (recorder_->waits_at(node)) {
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

}  // namespace perfring::model
