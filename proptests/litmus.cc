#include "proptests/litmus.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <ostream>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "harness/model/reference/enumerate.h"

namespace perfring::model {

void showValue(const LitmusText& text, std::ostream& out) {
  out << text_json(text);
}

}  // namespace perfring::model

namespace perfring::proptests {
namespace {

using model::LitmusText;
using model::Op;
using Kind = Op::Kind;
using Order = Op::Order;

constexpr std::size_t kAccessesMax = 12;

// An operation that is not yet part of a thread. `choice` selects one of the registers read so far.
struct Gene {
  Kind kind = Kind::Write;
  Order order = Order::Relaxed;
  std::uint16_t location = 0;
  std::uint64_t value = 1;
  unsigned choice = 0;
  unsigned body = 0;  // of an If: how many of the following operations it contains
};

template <class T>
rc::Gen<T> among(std::vector<T> choices) {
  return rc::gen::map(rc::gen::resize(100, rc::gen::inRange<std::size_t>(0, choices.size())),
                      [choices](std::size_t i) { return choices[i]; });
}

rc::Gen<Gene> genes(std::vector<Kind> kinds, std::vector<std::uint16_t> locations) {
  return rc::gen::build<Gene>(
      rc::gen::set(&Gene::kind, among(std::move(kinds))),
      rc::gen::set(&Gene::order, among<Order>({Order::Relaxed, Order::Acquire, Order::Release,
                                               Order::AcquireRelease, Order::SequentiallyConsistent,
                                               Order::StoreStore})),
      rc::gen::set(&Gene::location, among(std::move(locations))),
      rc::gen::set(&Gene::value, among<std::uint64_t>({1, 1, 2, 0})),
      rc::gen::set(&Gene::choice, among<unsigned>({0, 1, 2})),
      rc::gen::set(&Gene::body, among<unsigned>({1, 1, 2, 3})));
}

bool is_access(Kind kind) {
  return kind == Kind::Write || kind == Kind::WriteRegister || kind == Kind::Read ||
         kind == Kind::FetchAdd || kind == Kind::Exchange || kind == Kind::CompareExchange;
}

// Returns the drawn order, or a legal one in its place if C++ does not allow it for this operation.
Order legal(Kind kind, Order order, bool plain) {
  const bool acquires = order == Order::Acquire || order == Order::AcquireRelease ||
                        order == Order::SequentiallyConsistent;
  const bool releases = order == Order::Release || order == Order::AcquireRelease ||
                        order == Order::SequentiallyConsistent;
  switch (kind) {
    case Kind::Write:
      if (plain) return Order::NonAtomic;
      return releases ? Order::Release : Order::Relaxed;
    case Kind::Read:
      if (plain) return Order::NonAtomic;
      return acquires ? Order::Acquire : Order::Relaxed;
    case Kind::Fence:
      return order == Order::Relaxed ? Order::SequentiallyConsistent : order;
    case Kind::FetchAdd:
    case Kind::Exchange:
    case Kind::CompareExchange:
      if (order == Order::SequentiallyConsistent) return Order::AcquireRelease;
      return order == Order::StoreStore ? Order::Relaxed : order;
    default:
      return Order::Relaxed;
  }
}

void use_registers(const std::vector<Op>& ops, std::set<std::string>& used) {
  for (const Op& op : ops) {
    if (!op.reads() && !op.reg.empty()) used.insert(op.reg);
    use_registers(op.body, used);
  }
}

// Builds a thread from genes: names the registers, nests the bodies of branches, and lists at each
// checkpoint the registers that are used after it.
class ThreadMaker {
 public:
  // `plain`: the non-atomic location. `branches_order`: each branch and assumption also orders
  // later stores, by a control dependency.
  ThreadMaker(const std::vector<Gene>& genes, std::uint16_t plain, bool branches_order)
      : genes_{genes}, plain_{plain}, branches_order_{branches_order} {}

  std::vector<Op> make() {
    std::vector<Op> ops = take(genes_.size());
    for (std::size_t i = 0; i < ops.size(); ++i) {
      if (ops[i].kind != Kind::Checkpoint) continue;
      std::set<std::string> used;
      use_registers({ops.begin() + static_cast<std::ptrdiff_t>(i) + 1, ops.end()}, used);
      ops[i].registers.assign(used.begin(), used.end());
    }
    return ops;
  }

 private:
  std::vector<Op> take(std::size_t count) {
    std::vector<Op> ops;
    for (std::size_t i = 0; i < count && next_ < genes_.size(); ++i) {
      const Gene& gene = genes_[next_++];
      const bool uses = gene.kind == Kind::If || gene.kind == Kind::Assume ||
                        gene.kind == Kind::WriteRegister || gene.kind == Kind::Control;
      if (uses && read_.empty()) continue;
      if (gene.kind == Kind::Checkpoint && depth_ != 0) continue;
      Op op;
      op.kind = gene.kind;
      op.line = ++line_;
      op.location = gene.location;
      op.order = legal(gene.kind, gene.order, gene.location == plain_);
      op.value = op.kind == Kind::Write ? std::max<std::uint64_t>(gene.value, 1) : gene.value;
      if (op.kind == Kind::CompareExchange) op.value = 1 + gene.choice % 2;
      op.expected = gene.value;
      op.failure = gene.choice % 2 == 0 ? Order::Relaxed : Order::Acquire;
      if (uses) op.reg = read_[read_.size() - 1 - gene.choice % read_.size()];
      if (branches_order_ && (op.kind == Kind::If || op.kind == Kind::Assume)) {
        Op branch = op;
        branch.kind = Kind::Control;
        ops.push_back(std::move(branch));
        op.line = ++line_;
      }
      if (op.reads()) op.reg = "r" + std::to_string(line_);
      if (op.kind == Kind::If) {
        const std::vector<std::string> read = read_;
        ++depth_;
        op.body = take(gene.body);
        --depth_;
        read_ = read;  // the body may not run: its registers cannot be used after it
      }
      if (op.reads()) read_.push_back(op.reg);
      ops.push_back(std::move(op));
    }
    return ops;
  }

  const std::vector<Gene>& genes_;
  const std::uint16_t plain_;
  const bool branches_order_;
  std::size_t next_ = 0;
  std::uint32_t line_ = 0;
  unsigned depth_ = 0;
  std::vector<std::string> read_;
};

void observe_reads(const std::vector<Op>& ops, std::size_t thread, LitmusText& text) {
  for (const Op& op : ops) {
    if (op.reads()) text.observed.push_back(std::to_string(thread) + ":" + op.reg);
    observe_reads(op.body, thread, text);
  }
}

using Threads = std::vector<std::vector<Gene>>;

struct Shape {
  std::size_t threads = 2;
  std::uint16_t locations = 2;
  bool plain = false;  // the last location is not atomic
  std::uint64_t cost_max = 0;
};

LitmusText text_of(const Threads& threads, const Shape& shape, bool branches_order) {
  constexpr std::uint16_t kNone = 0xff;
  const auto last = static_cast<std::uint16_t>(shape.locations - 1);
  const std::uint16_t not_atomic = shape.plain && shape.locations > 1 ? last : kNone;
  LitmusText text;
  text.name = "random";
  text.unset_register = 99;
  for (std::uint16_t i = 0; i < shape.locations; ++i) {
    text.locations.push_back(std::string{"xyzw"[i]});
    text.observed.push_back(text.locations.back());
  }
  for (const std::vector<Gene>& genes : threads) {
    text.threads.push_back(ThreadMaker{genes, not_atomic, branches_order}.make());
    observe_reads(text.threads.back(), text.threads.size() - 1, text);
  }
  return text;
}

// Drops operations from the end of the longest thread until the program is small enough.
LitmusText within_bounds(Threads threads, const Shape& shape, bool branches_order) {
  for (;;) {
    const LitmusText text = text_of(threads, shape, branches_order);
    std::size_t accesses = 0;
    for (const auto& genes : threads) {
      accesses += static_cast<std::size_t>(
          std::ranges::count_if(genes, [](const Gene& gene) { return is_access(gene.kind); }));
    }
    if (accesses <= kAccessesMax && model::reference::cost(text) <= shape.cost_max) {
      return text;
    }
    std::ranges::max_element(threads, {}, [](const auto& genes) {
      return genes.size();
    })->pop_back();
  }
}

rc::Gen<LitmusText> programs(const std::vector<Kind>& kinds, bool of_machine) {
  const auto shapes = rc::gen::build<Shape>(
      rc::gen::set(&Shape::threads, among<std::size_t>({2, 2, 2, 3, 3, 3, 4})),
      rc::gen::set(&Shape::locations, among<std::uint16_t>({2, 2, 1, 3})),
      rc::gen::set(&Shape::plain, among<bool>({false, !of_machine})),
      rc::gen::set(&Shape::cost_max, among<std::uint64_t>({2000, 20000, 20000, 100000})));
  return rc::gen::mapcat(shapes, [kinds, of_machine](const Shape& shape) {
    std::vector<std::uint16_t> all;
    for (std::uint16_t i = 0; i < shape.locations; ++i) all.push_back(i);
    const auto one = rc::gen::resize(40 / static_cast<int>(shape.threads),
                                     rc::gen::container<std::vector<Gene>>(genes(kinds, all)));
    return rc::gen::map(
        rc::gen::container<Threads>(shape.threads, one),
        [=](const Threads& threads) { return within_bounds(threads, shape, of_machine); });
  });
}

}  // namespace

rc::Gen<LitmusText> litmus_programs() {
  return programs({Kind::Write,      Kind::Read,
                   Kind::Write,      Kind::Read,
                   Kind::Write,      Kind::Read,
                   Kind::Write,      Kind::Read,
                   Kind::Fence,      Kind::Fence,
                   Kind::Fence,      Kind::FetchAdd,
                   Kind::Exchange,   Kind::CompareExchange,
                   Kind::If,         Kind::If,
                   Kind::Assume,     Kind::Checkpoint,
                   Kind::Checkpoint, Kind::WriteRegister},
                  false);
}

rc::Gen<LitmusText> hardware_programs() {
  return programs(
      {Kind::Write, Kind::Read, Kind::Write, Kind::Read, Kind::Write, Kind::Read, Kind::Fence,
       Kind::Fence, Kind::Control, Kind::WriteRegister, Kind::If, Kind::Assume},
      true);
}

}  // namespace perfring::proptests
