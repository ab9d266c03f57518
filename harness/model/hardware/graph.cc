#include "harness/model/hardware/graph.h"

#include <algorithm>
#include <string>

#include "harness/model/engine/usage_error.h"

namespace perfring::model {

std::size_t Graph::add(Access access, const EventSet& before) {
  if (accesses_.size() == kMachineEventsMax) {
    throw UsageError{"more than " + std::to_string(kMachineEventsMax) + " accesses"};
  }
  const std::size_t number = accesses_.size();
  accesses_.push_back(access);
  before_.push_back(closure(before));
  return number;
}

// Returns `events` and every access that comes before one of them.
EventSet Graph::closure(const EventSet& events) const {
  EventSet all = events;
  for (std::size_t i = 0; i < before_.size(); ++i) {
    if (events[i]) all |= before_[i];
  }
  return all;
}

std::size_t Graph::place_of(std::size_t write, std::size_t location) const {
  if (write == kInitial) return 0;
  const std::vector<std::size_t>& stores = coherence_[location];
  return static_cast<std::size_t>(std::ranges::find(stores, write) - stores.begin()) + 1;
}

// Adds an edge. Returns false if the edge closes a cycle.
bool Graph::order(std::size_t first, std::size_t second) {
  if (first == second || before_[first][second]) return false;
  if (before_[second][first]) return true;
  EventSet added = before_[first];
  added.set(first);
  for (std::size_t i = 0; i < accesses_.size(); ++i) {
    if (i == second || before_[i][second]) before_[i] |= added;
  }
  return true;
}

// Whether the thread sees the location's stores in coherence order along its program order.
bool Graph::coherent(std::size_t thread, std::size_t location) const {
  std::size_t last_place = 0;
  bool awaits = false;  // a store that has no place yet
  for (std::size_t number = 0; number < accesses_.size(); ++number) {
    const Access& access = accesses_[number];
    if (access.thread != thread || access.location != location) continue;
    if (access.awaits()) {
      awaits = true;
      continue;
    }
    const std::size_t place = place_of(access.is_write ? number : access.source, location);
    if (place < last_place || (access.is_write && place == last_place) || (awaits && place == 0))
      return false;
    last_place = place;
  }
  return true;
}

// Orders a read after its source in another thread (rf), and before the next store (fr). LKMM
// orders fr by propagation only, so fr is left out. Returns false if an edge closes a cycle.
bool Graph::order_after_source(std::size_t read) {
  const Access& access = accesses_[read];
  const std::vector<std::size_t>& stores = coherence_[access.location];
  auto next = stores.begin();
  if (access.source != kInitial) {
    next = std::ranges::find(stores, access.source) + 1;
    if (accesses_[access.source].thread != access.thread && !order(access.source, read)) {
      return false;
    }
  }
  if (!orders_stores()) return true;
  // Program order at one location already orders the thread's own later stores after the read.
  return next == stores.end() || accesses_[*next].thread == access.thread || order(read, *next);
}

EventSet Graph::before_read(std::size_t thread, const Step& read, std::size_t source) const {
  const bool stored = source < kAwaited;
  const bool forwarded = stored && accesses_[source].thread == thread;
  EventSet before = orders_[thread].before_read(machine_, read, read.location, forwarded);
  if (stored && !forwarded) before.set(source);
  return before;
}

bool Graph::allows_read(std::size_t thread, const Step& read, std::size_t source) const {
  if (source == kAwaited) return true;
  const std::size_t place = place_of(source, read.location);
  for (std::size_t i = 0; i < accesses_.size(); ++i) {
    const Access& earlier = accesses_[i];
    if (earlier.thread != thread || earlier.location != read.location) continue;
    const std::size_t last_place =
        earlier.awaits() ? 1 : place_of(earlier.is_write ? i : earlier.source, read.location);
    if (place < last_place) return false;
  }
  const std::vector<std::size_t>& stores = coherence_[read.location];
  if (place == stores.size() || !orders_stores()) return true;
  // The next store, which overwrites the value read, must not come before the read.
  return !closure(before_read(thread, read, source))[stores[place]];
}

void Graph::add_read(std::size_t thread, const Step& read, std::size_t source,
                     std::uint64_t value) {
  const std::size_t location = read.location;
  const std::size_t number =
      add({.step = &read, .thread = thread, .location = location, .value = value, .source = source},
          before_read(thread, read, source));
  orders_[thread].add_read(machine_, read, location, number);
  if (source == kAwaited) {
    awaiting_.push_back(number);
  } else {
    order_after_source(number);
  }
}

std::size_t Graph::first_place(std::size_t thread, std::size_t location) const {
  const std::vector<std::size_t>& stores = coherence_[location];
  const auto last = std::ranges::find_if(stores.rbegin(), stores.rend(), [&](std::size_t store) {
    return accesses_[store].thread == thread;
  });
  return static_cast<std::size_t>(stores.rend() - last);
}

bool Graph::add_write(std::size_t thread, const Step& write, std::size_t place) {
  const std::size_t location = write.location;
  const std::size_t number = add({.step = &write,
                                  .thread = thread,
                                  .location = location,
                                  .is_write = true,
                                  .value = write.value},
                                 orders_[thread].before_write(machine_, write, location));
  orders_[thread].add_write(write, location, number);
  std::vector<std::size_t>& stores = coherence_[location];
  stores.insert(stores.begin() + static_cast<std::ptrdiff_t>(place), number);
  if (!coherent(thread, location)) return false;
  if (!orders_stores()) return true;
  const std::size_t earlier = place == 0 ? kInitial : stores[place - 1];
  if (earlier != kInitial && !order(earlier, number)) return false;
  if (place + 1 < stores.size() && !order(number, stores[place + 1])) return false;
  for (std::size_t i = 0; i < number; ++i) {
    const Access& read = accesses_[i];
    const bool overwritten = !read.is_write && read.location == location && read.source == earlier;
    if (overwritten && read.thread != thread && !order(i, number)) return false;
  }
  return true;
}

bool Graph::give(std::size_t read, std::size_t write) {
  accesses_[read].source = write;
  std::erase(awaiting_, read);
  return coherent(accesses_[read].thread, accesses_[read].location) && order_after_source(read);
}

// A read waits in vain if the thread's later stores all come after an access that memory sees after
// the read.
bool Graph::awaits_in_vain(std::size_t thread) const {
  if (awaiting_.empty()) return false;
  const EventSet before = orders_[thread].before_any_write();
  for (std::size_t i = 0; i < accesses_.size(); ++i) {
    if (!before[i]) continue;
    for (const std::size_t read : awaiting_) {
      if (before_[i][read]) return true;
    }
  }
  return false;
}

}  // namespace perfring::model
