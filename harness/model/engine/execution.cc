#include "harness/model/engine/execution.h"

#include <utility>

namespace perfring::model {
namespace {

std::uint64_t name(std::size_t thread, std::uint16_t index) {
  return std::uint64_t{thread} << 16 | index;
}
std::uint64_t name(const Event& event, EventId id) {
  return event.is_initial() ? 0x100'0000 | id : name(event.thread, event.index);
}

enum class Fact : std::uint8_t { ReadsFrom, Follows };

GraphKey fact(Fact kind, std::uint64_t a, std::uint64_t b) {
  const std::uint64_t low = mix((a << 32 | b) * 2 + static_cast<std::uint64_t>(kind));
  return {low, mix(low + 0x9e37'79b9'7f4a'7c15)};
}
GraphKey fact(const Execution& x, Fact kind, EventId a, EventId b) {
  return fact(kind, name(x.events[a], a), name(x.events[b], b));
}

void add(GraphKey& key, const GraphKey& fact) {
  key.low += fact.low;
  key.high += fact.high;
}

void take_away(GraphKey& key, const GraphKey& fact) {
  key.low -= fact.low;
  key.high -= fact.high;
}

Event& append(Execution& x, std::size_t thread) {
  Thread& at = x.threads[thread];
  ++at.events;
  at.known.events[thread] = at.events;
  at.known.writes[thread] = at.events;
  Event& event = x.events.emplace_back();
  event.step = &at.next();
  event.thread = static_cast<std::uint8_t>(thread);
  event.index = at.events;
  event.location = event.step->location;
  event.order = event.step->order;
  return event;
}

// Looks for an earlier access that races with `event`: the two conflict, one of them is not atomic,
// and nothing orders them. If a thread knows only the store of an update (smp_wmb()), the update's
// read still races with a later write.
void find_race(Execution& x, const Event& event, EventId id) {
  const std::uint64_t location = std::uint64_t{1} << event.location % 64;
  if (event.order == Order::NonAtomic) x.plain_locations |= location;
  if ((x.plain_locations & location) == 0 || x.race.first != kNone) return;
  const Clock& known = event.clock;
  for (EventId i = 0; i < id; ++i) {
    const Event& other = x.events[i];
    if (other.is_initial() || other.step->kind == Step::Kind::Fence) continue;
    if (other.location != event.location || other.thread == event.thread) continue;
    if (!other.writes && !event.writes) continue;
    if (other.order != Order::NonAtomic && event.order != Order::NonAtomic) continue;
    const bool ordered = known.events[other.thread] >= other.index ||
                         (other.writes && known.writes[other.thread] >= other.index &&
                          (other.reads_from == kNone || !event.writes));
    if (!ordered) {
      x.race = {i, id};
      return;
    }
  }
}

void link_after(Execution& x, EventId id, EventId after) {
  Event& event = x.events[id];
  event.writes = true;
  event.earlier = after;
  event.later = std::exchange(x.events[after].later, id);
  add(x.key, fact(x, Fact::Follows, id, after));
  if (event.later == kNone) {
    x.latest[event.location] = id;
    return;
  }
  x.events[event.later].earlier = id;
  take_away(x.key, fact(x, Fact::Follows, event.later, after));
  add(x.key, fact(x, Fact::Follows, event.later, id));
}

}  // namespace

Execution::Execution(const std::vector<Location>& locations, std::size_t thread_count)
    : threads(thread_count) {
  for (const Location& location : locations) {
    latest.push_back(static_cast<EventId>(events.size()));
    Event& initial = events.emplace_back();
    initial.writes = true;
    initial.location = static_cast<std::uint16_t>(latest.size() - 1);
    initial.written = location.initial;
  }
}

// Reserves room, because every copy will grow.
Execution::Execution(const Execution& other)
    : latest{other.latest},
      threads{other.threads},
      race{other.race},
      key{other.key},
      plain_locations{other.plain_locations},
      sc_threads{other.sc_threads} {
  constexpr std::size_t kRoom = 16;
  events.reserve(other.events.size() + kRoom);
  events = other.events;
}

std::optional<GraphKey> Execution::key_after_read(std::size_t thread, EventId from,
                                                  const ThreadTree::Node& node) const {
  if (threads[thread].next().kind != Step::Kind::Read || node.jump != nullptr) return std::nullopt;
  std::uint16_t index = threads[thread].events;
  GraphKey after = key;
  add(after, fact(Fact::ReadsFrom, name(thread, ++index), name(events[from], from)));
  for (std::size_t i = 0; i < node.steps.size(); ++i) {
    const Step& step = node.steps[i];
    if (step.kind == Step::Kind::End) break;
    if (step.reads() && step.order != Order::NonAtomic) break;
    ++index;
    if (step.kind == Step::Kind::Fence) continue;
    if (step.kind != Step::Kind::Write) return std::nullopt;
    // The write is the last one if no other thread writes to the location.
    const EventId last = latest[step.location];
    if (!events[last].is_initial() && events[last].thread != thread) return std::nullopt;
    std::uint64_t before = name(events[last], last);
    for (std::size_t j = 0; j < i; ++j) {
      const bool same =
          node.steps[j].kind == Step::Kind::Write && node.steps[j].location == step.location;
      if (same) before = name(thread, static_cast<std::uint16_t>(index - (i - j)));
    }
    add(after, fact(Fact::Follows, name(thread, index), before));
  }
  return after;
}

void Execution::fence(std::size_t thread) {
  Event& event = append(*this, thread);
  Thread& at = threads[thread];
  if (event.order == Order::StoreStore) at.released.writes[thread] = at.events;
  if (acquires(event.order)) at.known.join(at.acquirable);
  if (releases(event.order)) at.released = at.known;
  if (event.order == Order::SequentiallyConsistent) {
    sc_threads = static_cast<std::uint8_t>(sc_threads | 1u << thread);
  }
  event.clock = at.known;
}

EventId Execution::write(std::size_t thread, EventId after) {
  Event& event = append(*this, thread);
  const EventId id = static_cast<EventId>(events.size() - 1);
  Thread& at = threads[thread];
  event.written = event.step->value;
  event.clock = at.known;
  if (event.order != Order::NonAtomic) {
    event.released = releases(event.order) ? at.known : at.released;
  }
  link_after(*this, id, after);
  find_race(*this, event, id);
  return id;
}

std::uint64_t Execution::read(std::size_t thread, EventId from) {
  Event& event = append(*this, thread);
  const EventId id = static_cast<EventId>(events.size() - 1);
  Event& source = events[from];
  Thread& at = threads[thread];
  event.reads_from = from;
  event.read = source.written;
  add(key, fact(*this, Fact::ReadsFrom, id, from));
  event.order = event.step->order_after(event.read);
  if (source.readers[thread] == 0) source.readers[thread] = event.index;
  if (event.order != Order::NonAtomic) at.acquirable.join(source.released);
  if (acquires(event.order)) at.known.join(source.released);
  event.clock = at.known;
  if (event.step->writes(event.read)) {
    event.written = event.step->written(event.read);
    event.released = releases(event.order) ? at.known : at.released;
    event.released.join(source.released);  // the release sequence continues
    link_after(*this, id, from);
  }
  find_race(*this, event, id);
  return event.read;
}

}  // namespace perfring::model
