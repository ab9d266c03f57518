#include "harness/rig/script_run.h"

#include <fmt/format.h>
#include <linux/perf_event.h>

#include <algorithm>

#include "harness/kernel/perf_event.h"
#include "harness/oracle/payload.h"
#include "perfring/control_flow.h"
#include "perfring/perf_event.h"
#include "perfring/ring/memory.h"

namespace perfring::rig {

using oracle::Invariant;
using script::Action;
using script::Step;

namespace {

SimulatedKernel kernel_of(const script::Settings& settings, std::span<std::byte> memory) {
  return memory.empty() ? SimulatedKernel{settings} : SimulatedKernel{settings, memory};
}

}  // namespace

ScriptRun::ScriptRun(const script::Settings& settings, std::span<std::byte> memory)
    : kernel_{kernel_of(settings, memory)},
      ledger_{ring().rb().data_size(), oracle::Ledger::Keep::Records, settings.start,
              settings.word == kernel::Word::k32 ? 32U : 64U},
      checker_{ring().page(), ring().data(), ledger_} {
  ledger_.note_publication(settings.start);  // from here on, a reservation alone does not publish
}

std::int64_t ScriptRun::run(std::span<const Step> steps) {
  std::int64_t result = 0;
  while (!steps.empty() && !stopped()) {
    const auto first = script::first_with_nested(steps);
    result = perform(first);
    steps = steps.subspan(first.size());
  }
  return result;
}

void ScriptRun::note(Step step) {
  if (step.action == Action::Poll && on_poll) return;
  if (active_steps_.depth() != 0 && step.depth == 0) {  // from on_poll: replaces the poll
    step.depth = active_steps_.innermost().depth;
    step.at = active_steps_.innermost().at;
  }
  steps_so_far_.push_back(step);
}

std::int64_t ScriptRun::perform(std::span<const Step> step_and_nested) {
  note(step_and_nested.front());
  if (active_steps_.depth() == 0) interrupted_ = false;
  active_steps_.begin(step_and_nested);
  const std::int64_t result = act(step_and_nested.front());
  active_steps_.perform_rest([this](bool at_a_moment, auto due) { run_nested(at_a_moment, due); });
  active_steps_.end();
  return result;
}

void ScriptRun::run_nested(bool at_a_moment, std::span<const Step> step_and_nested) {
  if (stopped()) return;
  if (step_and_nested.front().action == Action::Die) {
    note(step_and_nested.front());
    dead_ = true;
    if (at_a_moment) throw Died{};
    return;
  }
  interrupted_ = true;
  ledger_.note_interruption();
  perform(step_and_nested);
}

void ScriptRun::on_moment() {
  active_steps_.pass_moment([this](bool at_a_moment, auto due) { run_nested(at_a_moment, due); });
}

std::int64_t ScriptRun::act(const Step& step) {
  switch (step.action) {
    case Action::Output:
      return output(step);
    case Action::Drain:
    case Action::Throw:
      return drain(step);
    case Action::Poll:
      return poll(step);
    case Action::Epoll:
    case Action::Rearm:
      announced_.reset();
      return kernel_.call(step);
    default:
      return kernel_.call(step);
  }
}

std::int64_t ScriptRun::output(const Step& step) {
  if (dead_) return 0;
  const auto length = static_cast<std::uint32_t>(step.number);
  std::vector<std::byte>& buffer = payloads_[active_steps_.depth() - 1];
  if (buffer.size() < length) buffer.resize(length);
  const auto bytes = std::span{buffer}.first(length);
  const oracle::Payload payload{sequence_++, 0, length};
  oracle::fill(bytes, payload);
  if (oracle::record_size(length) > 65535) oversize_ = true;
  ledger_.begin_attempt(payload);
  int rc = 0;
  try {
    rc = emit(ring().index(step.second), bytes);
  } catch (const Died&) {
    return 0;  // the output is never finished
  }
  ledger_.end_attempt(rc);
  expect_announced(rc);
  return rc;
}

// With wakeup_events = 1 the kernel announces each record (K30). An output in an interrupt leaves
// the announcement to the interrupted output, which announces even if it is refused itself. In
// between, a poll may have cleared the flag.
void ScriptRun::expect_announced(int rc) {
  if (announced_ == true) return;
  const bool alone = active_steps_.depth() == 1 && !interrupted_;
  const bool each = ring().settings().wakeup == 1 && !ring().settings().watermark;
  if (!alone) {
    announced_.reset();
  } else if (rc == 0) {
    announced_ = each ? std::optional{true} : std::nullopt;
  }
}

std::int64_t ScriptRun::drain(const Step& step) {
  if (checker_.in_drain() || step.number == 0) return 0;
  std::uint64_t events = 0;
  bool over = false;
  const ObserverScope observing{*this};
  checker_.begin_drain();
  try {
    try_fold([&](Unit, const PerfEvent& event) -> ControlFlow<> {
      if (over) violate(Invariant::once, "an event was delivered after the drain's last");
      deliver(event);
      over = ++events == step.number || stopped();
      if (!over) return Continue{};
      if (step.action == Action::Throw && !stopped()) throw Thrown{};
      return Break{};
    });
  } catch (const Thrown&) {
  }
  checker_.end_drain();
  return static_cast<std::int64_t>(events);
}

void ScriptRun::deliver(const PerfEvent& event) {
  checker_.check_delivery(event);
  if (stopped()) return;
  if (on_event) on_event(event);
  on_moment();
  checker_.check_finished(event);
}

std::int64_t ScriptRun::poll(const Step& step) {
  if (on_poll) {
    on_poll();
    return 0;
  }
  const std::int64_t revents = kernel_.call(step);
  const bool in = revents != 0;
  const bool output_under_way = ledger_.in_progress() != 0;  // it may have announced its record
  if (!output_under_way && announced_ && in != *announced_) {
    violate(Invariant::awake, in ? "poll reported POLLIN, but no record was announced"
                                 : "poll reported nothing, but a record was announced");
  }
  announced_ = false;
  return revents;
}

void ScriptRun::settle() {
  for (int drains = 0; readable() && !stopped(); ++drains) {
    if (drains == 2) violate(Invariant::bounded, "two drains of an idle ring did not empty it");
    run(Step{.action = Action::Drain, .number = kWholeRing});
  }
  if (!dead_) return checker_.settle();
  const std::uint64_t next = ledger_.empty() ? ledger_.position() : ledger_.front().position;
  if (!oversize_ && next != ledger_.published()) {
    violate(Invariant::no_loss, fmt::format("the next record is at {}, but data_head is {}", next,
                                            ledger_.published()));
  }
}

void ScriptRun::note_publication(std::uint64_t data_head) {
  if (data_head % 8 == 0) return;
  violate(Invariant::no_invention, fmt::format("data_head {:#x} was published", data_head));
}

void ScriptRun::on_commit(SharedPosition data_tail) {
  if (data_tail % 8 == 0) return;
  violate(Invariant::tail_honest, fmt::format("data_tail {:#x} was committed", data_tail));
}

void ScriptRun::on_read(const std::byte* address, std::size_t size) {
  if (address != reinterpret_cast<const std::byte*>(&ring().page().data_tail)) {
    checker_.check_read(address, size);
  }
}

}  // namespace perfring::rig
