#include "harness/model/thread_tree.h"

#include <boost/context/fiber.hpp>
#include <boost/context/fixedsize_stack.hpp>
#include <exception>
#include <memory>
#include <string>
#include <utility>

#include "harness/model/program.h"

namespace perfring::model {
namespace fibers = boost::context;

// One run of a thread's code.
class Recorder {
 public:
  static constexpr std::size_t kStackBytes = 256 * 1024;

  // Answers the first reads with `history`, and then records into `node`.
  Recorder(ThreadTree& tree, std::vector<std::uint64_t> history, ThreadTree::Node& node)
      : tree_{tree}, history_{std::move(history)}, node_{&node} {
    fiber_ = fibers::fiber{std::allocator_arg, fibers::fixedsize_stack{kStackBytes},
                           [this](fibers::fiber&& explorer) { return main(std::move(explorer)); }};
  }
  ~Recorder() {
    recording_ = false;
    if (fiber_) resume();
  }
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  bool waits_at(const ThreadTree::Node& node) const { return recording_ && node_ == &node; }
  void answer(std::uint64_t value, ThreadTree::Node& node) {
    answer_ = value;
    node_ = &node;
  }

  // Goes on to the next read, or the end.
  void resume() {
    Recorder* const outer = std::exchange(current, this);
    fiber_ = std::move(fiber_).resume();
    current = outer;
  }
  void rethrow() {
    if (error_ != nullptr) std::rethrow_exception(std::exchange(error_, nullptr));
  }

  std::uint64_t read(Step step) {
    if (!recording_) return read_nothing();
    if (answered_ < history_.size()) return history_[answered_++];
    record(std::move(step));
    explorer_ = std::move(explorer_).resume();
    return recording_ ? answer_ : read_nothing();
  }

  void record(Step step) {
    if (!recording_ || answered_ < history_.size()) return;
    if (++steps_ > tree_.steps_max_) {
      throw UsageError{"a thread takes more than " + std::to_string(tree_.steps_max_) +
                       " steps: bound its loops, or raise the limit"};
    }
    node_->steps.push_back(std::move(step));
    ++tree_.steps_;
  }

  // As the last step.
  void stop_with(Step step) {
    if (answered_ < history_.size()) return;
    record(std::move(step));
    recording_ = false;
  }

  void checkpoint(std::initializer_list<std::uint64_t> values, Where where) {
    if (!tree_.merge_ || !recording_ || answered_ < history_.size()) return;
    std::vector<std::uint64_t> key{where.line};
    key.insert(key.end(), values);
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

  static Recorder& here() {
    if (current == nullptr) throw UsageError{"a Var is used outside the threads of a program"};
    return *current;
  }

 private:
  fibers::fiber main(fibers::fiber&& explorer) {
    explorer_ = std::move(explorer);
    try {
      tree_.code_();
      record(Step{});
    } catch (const fibers::detail::forced_unwind&) {  // boost's own
      throw;
    } catch (const Abandoned&) {
    } catch (...) {
      if (recording_) error_ = std::current_exception();
    }
    recording_ = false;
    return std::move(explorer_);
  }

  // What the code would still do when nobody looks any more. It goes on with zeros, which for most
  // code is the way to its end; an exception might not get through what is noexcept.
  std::uint64_t read_nothing() {
    constexpr unsigned kPatience = 64;
    if (++ignored_ > kPatience) throw Abandoned{};
    return 0;
  }

  struct Abandoned {};

  static thread_local Recorder* current;

  ThreadTree& tree_;
  const std::vector<std::uint64_t> history_;
  std::size_t answered_ = 0;
  std::size_t steps_ = 0;
  unsigned ignored_ = 0;  // reads
  ThreadTree::Node* node_;
  bool recording_ = true;
  std::uint64_t answer_ = 0;
  std::exception_ptr error_;
  fibers::fiber fiber_;
  fibers::fiber explorer_;
};

thread_local Recorder* Recorder::current = nullptr;

ThreadTree::ThreadTree(std::function<void()> code, bool merge, std::size_t steps_max)
    : code_{std::move(code)}, merge_{merge}, steps_max_{steps_max} {
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

namespace {

Order order_of(std::memory_order order, bool fence = false) {
  switch (order) {
    case std::memory_order_relaxed:
      return Order::Relaxed;
    case std::memory_order_consume:
    case std::memory_order_acquire:
      return Order::Acquire;
    case std::memory_order_release:
      return Order::Release;
    case std::memory_order_acq_rel:
      return Order::AcquireRelease;
    case std::memory_order_seq_cst:
      break;
  }
  if (fence) return Order::SequentiallyConsistent;
  throw UsageError{
      "a sequentially consistent access is not supported: use a weaker one and "
      "sequentially consistent fences"};
}

Step step(Step::Kind kind, Order order, std::uint16_t location, Where where,
          std::uint64_t value = 0) {
  if (kind == Step::Kind::Read && releases(order)) throw UsageError{"a load does not release"};
  if (kind == Step::Kind::Write && acquires(order)) throw UsageError{"a store does not acquire"};
  Step step;
  step.kind = kind;
  step.order = order;
  step.location = location;
  step.where = where;
  step.value = value;
  return step;
}

}  // namespace

std::uint64_t Var::load(std::memory_order order, Where where) const {
  return Recorder::here().read(step(Step::Kind::Read, order_of(order), location_, where));
}

void Var::store(std::uint64_t value, std::memory_order order, Where where) const {
  Recorder::here().record(step(Step::Kind::Write, order_of(order), location_, where, value));
}

std::uint64_t Var::fetch_add(std::uint64_t operand, std::memory_order order, Where where) const {
  return Recorder::here().read(
      step(Step::Kind::Update, order_of(order), location_, where, operand));
}

std::uint64_t Var::exchange(std::uint64_t value, std::memory_order order, Where where) const {
  Step exchange = step(Step::Kind::Update, order_of(order), location_, where, value);
  exchange.update = Step::Update::Exchange;
  return Recorder::here().read(std::move(exchange));
}

std::uint64_t Var::compare_exchange(std::uint64_t expected, std::uint64_t desired,
                                    std::memory_order success, std::memory_order failure,
                                    Where where) const {
  Step exchange = step(Step::Kind::Update, order_of(success), location_, where, desired);
  exchange.update = Step::Update::CompareExchange;
  exchange.expected = expected;
  exchange.failure = step(Step::Kind::Read, order_of(failure), location_, where).order;
  return Recorder::here().read(std::move(exchange));
}

std::uint64_t Var::read(Where where) const {
  return Recorder::here().read(step(Step::Kind::Read, Order::NonAtomic, location_, where));
}

void Var::write(std::uint64_t value, Where where) const {
  Recorder::here().record(step(Step::Kind::Write, Order::NonAtomic, location_, where, value));
}

void fence(std::memory_order order, Where where) {
  Recorder::here().record(step(Step::Kind::Fence, order_of(order, true), 0, where));
}

void fence_store_store(Where where) {
  Recorder::here().record(step(Step::Kind::Fence, Order::StoreStore, 0, where));
}

void check(bool holds, const std::string& message, Where where) {
  if (holds) return;
  Step fail = step(Step::Kind::Fail, Order::Relaxed, 0, where);
  fail.message = message;
  Recorder::here().stop_with(std::move(fail));
}

void assume(bool holds, Where where) {
  if (!holds) Recorder::here().stop_with(step(Step::Kind::Block, Order::Relaxed, 0, where));
}

void checkpoint(std::initializer_list<std::uint64_t> values, Where where) {
  Recorder::here().checkpoint(values, where);
}

}  // namespace perfring::model
