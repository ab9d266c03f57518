#ifndef FUZZ_SCRIPT_RUN_H_
#define FUZZ_SCRIPT_RUN_H_

// A script on the simulated kernel, with the real consumer at the ring's other end and the oracle
// beside both. Nested steps happen where the script says: in the midst of an output, or while a
// drain's callback has an event.

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "harness/kernel/bpf_output.h"
#include "harness/kernel/cpu.h"
#include "harness/kernel/eventpoll.h"
#include "harness/kernel/perf_event.h"
#include "harness/kernel/perf_event_array.h"
#include "harness/oracle/checker.h"
#include "harness/oracle/ledger.h"
#include "harness/script/script.h"
#include "perfring/ring/default_memory.h"
#include "perfring/ring/memory.h"
#include "perfring/ring/ring.h"

namespace perfring::fuzz {

class ScriptRun {
 public:
  // Precondition: the script is one that is understood() (script_bytes.h), and outlives this. One
  // run at a time: they share the ring's memory.
  explicit ScriptRun(const script::Script& script);
  virtual ~ScriptRun();
  ScriptRun(const ScriptRun&) = delete;
  ScriptRun& operator=(const ScriptRun&) = delete;

  // All steps, and then drains until the ring is empty. What was violated first, if anything.
  std::optional<std::string> run();

  const oracle::Totals& written() const { return ledger_.totals(); }
  const oracle::Received& received() const { return checker_.received(); }

  // What is at the ring's two ends tells the run of each access. A test derives faulty ones.
  struct WatchedCpu : kernel::HardwareCpu {
    ScriptRun* run = nullptr;
    void step() { run->moment(); }
    __u64 read_once(const __u64& data_tail) const {
      run->frames_[run->depth_ - 1].unread = run->unread();
      return HardwareCpu::read_once(data_tail);
    }
    void write_once(__u64& field, __u64 value) {
      run->published(value);
      HardwareCpu::write_once(field, value);
    }
    void reserved(const kernel::perf_buffer&, __u64 position, std::size_t size) {
      run->ledger_.reserved(position, size, run->checker_.released());
    }
    void told(const kernel::perf_buffer&, __u64 lost) { run->ledger_.told(lost); }
    void lost(const kernel::perf_buffer&, const kernel::perf_event&) { run->refused(); }
  };
  // A policy has no object, so what it tells is a variable.
  struct WatchedMemory : DefaultMemory {
    static inline constinit ScriptRun* run = nullptr;
    template <class T>
    static T read(const std::byte* address) {
      if (run != nullptr) run->read(address, sizeof(T));
      return DefaultMemory::read<T>(address);
    }
  };

 protected:
  using Visit = std::function<ControlFlow<>(Unit, const PerfEvent&)>;

  // Each end at work, for a test that puts a faulty one there.
  virtual int emit(const kernel::bpf_array& map, __u64 index, std::span<const std::byte> payload);
  virtual bool readable() const;
  virtual void try_fold(const Visit& visit);

  kernel::perf_buffer& rb() const { return mapping_.rb(); }

 private:
  // A step under way: those from `first` to `end` are nested in it.
  struct Frame {
    std::size_t step = 0;
    std::size_t end = 0;
    std::uint64_t moment = 0;
    bool interrupted = false;
    std::optional<std::uint64_t> unread{};  // when the output last looked
  };
  struct Thrown {};

  void perform(std::size_t index);
  void act(const script::Step& step);
  void output(const script::Step& step);
  void drain(const script::Step& step);
  void deliver(const PerfEvent& event);
  void poll(bool second);
  void settle();

  void moment();
  void nested(std::optional<std::uint64_t> moment);
  std::uint64_t unread() const { return ledger_.position() - checker_.released(); }
  void refused();
  void published(std::uint64_t data_head);
  void read(const std::byte* address, std::size_t size);
  void violate(std::string message);
  bool stopped() const { return violation_ || checker_.violation(); }

  const script::Script& script_;
  std::vector<kernel::perf_file> events_;
  kernel::perf_mapping mapping_;
  kernel::bpf_map_file map_{std::make_shared<kernel::bpf_array>(2)};
  kernel::eventpoll epoll_;
  oracle::Ledger ledger_;
  oracle::Checker checker_;
  Ring<WatchedMemory> ring_;
  WatchedCpu cpu_;
  std::array<Frame, script::kDepthMax + 1> frames_;
  std::size_t depth_ = 0;  // of the steps under way
  std::vector<bool> done_;
  std::uint64_t sequence_ = 0;
  // Whether poll says that there is something. Nothing: that is not for us to know.
  std::optional<bool> readable_ = false;
  std::optional<std::string> violation_;
};

}  // namespace perfring::fuzz

#endif  // FUZZ_SCRIPT_RUN_H_
