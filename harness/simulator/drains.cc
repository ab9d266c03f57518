#include "harness/simulator/drains.h"

#include <fmt/format.h>

#include "harness/oracle/payload.h"

namespace perfring::simulator {

void Drains::begins() {
  ++count_;
  open_ = true;
  reads_ = 0;
  head_seen_.reset();
  tail_before_ = judge_->released();
  judge_->drain_begins();
}

void Drains::delivered(const PerfEvent& event) {
  reads_ = 0;
  judge_->delivered(event);
  if (!judge_->violation()) note(event);
}

// Where the bytes are unknown, only how many they are: what they say depends on the machine's byte
// order.
void Drains::note(const PerfEvent& event) {
  const bool known = judge_->knows_the_bytes();
  digest_.add(event.index());
  if (const auto* sample = std::get_if<Sample>(&event)) {
    digest_.add(sample->head.size());
    digest_.add(sample->tail.size());
    if (const auto claim = known ? oracle::claimed(*sample) : std::nullopt) {
      digest_.add(claim->sequence);
    }
  } else if (const auto* bad = std::get_if<Malformed>(&event)) {
    digest_.add(static_cast<std::uint64_t>(bad->defect));
    digest_.add(bad->head.size());
    digest_.add(bad->tail.size());
  } else if (known) {
    digest_.add(std::get<Lost>(event).count);
  }
}

void Drains::ends() {
  open_ = false;
  reads_ = 0;
  const std::uint64_t tail = page_.data_tail;
  digest_.add(tail);
  judge_->drain_ends(head_seen_);
  // A writer may still be at work on what a faulty consumer has released.
  if (!judge_->violation()) poison_.released(tail_before_, tail - tail_before_);
}

bool Drains::is_endless() {
  judge_->violate(
      oracle::Invariant::bounded,
      fmt::format("the consumer has read {} times without delivering an event", reads_ - 1));
  return false;
}

}  // namespace perfring::simulator
