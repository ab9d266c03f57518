#include "harness/rig/simulated_ring.h"

#include <fmt/format.h>

#include <ctime>
#include <stdexcept>
#include <utility>

namespace perfring::rig {
namespace {

// Throws: with possible settings, this step cannot fail.
[[noreturn]] void refused(const char* step, int error) {
  throw std::logic_error{fmt::format("the simulated kernel's {} returned {}", step, error)};
}

std::vector<kernel::perf_file> open_events(const script::Settings& settings,
                                           const Identity& identity) {
  std::vector<kernel::perf_file> events;
  for (std::size_t i = 0; i < settings.events; ++i) {
    auto event =
        kernel::perf_event_open(attr_of(settings), identity.cpu, identity.ids[i], settings.word);
    if (!event) refused("perf_event_open", event.error());
    events.push_back(*std::move(event));
  }
  return events;
}

kernel::perf_mapping map_ring(const kernel::perf_file& event, std::span<std::byte> memory,
                              const script::Settings& settings, unsigned page_shift) {
  auto mapping = kernel::perf_mmap(event, memory, !settings.overwrite, page_shift);
  if (!mapping) refused("mmap", mapping.error());
  if (settings.start != 0) kernel::start_at(mapping->rb(), settings.start);
  mapping->rb().before_5_2 = settings.before_5_2;
  return *std::move(mapping);
}

}  // namespace

perf_event_attr attr_of(const script::Settings& settings) {
  perf_event_attr attr =
      kernel::bpf_output_attr(/*watermark=*/0, static_cast<std::uint32_t>(settings.wakeup));
  attr.watermark = settings.watermark ? 1 : 0;  // wakeup_watermark is in a union with wakeup_events
  attr.sample_type = settings.sample_type;
  attr.sample_id_all = settings.sample_id_all ? 1 : 0;
  attr.write_backward = settings.write_backward ? 1 : 0;
  attr.read_format = PERF_FORMAT_ID | PERF_FORMAT_LOST;
  attr.use_clockid = 1;
  attr.clockid = CLOCK_MONOTONIC;
  return attr;
}

SimulatedRing::SimulatedRing(const script::Settings& settings, const Identity& identity,
                             unsigned page_shift)
    : SimulatedRing{settings,
                    kernel::RingMemory{static_cast<std::size_t>(settings.pages),
                                       std::size_t{1} << page_shift},
                    {},
                    identity,
                    page_shift} {}

SimulatedRing::SimulatedRing(const script::Settings& settings, std::span<std::byte> memory,
                             const Identity& identity, unsigned page_shift)
    : SimulatedRing{settings, std::nullopt, memory, identity, page_shift} {}

SimulatedRing::SimulatedRing(const script::Settings& settings,
                             std::optional<kernel::RingMemory> own, std::span<std::byte> memory,
                             const Identity& identity, unsigned page_shift)
    : settings_{settings},
      first_index_{static_cast<std::uint32_t>(identity.cpu)},
      own_memory_{std::move(own)},
      events_{open_events(settings, identity)},
      mapping_{
          map_ring(events_[0], own_memory_ ? own_memory_->bytes() : memory, settings, page_shift)},
      map_{std::make_shared<kernel::bpf_array>(first_index_ +
                                               static_cast<std::uint32_t>(settings.events))} {
  for (std::uint32_t i = 0; i < events_.size(); ++i) {
    if (i != 0) {
      const int rc = kernel::perf_event_set_output(*events_[i], events_[0].get());
      if (rc != 0) refused("PERF_EVENT_IOC_SET_OUTPUT", rc);
    }
    const int rc = map_.update_elem(first_index_ + i, events_[i]);
    if (rc != 0) refused("BPF_MAP_UPDATE_ELEM", rc);
  }
}

kernel::perf_file SimulatedRing::open_beside(const perf_event_attr& attr, std::uint64_t id) const {
  auto event = kernel::perf_event_open(attr, events_[0]->cpu, id, settings_.word);
  if (!event) refused("perf_event_open", event.error());
  if (const int rc = kernel::perf_event_set_output(**event, events_[0].get()); rc != 0) {
    refused("PERF_EVENT_IOC_SET_OUTPUT", rc);
  }
  return *std::move(event);
}

void SimulatedRing::enter(const kernel::perf_file& event) {
  if (const int rc = map_.update_elem(first_index_, event); rc != 0) {
    refused("BPF_MAP_UPDATE_ELEM", rc);
  }
}

}  // namespace perfring::rig
