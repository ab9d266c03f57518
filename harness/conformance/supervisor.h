#ifndef HARNESS_CONFORMANCE_SUPERVISOR_H_
#define HARNESS_CONFORMANCE_SUPERVISOR_H_

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "harness/conformance/emulated_calls.h"
#include "harness/conformance/judge.h"
#include "harness/conformance/producer.h"
#include "harness/conformance/subjects.h"
#include "harness/conformance/traced_process.h"

namespace perfring::conformance {

// Plays a case in the rings of a program, and judges it.
class Supervisor final : public Playing {
 public:
  // With an emitter the producer is the machine's own kernel.
  Supervisor(const std::vector<std::string>& command, const Case& of, const ProcessLimits& limits,
             live::Emitter* emitter)
      : case_{of},
        limits_{limits},
        emitter_{emitter},
        calls_{process_, *this, emitter},
        process_{command,
                 limits,
                 {.call = [this](const seccomp_notif& call) { return calls_.answer(call); },
                  .maps_ring =
                      [this](pid_t thread, int fd, std::uint64_t length) {
                        return calls_.maps_ring(thread, fd, length);
                      },
                  .mapped = [this](std::uint64_t base) { calls_.mapped(base); },
                  .is_kernels_own = emitter != nullptr}} {}

  Cell run(Reader read);

  const Case& played() const override { return case_; }
  void on_map(Opened& event, std::uint64_t pages) override;
  void on_map_update(Opened& event) override;
  void on_wait() override { producers_turn(); }
  void on_not_emulated(const std::string& what) override {
    impossible_ = what + " is not emulated";
  }

 private:
  // The event in whose ring a CPU's part of the case is played: the first that was mapped.
  struct Played {
    Opened* event = nullptr;
    Tails tails{};
  };

  std::string why_impossible(const Opened& event, std::uint64_t pages) const;
  script::Settings settings_of(const Opened& event, std::uint64_t pages, bool plays) const;
  bool all_mapped();
  void producers_turn();
  std::string place_of(const Fault& fault) const;
  void end_when_due();
  bool is_asleep();
  bool ended_well(Cell& cell);
  std::string last_words() const;
  Cell judge(Reader read);

  const Case& case_;
  const ProcessLimits limits_;
  live::Emitter* const emitter_;
  std::vector<Played> played_ = std::vector<Played>(static_cast<std::size_t>(case_.cpus));
  std::unique_ptr<CaseProducer> producer_;  // once all of them are mapped
  std::string impossible_;                  // why the case cannot be played in those rings
  std::uint64_t turns_ = 0;
  std::uint64_t waits_after_ = 0;
  int sigints_ = 0;
  bool killed_ = false;  // for want of time
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  std::chrono::steady_clock::time_point checked_ = begin_;
  std::int64_t cpu_ = 0;
  EmulatedCalls calls_;
  TracedProcess process_;  // last: its handlers use all of the above
};

}  // namespace perfring::conformance

#endif  // HARNESS_CONFORMANCE_SUPERVISOR_H_
