// `perfring record`.

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "harness/cli/option_words.h"
#include "harness/cli/record/clocks.h"
#include "harness/cli/record/record.h"
#include "harness/cli/record/record_sink.h"
#include "harness/program/checked.h"
#include "harness/program/console.h"
#include "harness/program/numbers.h"
#include "harness/program/run_program.h"
#include "harness/program/time_namespace.h"
#include "harness/program/verdict.h"
#include "perfring/event/diagnosis/check.h"
#include "perfring/event/diagnosis/event_error.h"
#include "perfring/event/event.h"
#include "perfring/event/request.h"
#include "perfring/os/fd.h"
#include "perfring/os/process.h"
#include "perfring/sampler/sampler.h"
#include "perfring/wait/waiter.h"

namespace perfring::cli {
namespace {

using event::Delivered;
using event::Event;
using event::Sampler;

struct Unrecordable {
  std::string why;
};

// Adds names, forks and maps, without which perf script shows no program and no symbol. Leaves out
// the changes that the user already requested: they would be written twice.
void add_changes(std::vector<Event>& events) {
  event::Changes missing{.execs = true, .forks = true, .maps = true};
  for (Event& each : events) {
    if (each.kind() != event::EventKind::Changes) continue;
    const perf_event_attr attr = each.attr().value();
    if (attr.comm && !each.leaves_out(PERF_RECORD_COMM)) {
      each = each.adjust([](perf_event_attr& its) { its.comm_exec = 1; });
      missing.execs = false;
    }
    if (attr.task) missing.forks = false;
    if (attr.mmap) missing.maps = false;
  }
  if (missing.execs || missing.forks || missing.maps) events.push_back(event::changes(missing));
}

std::expected<event::Request, Unrecordable> request_of(const RecordOptions& options) {
  event::Request request;
  request.page_count = 64;
  request.target = options.all ? event::system()
                   : options.pid != 0
                       ? event::process(static_cast<pid_t>(options.pid)).and_children()
                       : event::child(options.command);
  const bool is_none = !options.all && options.pid == 0 && options.command.empty();
  if (is_none) {
    return std::unexpected(Unrecordable{"no target is given: give -a, -p PID, or -- COMMAND"});
  }
  // Not checked by CLI11, which for `-F 99 -a -- true` would report this and not the unknown -F.
  if ((options.all || options.pid != 0) && !options.command.empty()) {
    return std::unexpected(Unrecordable{
        fmt::format("COMMAND: {} cannot be given together with {}: --seconds ends it",
                    in_quotes(options.command.front()), options.all ? "-a" : "-p PID")});
  }
  for (const std::string& name : options.events) {
    auto each = event::by_name(name);
    if (!each) {
      const bool is_list = event::by_name(name.substr(0, name.find(','))).has_value();
      return std::unexpected(Unrecordable{"--event: " + one_line(each.error().says) + ": " +
                                          (is_list && !name.starts_with("changes:")
                                               ? "give each event its own -e"
                                               : one_line(to_option_words(each.error().advice)))});
    }
    // Without a frequency a PMU event only counts.
    if (each->kind() == event::EventKind::Pmu) {
      *each = each->frequency(99).sample(PERF_SAMPLE_IP | PERF_SAMPLE_PERIOD);
    }
    Event wanted = options.callchains ? each->callchain() : *std::move(each);
    // An unprivileged user may see switches of his own tasks, but not with that event (R11).
    if (wanted.kind() == event::EventKind::Software &&
        wanted.attr()->config == PERF_COUNT_SW_CONTEXT_SWITCHES) {
      wanted = wanted.or_else(event::changes({.switches = true}));
    }
    request.events.push_back(std::move(wanted));
  }
  if (!options.output.empty()) add_changes(request.events);
  return request;
}

// Returns, each once, the notes on settings that had to be dropped, and on events for which the
// kernel will silently write nothing.
std::vector<std::string> notes_on(const Sampler& sampler, const event::Request& request) {
  std::vector<std::string> notes;
  const auto add = [&notes](std::string note) {
    if (std::ranges::find(notes, note) == notes.end()) notes.push_back(std::move(note));
  };
  for (const std::string& note : sampler.notes()) add(note);
  for (const event::Finding& each : event::check(request)) {
    if (each.severity == event::Finding::Severity::Silent)
      add(each.says + ": " + to_option_words(each.advice));
  }
  return notes;
}

// Redirects the command's stdout to stderr if it would mix with our JSON or bytes, as perf does
// with -o - (tools/perf/util/evlist.c: evlist__prepare_workload() at v6.18).
class CommandsStdout {
 public:
  explicit CommandsStdout(const RecordOptions& options) {
    const bool is_ours = options.output == "-" || options.output == "/dev/stdout" ||
                         (options.output.empty() && options.json);
    if (!is_ours || options.command.empty()) return;
    own_ = os::Fd{checked(::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1),
                          "fcntl(F_DUPFD_CLOEXEC) of stdout")};
    checked(::dup2(STDERR_FILENO, STDOUT_FILENO), "dup2 of stderr");
  }
  ~CommandsStdout() {
    if (own_.get() >= 0) ::dup2(own_.get(), STDOUT_FILENO);
  }
  CommandsStdout(const CommandsStdout&) = delete;
  CommandsStdout& operator=(const CommandsStdout&) = delete;

 private:
  os::Fd own_;
};

std::expected<Sampler, event::EventError> open_sampler(const RecordOptions& options,
                                                       const event::Request& request) {
  const CommandsStdout while_it_forks{options};
  return Sampler::open(request, /*starts=*/false);
}

// The process given by -p, if any.
class Watched {
 public:
  explicit Watched(std::uint64_t pid) : pid_{static_cast<pid_t>(pid)} {
    if (auto ref = os::ProcessRef::open(pid_)) ref_ = *std::move(ref);
  }
  bool has_ended() const {
    if (pid_ == 0) return false;
    // There is no pidfd on kernels before 5.3, or if the id is a thread's.
    return ref_.fd() >= 0 ? ref_.has_ended()
                          : ::access(fmt::format("/proc/{}", pid_).c_str(), F_OK) != 0;
  }

 private:
  pid_t pid_;
  os::ProcessRef ref_;
};

// Records until the command or the process ends, the time is over, or a signal arrives. Returns 0
// or an errno.
int drain(Sampler& sampler, RecordSink& sink, const RecordOptions& options, const Watched& watched,
          const std::atomic<bool>& stop) {
  using namespace std::chrono_literals;
  const auto each = [&sink](const Delivered& one) { sink.put(one); };
  const auto now = Sampler::Clock::now();
  const auto end = options.seconds == 0
                       ? Waiter::kNoDeadline
                       : now + std::chrono::duration_cast<Sampler::Clock::duration>(
                                   std::chrono::duration<double>(options.seconds));
  const auto is_over = [&] {
    return stop || watched.has_ended() || sampler.child_status().has_value() ||
           Sampler::Clock::now() >= end;
  };
  while (!is_over()) {
    sampler.wait(std::min(end, Sampler::Clock::now() + 50ms));
    sampler.for_each(each);
    if (const int error = sink.flush(); error != 0) return error;
    if (sink.is_unread()) return EPIPE;
  }
  return 0;
}

// If the command still runs when the recording ends, it gets SIGTERM and we wait for it, as perf
// does (tools/perf/builtin-record.c: __cmd_record() at v6.18), but only this long.
constexpr std::chrono::seconds kCommandsEnd{2};

void end_command(Sampler& sampler, RecordSink& sink) {
  if (sampler.child() == 0 || sampler.child_status()) return;
  static_cast<void>(sampler.signal_child(SIGTERM));
  const auto end = Sampler::Clock::now() + kCommandsEnd;
  while (!sampler.child_status()) {
    if (Sampler::Clock::now() >= end) {
      fail(fmt::format("note: the command (process {}) was sent SIGTERM, and is still running",
                       sampler.child()));
      return;
    }
    sampler.wait(Sampler::Clock::now() + std::chrono::milliseconds{20});
    sampler.for_each([&sink](const Delivered& one) { sink.put(one); });
  }
}

// Records from beginning to end. Returns 0 or an errno.
int record_to(RecordSink& sink, Sampler& sampler, const RecordOptions& options,
              const Watched& watched, const std::atomic<bool>& stop) {
  int error = sink.begin();
  if (error == 0) error = drain(sampler, sink, options, watched, stop);
  // From now on another signal ends the program.
  if (stop) StopOnSignals::restore_signals();
  end_command(sampler, sink);
  if (error != 0) return error;
  sampler.flush([&sink](const Delivered& one) { sink.put(one); });
  error = sink.flush();
  return error == 0 ? sink.close() : error;
}

}  // namespace

int run_command(const RecordOptions& options) {
  const auto request = request_of(options);
  if (!request) return fail(request.error().why);
  const StopOnSignals signals;
  const Watched watched{options.pid};
  auto sampler = open_sampler(options, *request);
  if (!sampler) {
    const auto& causes = sampler.error().causes;
    const bool only_counts = std::ranges::find(causes, std::string_view{"sample_period"},
                                               &event::Cause::field) != causes.end();
    fail(to_option_words(sampler.error().explain()));
    return only_counts ? fail("note: perfring record samples every event; perf stat counts them")
                       : kUsageOrEnvironment;
  }
  RecordSink sink{options, *sampler, signals.requested()};
  if (const std::string why = sink.open(); !why.empty()) return fail(why);
  // Not fail(): after it a signal would end the program instead of the recording.
  for (const std::string& note : notes_on(*sampler, *request)) {
    ProgressLine{}.keep(fmt::format("{}: note: {}", program_name(), one_line(note)));
  }
  if (const auto started = sampler->start(); !started)
    return fail(to_option_words(started.error().explain()));
  const int error = record_to(sink, *sampler, options, watched, signals.requested());
  if (error == ETIMEDOUT) {
    // Do not wait for a reader of stderr, either: ProgressLine drops the line instead.
    ProgressLine{}.keep(fmt::format("{}: {}", program_name(), sink.why(error)));
    return kUsageOrEnvironment;
  }
  if (error != 0) return fail(sink.why(error));
  if (sink.left_out() != 0) {
    fail(
        fmt::format("note: {} {} left out of the file: another program samples the same event, so "
                    "they cannot be attributed (R25)",
                    counted(sink.left_out(), "sample"), sink.left_out() == 1 ? "was" : "were"));
  }
  const event::Counts& counts = sampler->counts();
  const std::string note = note_on_clock(counts.ahead, monotonic_offset());
  if (!note.empty() && sampler->rings() > 1) fail(note);
  return deliver_to_stderr(
      fmt::format("{}, {} lost, {} late, {} ahead of the clock, {} malformed\n",
                  counted(counts.delivered, "record"), sampler->lost(), counts.late, counts.ahead,
                  counts.malformed),
      kHolds);
}

}  // namespace perfring::cli
