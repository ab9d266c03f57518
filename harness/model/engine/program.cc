// Each access and fence of a program's thread becomes a step of its run.

#include "harness/model/engine/program.h"

#include <utility>

#include "harness/model/engine/recorder.h"

namespace perfring::model {
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

std::uint32_t last_read() {
  return Recorder::here().reads();
}

void control_dependency(std::uint32_t read, Where where) {
  Step control = step(Step::Kind::Control, Order::Relaxed, 0, where);
  control.depends_on = read;
  Recorder::here().depend(std::move(control));
}

void data_dependency(std::uint32_t read) {
  Recorder::here().next_store_depends_on(read);
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

void checkpoint(std::span<const std::uint64_t> values, Where where) {
  Recorder::here().checkpoint(values, where);
}

}  // namespace perfring::model
