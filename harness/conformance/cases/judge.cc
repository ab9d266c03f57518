#include "harness/conformance/cases/judge.h"

#include <fmt/format.h>
#include <linux/prctl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstddef>
#include <utility>

#include "harness/program/console.h"

namespace perfring::conformance {
namespace {

using Kind = Wanted::Kind;

// Whether `delivered` is the expected event. A sample's padding may be any bytes.
bool matches(const Event& expected, const Event& delivered) {
  const bool sample = expected.kind == Kind::Sample || expected.kind == Kind::Maybe;
  if (sample != (delivered.kind == Kind::Sample)) return false;
  if (!sample) return expected.kind == delivered.kind && expected.lost == delivered.lost;
  const std::size_t size = expected.payload.size();
  return delivered.payload.size() == size + expected.padding &&
         std::equal(expected.payload.begin(), expected.payload.end(), delivered.payload.begin());
}

class Judgement {
 public:
  // `next`: the first expected event that has not been judged.
  Judgement(const Case& of, std::span<const Event> expected, std::size_t next, Cell& cell)
      : of_{of}, expected_{expected}, cell_{cell}, next_{next} {}

  void judge_event(const Event& delivered) {
    if (delivered.kind == Kind::Bad) return judge_error();
    const auto from = expected_.begin() + static_cast<std::ptrdiff_t>(next_);
    const auto found = std::find_if(from, expected_.end(),
                                    [&](const Event& each) { return matches(each, delivered); });
    if (found == expected_.end()) {
      const bool again = std::any_of(expected_.begin(), from,
                                     [&](const Event& each) { return matches(each, delivered); });
      cell_.worsen(CaseOutcome::Garbage, (again ? "delivered again: " : "never written: ") +
                                             to_text(delivered) + due_instead_of(delivered));
      return;
    }
    skip_to(found);
    if (found->kind == Kind::Maybe) {
      cell_.accept(of_, Accept::Guesses, CaseOutcome::Garbage, "delivered: " + to_text(delivered));
    } else {
      judge_skipped();
    }
    ++next_;
  }

  void end() {
    skip_to(expected_.end());
    judge_skipped();
  }

 private:
  void judge_error() {
    // The consumer delivered an intact record first. This is the error that was due before it.
    if (silent_) {
      silent_ = false;
      unreported_.clear();
      return;
    }
    // The error is due now.
    if (next_ < expected_.size() && expected_[next_].kind == Kind::Bad) {
      ++next_;
      return;
    }
    std::size_t before = next_;
    while (before > 0 && expected_[before - 1].kind == Kind::Maybe) --before;
    if (before > 0 && expected_[before - 1].kind == Kind::Bad) {
      return cell_.accept(of_, Accept::Errors, CaseOutcome::Garbage,
                          "a second error for one malformed record");
    }
    cell_.worsen(CaseOutcome::Garbage, "an error for an intact record");
  }

  // Returns the count that was due: it shows where the consumer read the wrong one.
  std::string due_instead_of(const Event& delivered) const {
    if (delivered.kind != Kind::Lost) return "";
    const auto rest = expected_.subspan(next_);
    const auto due = std::ranges::find(rest, Kind::Lost, &Event::kind);
    return due == rest.end() ? "" : ", expected " + to_text(*due);
  }

  template <class Iterator>
  void skip_to(Iterator to) {
    for (; expected_.begin() + static_cast<std::ptrdiff_t>(next_) != to; ++next_) {
      const Event& event = expected_[next_];
      if (event.kind == Kind::Maybe) {
        if (silent_ && !event.damaged && unreported_.empty()) unreported_ = to_text(event);
        continue;
      }
      judge_skipped();
      if (event.kind == Kind::Bad) {
        silent_ = true;
        continue;
      }
      cell_.worsen(CaseOutcome::Loses, "not delivered: " + to_text(event));
    }
  }

  // Judges a malformed record that was passed over, once no error can follow for it.
  void judge_skipped() {
    if (silent_) {
      cell_.accept(of_, Accept::Silent, CaseOutcome::Loses, "a malformed record was skipped");
    }
    if (!unreported_.empty()) {
      cell_.worsen(CaseOutcome::Loses, "not delivered, and not reported: " + unreported_);
    }
    silent_ = false;
    unreported_.clear();
  }

  const Case& of_;
  std::span<const Event> expected_;
  Cell& cell_;
  std::size_t next_;
  bool silent_ = false;       // a malformed record was skipped, so far without an error
  std::string unreported_{};  // the first intact record that was passed over with it
};

}  // namespace

const char* to_string(CaseOutcome outcome) {
  switch (outcome) {
    case CaseOutcome::Right:
      return "right";
    case CaseOutcome::Acceptable:
      return "acceptable";
    case CaseOutcome::NotRun:
      return "not run";
    case CaseOutcome::Loses:
      return "loses";
    case CaseOutcome::Garbage:
      return "garbage";
    case CaseOutcome::Floods:
      return "floods";
    case CaseOutcome::Hangs:
      return "hangs";
    case CaseOutcome::Crashes:
      return "crashes";
    case CaseOutcome::OutOfBounds:
      return "out of bounds";
  }
  return "unknown outcome";
}

void Cell::worsen(CaseOutcome to, std::string why) {
  if (to <= outcome) return;
  outcome = to;
  detail = std::move(why);
}

void Cell::accept(const Case& of, Accept as, CaseOutcome otherwise, const std::string& why) {
  if (!of.accepts_outcome(as)) return worsen(otherwise, why);
  const auto at = std::ranges::lower_bound(accepted, as);
  if (at == accepted.end() || *at != as) accepted.insert(at, as);
  worsen(CaseOutcome::Acceptable, why);
}

void confine(const ProcessLimits& limits) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  for (const int ignored : {SIGINT, SIGPIPE, SIGXFSZ}) ::signal(ignored, SIG_DFL);
  const rlimit core{0, 0};
  const rlimit cpu{limits.cpu_seconds, limits.cpu_seconds + 1};
  const rlimit output{static_cast<rlim_t>(limits.output), static_cast<rlim_t>(limits.output)};
  ::setrlimit(RLIMIT_CORE, &core);
  ::setrlimit(RLIMIT_CPU, &cpu);
  ::setrlimit(RLIMIT_FSIZE, &output);
}

double cpu_seconds_of(const rusage& used) {
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return seconds(used.ru_utime) + seconds(used.ru_stime);
}

bool judge_end(int exit_code, std::string_view out, std::string_view err,
               const ProcessLimits& limits, Cell& cell) {
  constexpr int kSignal = 128;
  const int signal = exit_code - kSignal;
  const std::string error_line = err.empty() ? "" : ": " + first_line(err);
  // A program that ignores SIGXFSZ, as Python does, continues, or reports that it could not write.
  if (signal == SIGXFSZ || std::max(out.size(), err.size()) >= limits.output) {
    cell.worsen(CaseOutcome::Floods, fmt::format("more than {} bytes of output", limits.output));
  } else if (exit_code == 0) {
    return true;
  } else if (signal == SIGXCPU) {
    cell.worsen(CaseOutcome::Hangs, fmt::format("{} s of CPU time", limits.cpu_seconds));
  } else if (signal > 0) {
    cell.worsen(CaseOutcome::Crashes, fmt::format("signal {}{}", signal, error_line));
  } else {
    cell.worsen(CaseOutcome::Crashes, fmt::format("exit code {}{}", exit_code, error_line));
  }
  return false;
}

void judge_events(const Case& of, std::span<const Event> expected, std::span<const Event> delivered,
                  Cell& cell) {
  std::vector<Event> none;
  judge_turn(of, none, expected, delivered, cell);
}

void judge_turn(const Case& of, std::vector<Event>& so_far, std::span<const Event> expected,
                std::span<const Event> delivered, Cell& cell) {
  const std::size_t begin = so_far.size();
  so_far.insert(so_far.end(), expected.begin(), expected.end());
  Judgement judgement{of, so_far, begin, cell};
  for (const Event& each : delivered) judgement.judge_event(each);
  judgement.end();
}

void judge_streams(const Case& of, std::span<const std::span<const Event>> expected,
                   std::span<const Event> delivered, Cell& cell) {
  if (expected.size() == 1) return judge_events(of, expected[0], delivered, cell);
  std::vector<std::vector<Event>> of_each(expected.size());
  for (const Event& event : delivered) {
    // Choose the first ring that expects the event and has not had it. Ring 0 gets any other event.
    std::size_t ring = 0;
    for (std::size_t i = expected.size(); i-- > 0;) {
      const auto is_this = [&](const Event& each) { return matches(each, event); };
      const auto had = std::ranges::count(of_each[i], event);
      if (std::ranges::count_if(expected[i], is_this) > had) ring = i;
    }
    of_each[ring].push_back(event);
  }
  for (std::size_t i = 0; i < expected.size(); ++i) {
    judge_events(of, expected[i], of_each[i], cell);
  }
}

bool is_among(std::span<const Event> expected, const Event& delivered) {
  return std::ranges::any_of(expected, [&](const Event& each) { return matches(each, delivered); });
}

std::size_t first_difference(std::span<const Event> expected, std::span<const Event> delivered) {
  const auto differs = std::ranges::mismatch(
      expected, delivered,
      [](const Event& due, const Event& event) { return matches(due, event); });
  return static_cast<std::size_t>(differs.in2 - delivered.begin());
}

std::string to_text(const Tails& tails) {
  return fmt::format("data_tail went from {:#x} to {:#x}, data_head is {:#x}", tails.before,
                     tails.after, tails.head);
}

void judge_place(const Tails& tails, Cell& cell) {
  if (tails.moved() <= tails.published()) return;
  cell.worsen(CaseOutcome::Loses, "a tail beyond the head: " + to_text(tails));
}

void judge_tail(const Case& of, const Tails& tails, Cell& cell) {
  const std::uint32_t moved = tails.moved();
  if (moved >= tails.published()) return judge_place(tails, cell);
  const CaseOutcome otherwise = moved % 8 == 0 ? CaseOutcome::Loses : CaseOutcome::Garbage;
  cell.accept(of, Accept::Stops, otherwise, to_text(tails));
}

std::string to_text(const Event& event) {
  if (event.kind == Kind::Bad) return "error";
  if (event.kind == Kind::Lost) return fmt::format("LOST {}", event.lost);
  std::string text = fmt::format("sample of {} bytes:", event.payload.size());
  constexpr std::size_t kShown = 16;
  for (std::size_t i = 0; i < std::min(event.payload.size(), kShown); ++i) {
    text += fmt::format(" {:02x}", static_cast<unsigned>(event.payload[i]));
  }
  return text + (event.payload.size() > kShown ? "..." : "");
}

}  // namespace perfring::conformance
