#include "harness/simulator/simulated_producer.h"

#include <linux/perf_event.h>

#include <cstdint>
#include <cstring>

#include "harness/oracle/payload.h"
#include "harness/simulator/random.h"
#include "harness/simulator/settings.h"

namespace perfring::simulator {
namespace {

constexpr std::uint64_t kOffline = 100;  // steps between two checks by a writer on an offline CPU
constexpr std::uint64_t kStall = 8;      // multiple of the longest delay

}  // namespace

ProducerBase::ProducerBase(Site& site) : site_{site} {
  for (auto& buffer : buffers_)
    buffer.resize(static_cast<std::size_t>(site.world().settings.payload_max));
}

void ProducerBase::run() {
  const RunSettings& settings = site_.world().settings;
  Random& random = site_.world().scheduler.random();
  while (!site_.world().writers_end()) {
    if (site_.offline()) {
      site_.producer().sleep_until(site_.world().scheduler.now() + kOffline);
      continue;
    }
    const auto burst = random.between(1, static_cast<std::uint32_t>(settings.burst_max));
    for (std::uint32_t i = 0; i < burst && !site_.world().writers_end(); ++i) {
      output();
      step();
      site_.check_awake();
    }
    if (settings.idle_max == 0) continue;
    site_.run_irq_work();
    const auto idle = random.between(0, static_cast<std::uint32_t>(settings.idle_max));
    site_.producer().sleep_until(site_.world().scheduler.now() + idle);
    site_.check_awake();
  }
  site_.run_irq_work();
}

void ProducerBase::interrupt() {
  Random& random = site_.world().scheduler.random();
  if (site_.irq_work() && random.one_in(2)) return site_.run_irq_work();
  if (level_ < kLevels && random.below(100) < site_.world().settings.interrupts) return output();
  site_.producer().yield();
}

void ProducerBase::output() {
  const RunSettings& settings = site_.world().settings;
  std::uint32_t length =
      site_.world().scheduler.random().between(static_cast<std::uint32_t>(settings.payload_min),
                                               static_cast<std::uint32_t>(settings.payload_max));
  // Payloads that may spill must read the same on every machine.
  if (settings.payload_max > kIntactMax) length -= length % 4;
  const oracle::Payload payload{sequence_++, static_cast<std::uint32_t>(site_.cpu()), length};
  const std::span<std::byte> bytes = std::span{buffers_[level_]}.first(length);
  oracle::fill(bytes, payload);
  ++level_;
  site_.begin_program();
  if (settings.rings != kOwnConsumers) take_time(settings);
  site_.begin_attempt(payload);
  site_.end_attempt(bpf_perf_event_output(bytes));
  site_.end_program();
  --level_;
}

// The program reads its clock and then takes some time, in which it may be interrupted, or its CPU
// may stall.
void ProducerBase::take_time(const RunSettings& settings) {
  site_.stamp_next_payload();
  if (settings.delay_max == 0) return;
  Random& random = site_.world().scheduler.random();
  if (random.one_in(static_cast<std::uint32_t>(settings.stall_one_in))) {
    site_.producer().sleep_until(site_.world().scheduler.now() + kStall * settings.delay_max);
  }
  const auto steps = random.between(0, static_cast<std::uint32_t>(settings.delay_max));
  for (std::uint32_t i = 0; i != steps; ++i) step();
}

void Intruder::run() {
  Random& random = site_.world().scheduler.random();
  while (!site_.world().writers_end()) {
    if (random.one_in(20)) {
      write_head();
    } else {
      write_header();
    }
    step();
  }
}

void Intruder::step() {
  if (site_.world().scheduler.step()) site_.producer().yield();
}

// Mostly writes a header as in a sound record, otherwise one with one field or everything wrong.
void Intruder::write_header() {
  Random& random = site_.world().scheduler.random();
  const auto slots = static_cast<std::uint32_t>(site_.data().size() / 8);
  const std::uint32_t slot = random.below(slots);
  perf_event_header header{};
  const std::uint32_t kind = random.below(8);
  header.type = kind < 5   ? std::uint32_t{PERF_RECORD_SAMPLE}
                : kind < 6 ? std::uint32_t{PERF_RECORD_LOST}
                : kind < 7 ? random.below(200)  // or the raw size of an earlier record
                           : static_cast<std::uint32_t>(random.next() >> 32);
  header.misc = static_cast<std::uint16_t>(random.below(4));
  header.size =
      static_cast<std::uint16_t>(random.one_in(16) ? random.below(65536) : 8 * random.below(8));
  std::memcpy(site_.writable_data().data() + 8 * std::size_t{slot}, &header, sizeof(header));
}

void Intruder::write_head() {
  Random& random = site_.world().scheduler.random();
  const auto size = static_cast<std::uint32_t>(site_.data().size());
  const std::uint64_t tail = site_.page().data_tail;
  const std::uint32_t kind = random.below(16);
  std::uint64_t head = tail + 8 * std::uint64_t{random.below(size / 8 + 1)};
  if (kind == 0) head = tail + random.below(2 * size);  // off the grid, or too far ahead
  if (kind == 1) head = random.next();
  if (kind == 2) head = tail - 8 * std::uint64_t{random.below(size / 8)};
  __atomic_store_n(&site_.page().data_head, head, __ATOMIC_RELAXED);
}

}  // namespace perfring::simulator
