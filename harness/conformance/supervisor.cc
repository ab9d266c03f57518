#include "harness/conformance/supervisor.h"

#include <fmt/format.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <string_view>
#include <utility>

#include "harness/program/console.h"

namespace perfring::conformance {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr int kSigints = 20;  // one may be lost (P25)
constexpr auto kPause = milliseconds{100};
constexpr auto kIdle = milliseconds{2000};  // for a program that opens no ring, or never waits

}  // namespace

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
  // A watermark above the ring is the ring (K30).
  const auto within = [&](std::uint64_t wakeup) {
    return wanted.watermark ? std::min(wakeup, pages * 4096) : wakeup;
  };
  const bool same_wakeups = wanted.watermark == (event.attr.watermark != 0) &&
                            within(wanted.wakeup) == within(event.attr.wakeup_events);
  if (case_.asks_for_wakeups() && !same_wakeups) {
    return fmt::format("the case is of {} {}",
                       wanted.watermark ? "wakeup_watermark" : "wakeup_events", wanted.wakeup);
  }
  if (pages < wanted.pages || (case_.exact && pages != wanted.pages)) {
    return fmt::format("the ring has {} pages, the case needs {}", pages, wanted.pages);
  }
  return {};
}

// The case's, in a ring that may have more pages and other fields in a sample.
script::Settings Supervisor::settings_of(const Opened& event, std::uint64_t pages,
                                         bool plays) const {
  script::Settings settings = plays ? case_.settings : script::Settings{};
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
  return settings;
}

void Supervisor::on_map(Opened& event, std::uint64_t pages) {
  Played& played = played_[event.cpu];
  const bool plays = played.event == nullptr;
  if (plays && impossible_.empty()) impossible_ = why_impossible(event, pages);
  const script::Settings settings = settings_of(event, pages, plays);
  if (emitter_ == nullptr) {
    event.make_ring(settings);
  } else if (plays && impossible_.empty()) {
    try {
      event.make_live(*emitter_, settings.start);
    } catch (const std::runtime_error& error) {
      impossible_ = error.what();
    }
  }
  if (plays) played = {&event, {settings.start, settings.start, settings.start}};
}

// Whether the producer can begin.
bool Supervisor::all_mapped() {
  if (producer_ != nullptr) return true;
  std::vector<rig::SimulatedRing*> rings;
  std::vector<LiveRing*> live;
  for (std::size_t cpu = 0; cpu < played_.size(); ++cpu) {
    const bool absent = case_.absent.contains(cpu);
    if (!absent && played_[cpu].event == nullptr) return false;
    rings.push_back(absent ? nullptr : played_[cpu].event->ring.get());
    live.push_back(absent ? nullptr : played_[cpu].event->live.get());
  }
  producer_ = emitter_ == nullptr ? std::make_unique<CaseProducer>(case_, rings)
                                  : std::make_unique<CaseProducer>(case_, live);
  return true;
}

// The subject enters the last of the case's rings in its map: now comes what a producer writes
// while it registers.
void Supervisor::on_map_update(Opened& event) {
  const bool is_last = &event == played_.back().event;
  if (is_last && turns_ == 0 && impossible_.empty() && all_mapped()) producer_->while_registering();
}

void Supervisor::producers_turn() {
  if (!impossible_.empty() || !all_mapped()) {
    ++waits_after_;
    return;
  }
  for (Played& each : played_) {
    if (each.event != nullptr) each.tails.after = each.event->page().data_tail;
  }
  if (!producer_->turn()) {
    ++waits_after_;
    return;
  }
  ++turns_;
  for (Played& each : played_) {
    if (each.event == nullptr) continue;
    const perf_event_mmap_page& page = each.event->page();
    each.tails = {page.data_tail, page.data_head, page.data_tail};
  }
}

// Little CPU time since the last look, and none that it waits for.
bool Supervisor::is_asleep() {
  const std::int64_t now = process_.cpu_ns();
  const std::int64_t used = now - std::exchange(cpu_, now);
  const bool little = used >= 0 && used < 2'000'000;  // less than nothing: a process has ended
  return little && !process_.is_running();
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

// Relative to the ring that it is in, or near; empty if it is at none.
std::string Supervisor::place_of(const Fault& fault) const {
  for (const Played& each : played_) {
    if (each.event == nullptr) continue;
    const std::uint64_t length = each.event->memory.size();
    const std::uint64_t at = fault.address - each.event->base;
    if (at + kGuard >= length + 2 * kGuard) continue;
    return fmt::format("byte {} of the ring's {}", static_cast<std::int64_t>(at), length);
  }
  return {};
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
    std::string where = "no end";
    for (const Played& each : played_) {
      if (each.event == nullptr) continue;
      where += fmt::format("; data_tail {:#x}, data_head {:#x}", each.event->page().data_tail,
                           each.tails.head);
    }
    cell.worsen(Outcome::Hangs, where);
    return false;
  }
  if (sigints_ > 0 && (signal == SIGINT || signal == SIGKILL)) return true;
  const auto& fault = process_.fault();
  if (fault) cell.backtrace = fault->frames;
  const std::string by = fault && !fault->code.empty() ? ", by " + fault->code : "";
  if (const std::string place = fault ? place_of(*fault) : ""; !place.empty()) {
    cell.worsen(Outcome::OutOfBounds, fmt::format("signal {} at {}{}", signal, place, by));
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
  const auto opened =
      std::ranges::count_if(played_, [](const Played& each) { return each.event != nullptr; });
  if (opened == 0) return not_run("it opened no ring" + last_words());
  if (impossible_.empty() && !all_mapped()) {
    impossible_ = fmt::format("it opened rings on {} of the case's {} CPUs", opened,
                              case_.cpus - case_.absent.size());
  }
  if (!impossible_.empty()) return not_run(impossible_);
  if (turns_ == 0 && !producer_->expects_any()) return not_run("it never waited" + last_words());
  if (producer_->is_refused()) return not_run("it left its event disabled" + last_words());
  Cell cell;
  if (!ended_well(cell)) return cell;
  if (!producer_->is_over()) return not_run("it ended before the case did");
  const std::string out = process_.out();
  const auto seen = read(out);
  if (!seen) return not_run("its output is not understood: " + seen.error());
  std::vector<std::span<const Event>> expected;
  for (std::size_t cpu = 0; cpu < played_.size(); ++cpu) {
    if (played_[cpu].event != nullptr) expected.emplace_back(producer_->expected_so_far(cpu));
  }
  judge_streams(case_, expected, *seen, cell);
  for (Played& each : played_) {
    if (each.event == nullptr) continue;
    each.tails.after = each.event->page().data_tail;
    judge_tail(case_, each.tails, cell);
  }
  if (cell.outcome == Outcome::Loses && out.empty()) cell.detail += " (it printed nothing)";
  if (is_failure(cell.outcome) && WIFSIGNALED(process_.status()) &&
      WTERMSIG(process_.status()) == SIGKILL) {
    cell.detail += "; it was killed, because SIGINT did not end it";
  }
  return cell;
}

Cell run_supervised(const std::vector<std::string>& command, const Case& of, Reader read,
                    const ProcessLimits& limits, Producer by) {
  const script::Settings& settings = of.settings;
  const std::array<std::pair<std::string_view, std::uint64_t>, 3> values{
      {{"{pages}", settings.pages},
       {"{wakeup_events}", settings.watermark ? 0 : settings.wakeup},
       {"{wakeup_watermark}", settings.watermark ? settings.wakeup : 0}}};
  std::vector<std::string> words = command;
  for (std::string& word : words) {
    for (const auto& [name, value] : values) {
      const std::size_t at = word.find(name);
      if (at != std::string::npos) word.replace(at, name.size(), std::to_string(value));
    }
  }
  if (by == Producer::SimulatedKernel) return Supervisor{words, of, limits, nullptr}.run(read);
  auto why = why_not_live(of);
  if (!why) {
    auto emitter = live::Emitter::create();
    if (emitter) return Supervisor{words, of, limits, &*emitter}.run(read);
    why = emitter.error();
  }
  Cell none;
  none.worsen(Outcome::NotRun, first_line(*why));
  none.unsupported = true;
  return none;
}

}  // namespace perfring::conformance
