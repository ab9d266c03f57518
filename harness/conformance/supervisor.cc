#include "harness/conformance/subjects.h"

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <memory>
#include <utility>

#include "harness/conformance/emulated_calls.h"
#include "harness/conformance/traced_process.h"
#include "harness/program/console.h"

namespace perfring::conformance {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr int kSigints = 20;  // one may be lost (P25)
constexpr auto kPause = milliseconds{100};
constexpr auto kIdle = milliseconds{2000};  // for a program that opens no ring, or never waits

class Supervisor final : public Playing {
 public:
  Supervisor(const std::vector<std::string>& command, const Case& of, const ProcessLimits& limits)
      : case_{of},
        limits_{limits},
        process_{command,
                 limits,
                 {.call = [this](const seccomp_notif& call) { return calls_.answer(call); },
                  .maps_ring =
                      [this](pid_t thread, int fd, std::uint64_t length) {
                        return calls_.maps_ring(thread, fd, length);
                      },
                  .mapped = [this](std::uint64_t base) { calls_.mapped(base); }}} {}

  Cell run(Reader read);

  void on_map(Opened& event, std::uint64_t pages) override;
  void on_map_update(Opened& event) override;
  void on_wait() override { producers_turn(); }
  void on_not_emulated(const std::string& what) override {
    impossible_ = what + " is not emulated";
  }

 private:
  std::string why_impossible(const Opened& event, std::uint64_t pages) const;
  void producers_turn();
  void end_when_due();
  bool is_asleep();
  bool ended_well(Cell& cell);
  std::string last_words() const;
  Cell judge(Reader read);

  const Case& case_;
  const ProcessLimits limits_;
  Opened* playing_ = nullptr;  // the event in whose ring the case is played
  std::unique_ptr<CaseProducer> producer_;
  std::string impossible_;  // why the case cannot be played in that ring
  Tails tails_;
  std::uint64_t turns_ = 0;
  std::uint64_t waits_after_ = 0;
  int sigints_ = 0;
  bool killed_ = false;  // for want of time
  Clock::time_point begin_ = Clock::now();
  Clock::time_point checked_ = begin_;
  std::int64_t cpu_ = 0;
  EmulatedCalls calls_{process_, *this};
  TracedProcess process_;  // last: its handlers use all of the above
};

std::string Supervisor::why_impossible(const Opened& event, std::uint64_t pages) const {
  const script::Settings& wanted = case_.settings;
  const auto& type = event.attr.sample_type;
  if (wanted.word == kernel::Word::k32 && !event.of_32_bits) {
    return "a 32-bit kernel runs no 64-bit program";
  }
  if ((type & PERF_SAMPLE_RAW) == 0 || (type & ~kernel::kSampleTypes) != 0) {
    return fmt::format("sample_type {:#x} is not simulated", std::uint64_t{type});
  }
  const bool others = wanted.sample_type != PERF_SAMPLE_RAW || wanted.sample_id_all;
  if (others && (wanted.sample_type != type || wanted.sample_id_all != event.attr.sample_id_all)) {
    return "the case is of another sample_type";
  }
  if (pages < wanted.pages || (case_.exact && pages != wanted.pages)) {
    return fmt::format("the ring has {} pages, the case needs {}", pages, wanted.pages);
  }
  return {};
}

void Supervisor::on_map(Opened& event, std::uint64_t pages) {
  const bool plays = playing_ == nullptr;
  if (plays) impossible_ = why_impossible(event, pages);
  script::Settings settings = case_.settings;
  if (!plays) settings = {};
  // A ring that is longer ends as far behind the start.
  const std::uint64_t size = settings.pages * 4096;
  if (settings.start % size != 0 && settings.start < size) {
    settings.start += pages * 4096 - size;
  }
  settings.pages = pages;
  settings.sample_type = event.attr.sample_type & kernel::kSampleTypes;
  settings.sample_id_all = event.attr.sample_id_all != 0;
  settings.watermark = event.attr.watermark != 0;
  settings.wakeup = event.attr.wakeup_events;
  event.make_ring(settings);
  if (!plays) return;
  playing_ = &event;
  tails_ = {settings.start, settings.start, settings.start};
  producer_ = std::make_unique<CaseProducer>(case_, *event.ring);
}

void Supervisor::on_map_update(Opened& event) {
  if (&event == playing_ && turns_ == 0 && impossible_.empty()) producer_->while_registering();
}

void Supervisor::producers_turn() {
  if (playing_ == nullptr || !impossible_.empty()) {
    ++waits_after_;
    return;
  }
  const perf_event_mmap_page& page = playing_->ring->page();
  tails_.after = page.data_tail;
  if (!producer_->turn()) {
    ++waits_after_;
    return;
  }
  ++turns_;
  tails_ = {page.data_tail, page.data_head, page.data_tail};
}

// Little CPU time since the last look.
bool Supervisor::is_asleep() {
  const std::int64_t now = process_.cpu_ns();
  const std::int64_t used = now - std::exchange(cpu_, now);
  return used >= 0 && used < 2'000'000;  // less than nothing: one of its processes has ended
}

// The subject is told to end once it has waited twice with nothing new, or sleeps for long; and is
// killed if it does not, or is out of time.
void Supervisor::end_when_due() {
  const auto now = Clock::now();
  const bool late = std::chrono::duration<double>(now - begin_).count() > limits_.seconds;
  if (late || (limits_.stop != nullptr && *limits_.stop)) {
    killed_ = true;
    process_.signal(SIGKILL);
    return;
  }
  if (now - checked_ < (sigints_ == 0 && waits_after_ < 2 ? 4 * kPause : kPause)) return;
  checked_ = now;
  const bool asleep = is_asleep();
  // A producer need not wait until its consumer waits once more.
  if (asleep && turns_ != 0 && !producer_->is_over()) return producers_turn();
  const bool idle = turns_ == 0 && now - begin_ > kIdle;
  const bool over = waits_after_ >= 2 || (asleep && (idle || (producer_ && producer_->is_over())));
  if (!over && sigints_ == 0) return;
  process_.signal(++sigints_ <= kSigints ? SIGINT : SIGKILL);
}

Cell Supervisor::run(Reader read) {
  while (process_.step()) {
    end_when_due();
    calls_.end_polls();
  }
  return judge(read);
}

// The signal that ended a subject that was not told to end, and what it said.
std::string Supervisor::last_words() const {
  const int status = process_.status();
  const bool unasked = WIFSIGNALED(status) && sigints_ == 0 && !killed_;
  const std::string err = process_.err();
  return (unasked ? fmt::format(", and signal {} ended it", WTERMSIG(status)) : "") +
         (err.empty() ? "" : ": " + first_line(err));
}

bool Supervisor::ended_well(Cell& cell) {
  const int status = process_.status();
  if (WIFEXITED(status)) {
    return sigints_ > 0 || judge_end(WEXITSTATUS(status), process_.err(), limits_, cell);
  }
  const int signal = WTERMSIG(status);
  const bool out_of_cpu =
      signal == SIGKILL && process_.cpu_seconds() >= static_cast<double>(limits_.cpu_seconds);
  if (signal == SIGXCPU || killed_ || (out_of_cpu && sigints_ == 0)) {
    cell.worsen(Outcome::Hangs, fmt::format("no end; data_tail {:#x}, data_head {:#x}",
                                            playing_->ring->page().data_tail, tails_.head));
    return false;
  }
  if (sigints_ > 0 && (signal == SIGINT || signal == SIGKILL)) return true;
  const auto& fault = process_.fault();
  const std::uint64_t length = playing_->memory.size();
  const std::uint64_t at = fault ? fault->address - playing_->base : 0;
  const std::string by = fault && !fault->code.empty() ? ", by " + fault->code : "";
  if (fault && at + kGuard < length + 2 * kGuard) {
    cell.worsen(Outcome::OutOfBounds, fmt::format("signal {} at byte {} of the ring's {}{}", signal,
                                                  static_cast<std::int64_t>(at), length, by));
    return false;
  }
  judge_end(128 + signal, process_.err(), limits_, cell);
  cell.detail += by;
  return false;
}

Cell Supervisor::judge(Reader read) {
  const auto not_run = [&](const std::string& why) {
    Cell none;
    none.worsen(Outcome::NotRun, why);
    none.unsupported = !impossible_.empty();
    return none;
  };
  if (playing_ == nullptr) return not_run("it opened no ring" + last_words());
  if (!impossible_.empty()) return not_run(impossible_);
  if (turns_ == 0 && producer_->expected_so_far().empty()) {
    return not_run("it never waited" + last_words());
  }
  Cell cell;
  if (!ended_well(cell)) return cell;
  if (!producer_->is_over()) return not_run("it ended before the case did");
  const std::string out = process_.out();
  const auto seen = read(out);
  if (!seen) return not_run("its output is not understood: " + seen.error());
  tails_.after = playing_->ring->page().data_tail;
  judge_events(case_, producer_->expected_so_far(), *seen, cell);
  judge_tail(case_, tails_, cell);
  if (cell.outcome == Outcome::Loses && out.empty()) cell.detail += " (it printed nothing)";
  if (is_failure(cell.outcome) && WIFSIGNALED(process_.status()) &&
      WTERMSIG(process_.status()) == SIGKILL) {
    cell.detail += "; it was killed, because SIGINT did not end it";
  }
  return cell;
}

}  // namespace

Cell run_supervised(const std::vector<std::string>& command, const Case& of, Reader read,
                    const ProcessLimits& limits) {
  std::vector<std::string> words = command;
  for (std::string& word : words) {
    const std::size_t at = word.find("{pages}");
    if (at != std::string::npos) word.replace(at, 7, std::to_string(of.settings.pages));
  }
  return Supervisor{words, of, limits}.run(read);
}

}  // namespace perfring::conformance
