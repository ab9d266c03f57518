#ifndef HARNESS_SIMULATOR_SIMULATED_PRODUCER_H_
#define HARNESS_SIMULATOR_SIMULATED_PRODUCER_H_

#include <linux/bpf.h>
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
#include "harness/rig/watched_cpu.h"
#include "harness/simulator/scheduler.h"
#include "harness/simulator/settings.h"
#include "harness/simulator/site.h"

namespace perfring::simulator {

// The handler of an interrupt.
class Interrupts {
 public:
  virtual void interrupt() = 0;

 protected:
  ~Interrupts() = default;
};

// The processor of a Site. Between any two of its steps other tasks run, or an interrupt comes. A
// store has at most 8 bytes. Faulty processors derive from it.
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

  // Barriers have no effect here: there is one thread, and all see its stores in program order.
  void control_dependency(const __u64&) {}
  void smp_wmb(const __u64&) {}

  void write_once(__u64& data_head, __u64 value) {
    LedgerCpu::write_once(data_head, value);
    site.note_publication();
  }

  void irq_work_queue(kernel::perf_event&) { site.irq_work_queue(); }

  void on_reserve(const kernel::perf_buffer&, __u64 position, std::size_t size) {
    site.note_reservation(position, size);
  }

 private:
  // Stores less than 8 bytes: mostly 4 or none, which are not worth a call of memcpy().
  static void store_part(std::byte* to, const std::byte* from, std::size_t size) {
    if (size == 4) {
      std::memcpy(to, from, 4);
    } else if (size != 0) {
      std::memcpy(to, from, size);
    }
  }
};

// Writes a Site's ring.
class Writer {
 public:
  virtual ~Writer() = default;
  virtual void run() = 0;
};

// Runs on a Site's CPU: a task that outputs, and softirqs, irqs and NMIs that interrupt it and each
// other, and output too.
class ProducerBase : public Interrupts, public Writer {
 public:
  explicit ProducerBase(Site& site);

  void run() override;
  void interrupt() override;

 protected:
  Site& site() const { return site_; }

 private:
  static constexpr std::size_t kLevels = 4;  // task, softirq, irq, NMI

  // The steps and outputs of the processor.
  virtual void step() = 0;
  virtual int bpf_perf_event_output(std::span<const std::byte> payload) = 0;

  void output();
  void take_time(const RunSettings& settings);

  Site& site_;
  std::size_t level_ = 0;
  std::uint64_t sequence_ = 0;
  std::array<std::vector<std::byte>, kLevels> buffers_;
};

template <class C = SimulatedCpu>
class Producer final : public ProducerBase {
 public:
  explicit Producer(Site& site) : ProducerBase{site}, cpu_{site, *this} {}

 private:
  void step() override { cpu_.step(); }

  // A record takes about thirty short steps. The calls between them would cost a fifth of the time,
  // hence `flatten`. A faulty kernel need not be fast, and each one takes time to compile.
  int bpf_perf_event_output(std::span<const std::byte> payload) override {
    if constexpr (std::is_same_v<C, SimulatedCpu>) {
      return output_flat(payload);
    } else {
      return output(payload);
    }
  }
  [[gnu::flatten]] int output_flat(std::span<const std::byte> payload) { return output(payload); }
  int output(std::span<const std::byte> payload) {
    return kernel::bpf_perf_event_output(cpu_, site().map(), BPF_F_CURRENT_CPU, payload);
  }

  C cpu_;
};

// An adversary in place of the kernel: writes headers and positions of all kinds at any moment,
// also in the middle of a drain. It only writes fields of the format, which mean the same on every
// machine.
class Intruder final : public Writer {
 public:
  explicit Intruder(Site& site) : site_{site} {}
  void run() override;

 private:
  void write_header();
  void write_head();
  void step();

  Site& site_;
};

}  // namespace perfring::simulator

#endif  // HARNESS_SIMULATOR_SIMULATED_PRODUCER_H_
