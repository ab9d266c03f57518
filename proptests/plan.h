#ifndef PROPTESTS_PLAN_H_
#define PROPTESTS_PLAN_H_

// What RapidCheck generates, shrinks and prints: a ring's settings, and what happens to it, in
// order. A plan says everything about a run, so that the same plan is the same run.

#include <rapidcheck.h>

#include <cstdint>
#include <iosfwd>
#include <optional>
#include <vector>

#include "harness/kernel/perf_event.h"

namespace perfring::proptests {

struct Settings {
  unsigned pages = 1;  // of data
  kernel::Word word = kernel::Word::k64;
  std::uint64_t start = 0;  // of both positions: a multiple of 8
  // As in perf_event_attr: wakeup_events or, if there is one, the watermark.
  std::uint32_t wakeup_events = 1;
  std::optional<std::uint32_t> wakeup_watermark;

  std::size_t size() const { return std::size_t{pages} * 4096; }
};

// One thing that the producer or the consumer does. What is nested happens in its midst: at a step
// of an output (between two of its memory accesses: what an interrupt does, or a consumer on
// another CPU), or while the callback has an event of a drain. What finds no such step or event
// happens right after it.
struct Action {
  enum class Kind : std::uint8_t { Output, Drain, Break, Throw, Pause, Resume, Consume };

  // Consume: whatever the consumer does next, where it is not the plan that says so.
  Kind kind = Kind::Output;
  std::uint32_t number = 0;  // Output: bytes of payload. Break, Throw: at this event, from 1 on
  unsigned times = 1;
  unsigned at = 0;  // nested: in which step or event, from 0 on
  std::vector<Action> nested{};
};

struct Plan {
  Settings settings;
  std::vector<Action> actions;
};

std::ostream& operator<<(std::ostream& out, const Settings& settings);
std::ostream& operator<<(std::ostream& out, const Action& action);
std::ostream& operator<<(std::ostream& out, const Plan& plan);

// One of these; it shrinks towards the first.
template <class T>
rc::Gen<T> one_of(std::vector<T> choices) {
  const auto all = rc::gen::resize(100, rc::gen::inRange<std::size_t>(0, choices.size()));
  return rc::gen::map(all, [choices](std::size_t i) { return choices[i]; });
}

// Multiples of 8, near 0, 2^32, 2^63 and 2^64 or anywhere.
rc::Gen<std::uint64_t> positions();

// Rings of 1, 2 or 4 pages, kernels of both words, any start; wakeups as PerfBuffer asks for them.
rc::Gen<Settings> settings();

// Bytes of payload: few, those around a page, and up to 4 pages of them.
rc::Gen<std::uint32_t> lengths();

// Of payloads that the u16 of header.size cannot hold, at every remainder.
rc::Gen<std::uint32_t> oversize_lengths();

// What the actions of a plan may be. Each kind is as likely as it is often named.
struct Mix {
  std::vector<Action::Kind> kinds;
  unsigned nesting = 0;  // how deep
  rc::Gen<std::uint32_t> payloads = lengths();
};

rc::Gen<std::vector<Action>> actions(const Mix& mix);
rc::Gen<Plan> plans(const Mix& mix, const rc::Gen<Settings>& of = settings());

// Everything at once: outputs, drains of every kind, pauses, nested in each other.
Mix everything();

}  // namespace perfring::proptests

#endif  // PROPTESTS_PLAN_H_
