#ifndef HARNESS_MODEL_ENGINE_EXECUTION_H_
#define HARNESS_MODEL_ENGINE_EXECUTION_H_

// An execution graph, complete or growing: events with program order, reads-from and modification
// order, and what each thread knows. It grows by one event at a time, each added after everything
// on which it depends; rc11.cc says where an event may go.

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

// splitmix64's finisher, for the keys of graphs and states.
constexpr std::uint64_t mix(std::uint64_t x) {
  x ^= x >> 30;
  x *= 0xbf58'476d'1ce4'e5b9;
  x ^= x >> 27;
  x *= 0x94d0'49bb'1331'11eb;
  return x ^ x >> 31;
}

// A vector clock: of each thread, how many of its events happened before. `writes` may run ahead of
// `events`, as smp_wmb() orders stores only.
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
  Clock clock;                                    // of its thread, itself included
  Clock released;                                 // acquired by its readers
  std::array<std::uint16_t, kThreads> readers{};  // the first event in each thread that reads it

  bool is_initial() const { return step == nullptr; }
};

struct Thread {
  const ThreadTree::Node* node = nullptr;
  std::size_t step = 0;  // of the node's
  std::uint16_t events = 0;
  Clock known;
  Clock acquirable;  // added by its next acquire fence
  Clock released;    // passed on by its relaxed stores: `known` at its last release fence

  bool is_finally = false;  // it starts when the others have ended, and knows all that they know

  const Step& next() const { return node->steps[step]; }
  bool blocked() const { return next().kind == Step::Kind::Block; }
  bool ended() const { return next().kind == Step::Kind::End || blocked(); }
  void advance() {
    ++step;
    jump();
  }
  // From a node that ends with a checkpoint to the node that the checkpoint leads to.
  void jump() {
    while (step == node->steps.size() && node->jump != nullptr) {
      node = node->jump;
      step = 0;
    }
  }
};

// 128 bits that identify a graph: a sum over its facts (which event reads from which, which comes
// after which in modification order), so that their order does not matter.
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

  // The key that the graph will have once the thread has read from `from` and gone on through
  // `node` to its next read. nullopt where it cannot be computed without growing the graph.
  std::optional<GraphKey> key_after_read(std::size_t thread, EventId from,
                                         const ThreadTree::Node& node) const;

  // Each adds a thread's next event. The caller advances the thread.
  void fence(std::size_t thread);
  EventId write(std::size_t thread, EventId after);
  // Returns the value read. An update writes right after what it reads.
  std::uint64_t read(std::size_t thread, EventId from);
};

}  // namespace perfring::model

#endif  // HARNESS_MODEL_ENGINE_EXECUTION_H_
