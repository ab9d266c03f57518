#include "harness/conformance/supervisor/supervisor.h"

#include <fmt/format.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <string_view>
#include <utility>

#include "harness/live/emitter.h"
#include "harness/program/console.h"
#include "harness/script/script.h"

namespace perfring::conformance {
namespace {

using std::chrono::milliseconds;

constexpr int kSigints = 20;  // one may be lost (P25)
constexpr auto kPause = milliseconds{100};
constexpr auto kAsleep = 4 * kPause;        // for a program in a wait for its rings
constexpr auto kSame = milliseconds{1000};  // for one that waits, and does nothing else
constexpr auto kIdle = milliseconds{5000};  // for one that sleeps elsewhere

}  // namespace

void Supervisor::play_turn() {
  rings_.judge_places(cell_);
  if (!rings_.play_turn()) ++waits_without_turn_;
  if (phase_ >= Phase::Told || !rings_.has_begun()) return;
  phase_ = rings_.is_over() ? Phase::Draining : Phase::Playing;
}

// A program that closes takes its rings out of its map.
void Supervisor::on_map_delete(std::uint64_t key) {
  if (sigints_ == 0) rings_.take_out(key);
}

// Also gets faults that the program catches.
void Supervisor::on_fault(const Crash& fault) {
  const std::string place = rings_.place_of(fault.address);
  if (place.empty() || !out_of_bounds_.empty()) return;
  out_of_bounds_ = fmt::format("signal {} at {}{}", fault.signal, place,
                               fault.code.empty() ? "" : ", by " + fault.code);
}

// Returns true if it is time to end the program. A program that sleeps in a wait for its rings is
// soon due, because a producer would not wait for it. One that sleeps elsewhere gets more time: it
// may be slow to open its rings, or to read them. One that keeps waiting is due if it has had all
// turns, and has read everything or made no progress for long.
bool Supervisor::is_due(Clock::time_point now) {
  const bool quiet = activity_.check(now, process_, rings_.progress(), waits_);
  const bool asleep =
      quiet && activity_.quiet_for(now) >= (calls_.wait.is_waited_for() ? kAsleep : kIdle);
  if (asleep && phase_ == Phase::Playing) {
    activity_.interrupt_quiet(now, waits_);
    play_turn();
    return false;
  }
  const bool has_read = phase_ == Phase::Draining && rings_.are_all_read();
  const bool no_more = has_read || rings_.is_impossible() || activity_.same_for(now) >= kSame;
  return asleep || (waits_without_turn_ >= 2 && no_more);
}

bool Supervisor::must_be_killed(Clock::time_point now) const {
  const bool late = std::chrono::duration<double>(now - begin_).count() > limits_.seconds;
  const bool full = process_.printed_bytes() >= limits_.output;  // SIGXFSZ may be ignored
  return late || full || rings_.is_impossible() || (limits_.stop != nullptr && *limits_.stop);
}

// Sends the program SIGINT when it is due. Kills it if it does not end.
void Supervisor::end_when_due() {
  const auto now = Clock::now();
  if (must_be_killed(now)) {
    phase_ = Phase::Killed;
    process_.signal(SIGKILL);
    return;
  }
  if (now - last_check_ < kPause) return;
  last_check_ = now;
  if (phase_ != Phase::Told) {
    if (!is_due(now)) return;
    rings_.judge_places(cell_);
    rings_.judge_unread(cell_, activity_.sleeps(now, waits_));
  } else if (!activity_.check(now, process_, rings_.progress(), waits_) &&
             now - last_sigint_ < 5 * kPause) {
    return;  // it is about to end
  }
  phase_ = Phase::Told;
  last_sigint_ = now;
  calls_.wait.end_masked_polls();
  process_.signal(++sigints_ <= kSigints ? SIGINT : SIGKILL);
}

Cell Supervisor::run() {
  while (process_.step()) {
    end_when_due();
    calls_.wait.end_polls();
  }
  Cell cell = judge();
  cell.is_watched = is_watched_;
  add_to_detail(cell);
  return cell;
}

// Adds what the program's accesses to the control page tell about the failure.
void Supervisor::add_accesses(Cell& cell) const {
  const auto delivered = reader_.read(process_.out());
  const bool died = cell.outcome >= CaseOutcome::Crashes;
  const std::string why = rings_.explain(delivered.value_or(std::vector<Event>{}), died);
  if (!why.empty() && cell.detail.find(why) == std::string::npos) cell.detail += "; " + why;
}

// Adds further details to the cell.
void Supervisor::add_to_detail(Cell& cell) const {
  const auto add = [&cell](const std::string& more) {
    cell.detail += (cell.detail.empty() ? "" : "; ") + more;
  };
  if (is_failure(cell.outcome)) add_accesses(cell);
  if (is_failure(cell.outcome) && cell.detail.find("data_tail") == std::string::npos) {
    cell.detail += rings_.positions();
  }
  if (cell.outcome != CaseOutcome::NotRun && sigints_ > kSigints) {
    add("it was killed, because SIGINT did not end it");
  }
  if (cell.outcome > CaseOutcome::Acceptable && process_.is_set_uid()) {
    add("a traced program gets no privilege from its set-uid bit");
  }
}

// Describes how a subject ended without SIGINT: the signal or exit code, and the first error line.
std::string Supervisor::describe_end() const {
  const int status = process_.status();
  const bool ended_by_itself = phase_ < Phase::Told;
  if (process_.printed_bytes() >= limits_.output) {
    return fmt::format(", and printed more than {} bytes", limits_.output);
  }
  const std::string err = process_.err();
  std::string words;
  if (ended_by_itself && WIFSIGNALED(status)) {
    words = fmt::format(", and signal {} ended it", WTERMSIG(status));
  } else if (ended_by_itself && WEXITSTATUS(status) != 0) {
    words = fmt::format(", and ended with exit code {}", WEXITSTATUS(status));
  }
  return words + (err.empty() ? "" : ": " + first_line(err));
}

// The supervisor's own signals are not a crash, nor is the exit code that a shell derives from
// them.
bool Supervisor::ended_well() {
  const int status = process_.status();
  const int signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  const bool out_of_cpu =
      signal == SIGKILL && process_.cpu_seconds() >= static_cast<double>(limits_.cpu_seconds);
  const bool floods = process_.printed_bytes() >= limits_.output;
  if (!floods &&
      (signal == SIGXCPU || phase_ == Phase::Killed || (out_of_cpu && phase_ < Phase::Told))) {
    cell_.worsen(CaseOutcome::Hangs, "it did not end" + rings_.positions());
    return false;
  }
  const int code = signal != 0 ? 128 + signal : WEXITSTATUS(status);
  const bool was_signalled = sigints_ > 0 && (code == 128 + SIGINT || signal == SIGKILL);
  const bool well =
      judge_end(was_signalled ? 0 : code, process_.out(), process_.err(), limits_, cell_);
  const auto& fault = process_.fault();
  if (well || !fault || fault->signal != signal) return well;
  cell_.backtrace = fault->frames;
  if (fault->has_address) cell_.detail += fmt::format(" at address {:#x}", fault->address);
  if (!fault->code.empty()) cell_.detail += ", by " + fault->code;
  return false;
}

Cell Supervisor::judge() {
  const auto not_run = [this](const std::string& why, bool of_any_case, bool unsupported = false) {
    if (is_failure(cell_.outcome) && !unsupported) return cell_;
    Cell none;
    none.worsen(CaseOutcome::NotRun, why);
    none.unsupported = unsupported;
    none.of_any_case = of_any_case;
    return none;
  };
  const auto obstacle = rings_.obstacle();
  if (obstacle && obstacle->is_unsupported) {
    return not_run(obstacle->why, obstacle->is_of_any_case, true);
  }
  if (!out_of_bounds_.empty()) {
    cell_.worsen(CaseOutcome::OutOfBounds, out_of_bounds_);
    if (process_.fault()) cell_.backtrace = process_.fault()->frames;
    return cell_;
  }
  if (const std::string why = rings_.misplaced(); !why.empty() && waits_ != 0) {
    cell_.worsen(CaseOutcome::Loses, why);
    return cell_;
  }
  if (obstacle) return not_run(obstacle->why + describe_end(), obstacle->is_of_any_case);
  if (!rings_.has_begun()) return not_run("it never waited" + describe_end(), true);
  if (rings_.is_refused()) return not_run("it left its event disabled" + describe_end(), true);
  if (!ended_well()) return cell_;
  if (!rings_.is_over()) return not_run("it ended before the case did", false);
  const std::string out = process_.out();
  const auto delivered = reader_.read(out);
  if (!delivered) return not_run("its output cannot be parsed: " + delivered.error(), true);
  judge_streams(case_, rings_.expected(), *delivered, cell_);
  rings_.judge_tails(cell_);
  if (cell_.outcome == CaseOutcome::Loses && out.empty()) cell_.detail += " (it printed nothing)";
  return cell_;
}

Cell run_supervised(const std::vector<std::string>& command, const Case& of, const Reader& reader,
                    const ProcessLimits& usual, KernelKind by) {
  const script::Settings& settings = of.settings;
  const std::array<std::pair<std::string_view, std::uint64_t>, 5> values{
      {{"{pages}", settings.pages},
       {"{wakeup_events}", settings.watermark ? 0 : settings.wakeup},
       {"{wakeup_watermark}", settings.watermark ? settings.wakeup : 0},
       {"{sample_type}", settings.sample_type},
       {"{sample_id_all}", settings.sample_id_all ? 1 : 0}}};
  std::vector<std::string> words = command;
  for (std::string& word : words) {
    for (const auto& [name, value] : values) {
      const std::size_t at = word.find(name);
      if (at != std::string::npos) word.replace(at, name.size(), std::to_string(value));
    }
  }
  ProcessLimits limits = usual;
  if (of.is_long) {
    limits.seconds *= 10;
    limits.cpu_seconds *= 10;
  }
  if (by == KernelKind::SimulatedKernel) {
    const SimulatedBackend backend{reader.loads_programs};
    return Supervisor{words, of, limits, backend, reader}.run();
  }
  auto why = why_not_live(of);
  if (!why) {
    auto emitter = live::Emitter::create();
    if (emitter) {
      const LiveBackend backend{*emitter};
      return Supervisor{words, of, limits, backend, reader}.run();
    }
    why = emitter.error();
  }
  Cell none;
  none.worsen(CaseOutcome::NotRun, first_line(*why));
  none.unsupported = true;
  return none;
}

}  // namespace perfring::conformance
