#ifndef HARNESS_MODEL_ENGINE_EXECUTION_H_
#define HARNESS_MODEL_ENGINE_EXECUTION_H_

// An execution graph, complete or growing: events with program order, reads-from and modification
// order, and each thread's knowledge of the other threads' events. The graph grows by one event at
// a time, added after every event that it depends on; rc11.cc decides where an event may go.

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

// Program::finally counts as a thread.
inline constexpr std::size_t kThreads = Program::kThreadsMax + 1;

// splitmix64's finalizer, for the keys of graphs and states.
constexpr std::uint64_t mix(std::uint64_t x) {
  x ^= x >> 30;
  x *= 0xbf58'476d'1ce4'e5b9;
  x ^= x >> 27;
  x *= 0x94d0'49bb'1331'11eb;
  return x ^ x >> 31;
}

// A vector clock: the number of events of each thread that happened before. `writes` may be ahead
// of `events`, because smp_wmb() orders stores only.
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
  const Step* step = nullptr;  // nullptr: a location's initial value
  std::uint16_t index = 0;     // in its thread, counted from 1
  std::uint8_t thread = 0;
  bool writes = false;
  std::uint16_t location = 0;
  Order order = Order::Relaxed;
  EventId reads_from = kNone;
  EventId earlier = kNone;  // modification order
  EventId later = kNone;
  std::uint64_t read = 0;
  std::uint64_t written = 0;
  Clock clock;                                    // its thread's, with this event
  Clock released;                                 // acquired by its readers
  std::array<std::uint16_t, kThreads> readers{};  // each thread's first event that reads it

  bool is_initial() const { return step == nullptr; }
};

struct Thread {
  const ThreadTree::Node* node = nullptr;
  std::size_t step = 0;  // an index into node->steps
  std::uint16_t events = 0;
  Clock known;
  Clock acquirable;  // joins `known` at the next acquire fence
  Clock released;    // `known` at the last release fence; relaxed stores pass it on

  bool is_finally = false;  // runs after the other threads, and knows all that they know

  const Step& next() const { return node->steps[step]; }
  bool blocked() const { return next().kind == Step::Kind::Block; }
  bool ended() const { return next().kind == Step::Kind::End || blocked(); }
  void advance() {
    ++step;
    jump();
  }
  // Moves from a node that ends with a checkpoint to the node that the checkpoint leads to.
  void jump() {
    while (step == node->steps.size() && node->jump != nullptr) {
      node = node->jump;
      step = 0;
    }
  }
};

// 128 bits that identify a graph: a sum over its facts (the pairs of reads-from and of modification
// order), which does not depend on the order in which the facts were added.
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

  std::vector<Event> events;    // begin with the locations' initial values
  std::vector<EventId> latest;  // each location's last write in modification order
  std::vector<Thread> threads;
  Race race;  // the first one found
  GraphKey key;
  // Locations with non-atomic accesses: one bit per location, modulo 64.
  std::uint64_t plain_locations = 0;
  std::uint8_t sc_threads = 0;  // threads with sequentially consistent fences, one bit each

  bool knows(const Clock& clock, EventId write) const {
    const Event& event = events[write];
    if (event.is_initial() || clock.writes[event.thread] >= event.index) return true;
    for (std::size_t i = 0; i < kThreads; ++i) {
      if (event.readers[i] != 0 && clock.events[i] >= event.readers[i]) return true;
    }
    return false;
  }

  // Returns the key that the graph will have after the thread has read from `from` and run through
  // `node` to its next read, or nullopt if the key cannot be computed without growing the graph.
  std::optional<GraphKey> key_after_read(std::size_t thread, EventId from,
                                         const ThreadTree::Node& node) const;

  // fence(), write() and read() add the thread's next event. The caller advances the thread.
  void fence(std::size_t thread);
  EventId write(std::size_t thread, EventId after);
  // Returns the value read. An update's write directly follows the write that the update reads.
  std::uint64_t read(std::size_t thread, EventId from);
};

}  // namespace perfring::model

#endif  // HARNESS_MODEL_ENGINE_EXECUTION_H_
