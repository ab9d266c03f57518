#ifndef HARNESS_SIMULATOR_PRODUCER_H_
#define HARNESS_SIMULATOR_PRODUCER_H_

#include <linux/perf_event.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>
#include <vector>

#include "harness/kernel/cpu.h"
#include "harness/kernel/perf_event_array.h"
#include "harness/kernel/ring_buffer.h"
#include "harness/oracle/payload.h"
#include "harness/rig/ends.h"
#include "harness/simulator/site.h"

namespace perfring::simulator {

// The work of an interrupt.
class Interrupts {
 public:
  virtual void interrupt() = 0;

 protected:
  ~Interrupts() = default;
};

// The processor of a Site. Others run, or an interrupt comes, between any two of its steps; and a
// store is of 8 bytes at the most. A faulty one is derived from it.
struct SimulatedCpu : rig::LedgerCpu<> {
  SimulatedCpu(Site& of, Interrupts& by)
      : LedgerCpu{of.ledger()}, site{of}, scheduler{of.world().scheduler}, interrupts{by} {
    id = of.cpu();
  }

  Site& site;
  Scheduler& scheduler;
  Interrupts& interrupts;

  void step() {
    if (scheduler.step()) [[unlikely]]
      interrupts.interrupt();
  }
  __u64 clock() const { return scheduler.now(); }

  void copy(std::byte* to, const void* from, std::size_t size) {
    const auto* bytes = static_cast<const std::byte*>(from);
    const std::size_t first = std::min(-reinterpret_cast<std::uintptr_t>(to) % 8, size);
    if (first != 0) {
      store_part(to, bytes, first);
      to += first;
      bytes += first;
      size -= first;
      step();
    }
    for (; size >= 8; size -= 8) {
      std::memcpy(to, bytes, 8);
      to += 8;
      bytes += 8;
      step();
    }
    store_part(to, bytes, size);
  }

  // Barriers order nothing here: there is one thread, and its stores are seen in their order.
  void control_dependency(const __u64&) {}
  void smp_wmb(const __u64&) {}

  void write_once(__u64& data_head, __u64 value) {
    LedgerCpu::write_once(data_head, value);
    site.published();
  }

  void irq_work_queue(kernel::perf_event&) { site.irq_work_queue(); }

  void on_reserve(const kernel::perf_buffer&, __u64 position, std::size_t size) {
    site.reserved(position, size);
  }

 private:
  // Less than 8 bytes. Most often it is 4 of them or none, for which memcpy() is not worth a call.
  static void store_part(std::byte* to, const std::byte* from, std::size_t size) {
    if (size == 4) {
      std::memcpy(to, from, 4);
    } else if (size != 0) {
      std::memcpy(to, from, size);
    }
  }
};

// Runs on a Site's CPU: a task that outputs, and softirqs, irqs and NMIs that interrupt it and
// each other, and output too.
template <class C = SimulatedCpu>
class Producer final : public Interrupts {
 public:
  explicit Producer(Site& site) : site_{site}, cpu_{site, *this} {
    for (auto& buffer : buffers_)
      buffer.resize(static_cast<std::size_t>(site.world().settings.payload_max));
  }

  void run() {
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
        cpu_.step();
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

  void interrupt() override {
    Random& random = site_.world().scheduler.random();
    if (site_.irq_work() && random.one_in(2)) return site_.run_irq_work();
    if (level_ < kLevels && random.below(100) < site_.world().settings.interrupts) return output();
    site_.producer().yield();
  }

 private:
  static constexpr std::size_t kLevels = 4;  // task, softirq, irq, NMI
  static constexpr std::uint64_t kOffline = 100;
  static constexpr std::uint64_t kStall = 8;

  // A record is some thirty short steps: the calls between them would cost a fifth of the time. (Of
  // a faulty kernel nobody asks for speed, and each takes its time to compile.)
  void output() {
    if constexpr (std::is_same_v<C, SimulatedCpu>) {
      output_flat();
    } else {
      output_once();
    }
  }
  [[gnu::flatten]] void output_flat() { output_once(); }

  void output_once() {
    const RunSettings& settings = site_.world().settings;
    std::uint32_t length =
        site_.world().scheduler.random().between(static_cast<std::uint32_t>(settings.payload_min),
                                                 static_cast<std::uint32_t>(settings.payload_max));
    // Payloads that may spill are read alike on every machine.
    if (settings.payload_max > kIntactMax) length -= length % 4;
    const oracle::Payload payload{sequence_++, static_cast<std::uint32_t>(site_.cpu()), length};
    const std::span<std::byte> bytes = std::span{buffers_[level_]}.first(length);
    oracle::fill(bytes, payload);
    ++level_;
    site_.enters_program();
    if (settings.rings != kOwnConsumers) take_time(settings);
    site_.begins(payload);
    site_.ends(kernel::bpf_perf_event_output(cpu_, site_.map(), BPF_F_CURRENT_CPU, bytes));
    site_.leaves_program();
    --level_;
  }

  // The program reads its clock, and takes its time, in which it may be interrupted, or its CPU
  // stand still.
  void take_time(const RunSettings& settings) {
    site_.takes_key();
    if (settings.delay_max == 0) return;
    Random& random = site_.world().scheduler.random();
    if (random.one_in(static_cast<std::uint32_t>(settings.stall_one_in))) {
      site_.producer().sleep_until(site_.world().scheduler.now() + kStall * settings.delay_max);
    }
    const auto steps = random.between(0, static_cast<std::uint32_t>(settings.delay_max));
    for (std::uint32_t i = 0; i != steps; ++i) cpu_.step();
  }

  Site& site_;
  C cpu_;
  std::size_t level_ = 0;
  std::uint64_t sequence_ = 0;
  std::array<std::vector<std::byte>, kLevels> buffers_;
};

// In a kernel's place: writes headers and positions of all kinds, at any moment, the drain's midst
// included. All that it writes is fields of the format, so that it means the same on every machine.
class Intruder {
 public:
  explicit Intruder(Site& site) : site_{site} {}
  void run();

 private:
  void write_header();
  void write_head();
  void step();

  Site& site_;
};

}  // namespace perfring::simulator

#endif  // HARNESS_SIMULATOR_PRODUCER_H_
