#ifndef HARNESS_MODEL_ENGINE_EXECUTION_H_
#define HARNESS_MODEL_ENGINE_EXECUTION_H_

// An execution graph, complete or growing: events with program order, reads-from and modification
// order, and what each thread knows. It grows one event at a time, after everything that it depends
// on; rc11.cc says where an event may go.

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "harness/model/engine/program.h"
#include "harness/model/engine/step.h"
#include "harness/model/engine/thread_tree.h"

namespace perfring::model {

using EventId = std::uint16_t;
inline constexpr EventId kNone = 0xffff;

// Program::finally is a thread, too.
inline constexpr std::size_t kThreads = Program::kThreadsMax + 1;

// What happened before: of each thread, its events up to a number. Its writes may be known further
// than the rest, since smp_wmb() orders nothing else.
struct Clock {
  std::array<std::uint16_t, kThreads> events{};
  std::array<std::uint16_t, kThreads> writes{};

  void join(const Clock& other) {
    for (std::size_t i = 0; i < kThreads; ++i) {
      if (events[i] < other.events[i]) events[i] = other.events[i];
      if (writes[i] < other.writes[i]) writes[i] = other.writes[i];
    }
  }
};

struct Event {
  const Step* step = nullptr;  // none: a location's initial value
  std::uint16_t index = 0;     // in its thread, from 1 on
  std::uint8_t thread = 0;
  bool writes = false;
  std::uint16_t location = 0;
  Order order = Order::Relaxed;
  EventId reads_from = kNone;
  EventId earlier = kNone;  // modification order
  EventId later = kNone;
  std::uint64_t read = 0;
  std::uint64_t written = 0;
  Clock clock;                                    // what its thread knows then, itself included
  Clock released;                                 // what a reader acquires from it
  std::array<std::uint16_t, kThreads> readers{};  // the first event in each thread that reads it

  bool is_initial() const { return step == nullptr; }
  bool is_update() const { return writes && reads_from != kNone; }
};

struct Thread {
  const ThreadTree::Node* node = nullptr;
  std::size_t step = 0;  // of the node's
  std::uint16_t events = 0;
  Clock known;       // cur
  Clock acquirable;  // what an acquire fence would add
  Clock released;    // what a relaxed store passes on: known at the last release fence

  bool is_finally = false;  // it starts when the others have ended, and knows all that they know

  const Step& next() const { return node->steps[step]; }
  bool ended() const { return next().kind == Step::Kind::End; }
};

// 128 bits that tell graphs apart: a sum over their facts (who reads from whom, who comes after
// whom in modification order), so that it does not matter in which order they came about.
struct GraphKey {
  std::uint64_t low = 0;
  std::uint64_t high = 0;

  friend bool operator==(const GraphKey&, const GraphKey&) = default;
};

struct Race {
  EventId first = kNone;
  EventId second = kNone;
};

class Execution {
 public:
  Execution(const std::vector<Location>& locations, std::size_t threads);
  Execution(const Execution& other);
  Execution(Execution&&) = default;
  Execution& operator=(const Execution&) = delete;
  Execution& operator=(Execution&&) = default;

  std::vector<Event> events;    // the first ones are the locations' initial values
  std::vector<EventId> latest;  // of each location, in modification order
  std::vector<Thread> threads;
  Race race;  // the first one met
  GraphKey key;
  // With accesses that are not atomic: a bit for each location, modulo 64.
  std::uint64_t plain_locations = 0;
  std::uint8_t sc_threads = 0;  // those with sequentially consistent fences, a bit each

  bool knows(const Clock& clock, EventId write) const {
    const Event& event = events[write];
    if (event.is_initial() || clock.writes[event.thread] >= event.index) return true;
    for (std::size_t i = 0; i < kThreads; ++i) {
      if (event.readers[i] != 0 && clock.events[i] >= event.readers[i]) return true;
    }
    return false;
  }

  // The key once the thread has read this and gone on with `node` to its next read, where that can
  // be told without doing it.
  std::optional<GraphKey> key_after_read(std::size_t thread, EventId from,
                                         const ThreadTree::Node& node) const;

  // The next event of a thread; its step stays where it is.
  void fence(std::size_t thread);
  EventId write(std::size_t thread, EventId after);
  // Returns the value read. An update writes right after what it reads.
  std::uint64_t read(std::size_t thread, EventId from);
};

}  // namespace perfring::model

#endif  // HARNESS_MODEL_ENGINE_EXECUTION_H_
