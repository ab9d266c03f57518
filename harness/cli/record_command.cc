// `perfring record`.

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "harness/cli/command_line.h"
#include "harness/program/console.h"
#include "harness/program/json.h"
#include "harness/program/numbers.h"
#include "harness/program/run_program.h"
#include "harness/program/verdict.h"
#include "harness/record/perf_data.h"
#include "harness/record/vectors.h"
#include "perfring/event/check.h"
#include "perfring/event/sampler.h"
#include "perfring/os/fd.h"
#include "perfring/record/to_string.h"

namespace perfring::cli {
namespace {

using event::Delivered;
using event::Event;
using event::Sampler;

struct Refused {
  std::string why;
};

// Without names, forks and maps perf script knows no program and no symbol. Those that were asked
// for would come twice.
void add_changes(std::vector<Event>& events) {
  event::Changes missing{.execs = true, .forks = true, .maps = true};
  for (Event& each : events) {
    if (each.kind() != event::Kind::Changes) continue;
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

std::expected<event::Request, Refused> request_of(const RecordOptions& options) {
  event::Request request;
  request.page_count = 64;
  request.target = options.all ? event::system()
                   : options.pid != 0
                       ? event::process(static_cast<pid_t>(options.pid)).and_children()
                       : event::child(options.command);
  const bool is_none = !options.all && options.pid == 0 && options.command.empty();
  if (is_none) {
    return std::unexpected(Refused{"no target is given: say -a, -p PID, or -- COMMAND"});
  }
  // (Not by CLI11: of `-F 99 -a -- true` it would say this, and not that there is no option -F.)
  if ((options.all || options.pid != 0) && !options.command.empty()) {
    return std::unexpected(
        Refused{fmt::format("COMMAND: {} cannot be given together with {}: --seconds ends it",
                            in_quotes(options.command.front()), options.all ? "-a" : "-p PID")});
  }
  for (const std::string& name : options.events) {
    auto each = event::by_name(name);
    if (!each) {
      const bool is_list = event::by_name(name.substr(0, name.find(','))).has_value();
      return std::unexpected(
          Refused{"--event: " + one_line(each.error().says) + ": " +
                  (is_list && !name.starts_with("changes:") ? "give each event by an -e of its own"
                                                            : one_line(each.error().advice))});
    }
    // By itself it counts only.
    if (each->kind() == event::Kind::Pmu) {
      *each = each->frequency(99).sample(PERF_SAMPLE_IP | PERF_SAMPLE_PERIOD);
    }
    Event wanted = options.callchains ? each->callchain() : *std::move(each);
    // A plain user may see his own switches, but not by that event (R11).
    if (wanted.kind() == event::Kind::Software &&
        wanted.attr()->config == PERF_COUNT_SW_CONTEXT_SWITCHES) {
      wanted = wanted.or_else(event::changes({.switches = true}));
    }
    request.events.push_back(std::move(wanted));
  }
  if (!options.output.empty()) add_changes(request.events);
  return request;
}

// Describes the events to perf, by the names that were given.
record::PerfDataFeatures features_of(const RecordOptions& options) {
  record::PerfDataFeatures features;
  features.names = options.events;
  features.names.emplace_back("changes");
  event::System& system = event::real_system();
  const auto folder = event::internal::tracing_events(system);
  const auto text_of = [&](const std::string& file) {
    return folder ? system.read(*folder + "/" + file).value_or("") : "";
  };
  for (const std::string& name : options.events) {
    const auto event = event::by_name(name);
    if (!event || event->kind() != event::Kind::Tracepoint) continue;
    const std::size_t colon = name.find(':');
    const std::string of_system = name.substr(0, colon);
    features.tracepoints.push_back(
        {of_system, text_of(of_system + "/" + name.substr(colon + 1) + "/format")});
  }
  if (!features.tracepoints.empty()) {
    features.header_page = text_of("header_page");
    features.header_event = text_of("header_event");
  }
  return features;
}

// What was given up, and what will never be answered; each once.
std::vector<std::string> notes_on(const Sampler& sampler, const event::Request& request) {
  std::vector<std::string> notes;
  const auto add = [&notes](std::string note) {
    if (std::ranges::find(notes, note) == notes.end()) notes.push_back(std::move(note));
  };
  for (const std::string& note : sampler.notes()) add(note);
  for (const event::Finding& each : event::check(request)) {
    if (each.severity == event::Finding::Severity::Silent) add(each.says + ": " + each.advice);
  }
  return notes;
}

// The command's stdout is stderr where it would stand between JSON or bytes of ours: as perf does
// with -o - (tools/perf/util/evlist.c: evlist__prepare_workload() at v6.18).
class CommandsStdout {
 public:
  explicit CommandsStdout(const RecordOptions& options) {
    const bool is_ours = options.output == "-" || options.output == "/dev/stdout" ||
                         (options.output.empty() && options.json);
    if (!is_ours || options.command.empty()) return;
    own_ = os::Fd{::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1)};
    if (own_.get() >= 0) ::dup2(STDERR_FILENO, STDOUT_FILENO);
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

// The destination of records: lines on stdout, or a file. A file that cannot be sought (a pipe)
// gets the form that `perf record -o -` writes.
class Sink {
 public:
  Sink(const RecordOptions& options, const Sampler& sampler, const std::atomic<bool>& stop)
      : options_{options}, stop_{stop} {
    for (const event::Opened& each : sampler.events()) {
      events_.push_back({each.attr, each.ids});
      names_.push_back(each.name);
    }
  }

  // For messages.
  std::string where() const { return is_stdout() ? "stdout" : in_quotes(options_.output); }

  // Why it cannot be, or nothing. A file that is there keeps its contents until begin().
  std::string open() {
    if (is_stdout()) {
      const bool is_bytes = !options_.output.empty();
      return is_bytes && ::isatty(STDOUT_FILENO) == 1
                 ? "--output: stdout is a terminal: give a file's name, or pipe it into perf "
                   "script -i -"
                 : "";
    }
    constexpr int kFlags = O_WRONLY | O_CREAT | O_CLOEXEC | O_NONBLOCK;
    file_ = os::Fd{::open(options_.output.c_str(), kFlags, 0666)};
    if (file_.get() < 0) return why(errno);
    is_sought_ = ::lseek(file_.get(), 0, SEEK_SET) == 0;
    return {};
  }

  // 0 or an errno.
  int begin() {
    if (options_.output.empty()) return 0;
    if (is_sought_) {
      // A file that is not regular, such as /dev/null, has no length.
      if (::ftruncate(file_.get(), 0) != 0 && errno != EINVAL) return errno;
      text_ = record::perf_data_header(events_, 0);
    } else {
      text_ = record::piped_perf_data_header(events_, features_of(options_));
    }
    // By the last event. Of a command there is no task before it begins.
    const auto of =
        options_.command.empty() ? std::optional{static_cast<pid_t>(options_.pid)} : std::nullopt;
    const std::string tasks =
        record::existing_tasks(events_.back().attr, events_.back().ids.front(), of);
    written_ = tasks.size();
    text_ += tasks;
    return flush();
  }

  void put(const Delivered& each) {
    if (!options_.output.empty()) {
      put_bytes(each);
    } else if (options_.json) {
      nlohmann::ordered_json json{{"event", name_of(each)}, {"late", each.late}};
      json.update(record::to_json(each.record));
      text_ += record::line_of(json);
    } else {
      text_ += one_line(name_of(each)) + (each.late ? " (late): " : ": ") + to_string(each.record) +
               "\n";
    }
  }

  // Samples that the file is without.
  std::uint64_t left_out() const { return left_out_; }

  // Whether the reader of the pipe is gone. (Found without a write, which may be long in coming.)
  bool is_unread() const {
    pollfd reader{.fd = fd(), .events = 0, .revents = 0};
    return ::poll(&reader, 1, 0) == 1 && (reader.revents & POLLERR) != 0;
  }

  // Writes what was put so far. 0 or an errno.
  int flush() {
    const int error = write_all(fd(), text_, stop_);
    text_.clear();
    return error;
  }

  // Writes the sections behind the records, and the header again, which now says how long they are.
  int close() {
    if (!is_sought_) return 0;
    const int error = write_all(
        file_.get(), record::perf_data_features(events_, written_, features_of(options_)));
    if (error != 0) return error;
    if (::lseek(file_.get(), 0, SEEK_SET) != 0) return errno;
    return write_all(file_.get(), record::perf_data_header(events_, written_, /*finished=*/true));
  }

  std::string why(int error) const {
    const std::string said = error == ETIMEDOUT ? "a signal came, and nobody reads what is written"
                                                : std::generic_category().message(error);
    return fmt::format("{} cannot be written: {}", where(), said);
  }

 private:
  // R28: perf takes sample_id from the end of each record.
  static std::size_t too_long_by(const record::Any& any) {
    if (const auto* const symbol = std::get_if<record::Ksymbol>(&any)) return symbol->rest().size();
    if (const auto* const program = std::get_if<record::BpfEvent>(&any)) {
      return program->rest().size();
    }
    const auto* const poke = std::get_if<record::TextPoke>(&any);
    return poke == nullptr ? 0 : poke->rest().size();
  }

  // Since Linux 6.3 a sample of a software event can have the id of an event that another program
  // has opened (R25), and perf 6.1 reads a file no further than that. It gets one of its own; where
  // it may be of several events, it is left out.
  void put_bytes(const Delivered& each) {
    const std::size_t at = text_.size();
    perf_event_header header{};
    std::memcpy(&header, each.bytes.data(), std::min(sizeof header, each.bytes.size()));
    const bool is_sample = header.type == PERF_RECORD_SAMPLE;
    if (is_sample && each.event >= events_.size()) {
      ++left_out_;
      return;
    }
    const std::size_t size = each.bytes.size() - too_long_by(each.record);
    text_.append(reinterpret_cast<const char*>(each.bytes.data()), size);
    written_ += size;
    if (size != each.bytes.size()) {
      header.size = static_cast<std::uint16_t>(size);
      std::memcpy(text_.data() + at, &header, sizeof header);
    }
    constexpr std::size_t kIdAt = sizeof header;  // of PERF_SAMPLE_IDENTIFIER
    std::uint64_t id = 0;
    if (!is_sample || each.bytes.size() < kIdAt + sizeof id) return;
    const record::PerfDataEvent& event = events_[each.event];
    std::memcpy(&id, each.bytes.data() + kIdAt, sizeof id);
    if (std::ranges::find(event.ids, id) != event.ids.end()) return;
    std::memcpy(text_.data() + at + kIdAt, event.ids.data(), sizeof id);
  }

  int fd() const { return is_stdout() ? STDOUT_FILENO : file_.get(); }
  bool is_stdout() const { return options_.output.empty() || options_.output == "-"; }
  std::string name_of(const Delivered& each) const {
    return each.event < names_.size() ? names_[each.event] : "an event that is not known";
  }

  const RecordOptions& options_;
  const std::atomic<bool>& stop_;
  std::vector<record::PerfDataEvent> events_;
  std::vector<std::string> names_;
  os::Fd file_;
  bool is_sought_ = false;
  std::string text_;
  std::uint64_t written_ = 0;  // of records
  std::uint64_t left_out_ = 0;
};

// The process of -p. One that nobody has waited for yet has ended, although kill() still finds it:
// its pidfd is readable (kernel/fork.c: pidfd_poll() at v6.18).
class Watched {
 public:
  explicit Watched(std::uint64_t pid) : pid_{static_cast<pid_t>(pid)} {
    if (pid_ != 0) fd_ = os::Fd{static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0))};
  }
  bool has_ended() const {
    if (pid_ == 0) return false;
    // No pidfd: the kernel is older than 5.3, or it is the id of a thread.
    if (fd_.get() < 0) return ::kill(pid_, 0) != 0 && errno == ESRCH;
    pollfd ended{.fd = fd_.get(), .events = POLLIN, .revents = 0};
    return ::poll(&ended, 1, 0) == 1;
  }

 private:
  pid_t pid_;
  os::Fd fd_;
};

// Until the command or the process ends, the time is over, or a signal comes. 0 or an errno.
int drain(Sampler& sampler, Sink& sink, const RecordOptions& options, const Watched& watched,
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

// As perf does: a command that still runs when its recording ends gets SIGTERM, and is waited for
// (tools/perf/builtin-record.c: __cmd_record() at v6.18), here for as long as this.
constexpr std::chrono::seconds kCommandsEnd{2};

void end_command(Sampler& sampler, Sink& sink) {
  if (sampler.child() == 0 || sampler.child_status()) return;
  // Its process is there until child_status() has said how it ended.
  ::kill(sampler.child(), SIGTERM);
  const auto end = Sampler::Clock::now() + kCommandsEnd;
  while (!sampler.child_status()) {
    if (Sampler::Clock::now() >= end) {
      fail(fmt::format("note: the command (process {}) was sent SIGTERM, and runs on",
                       sampler.child()));
      return;
    }
    sampler.wait(Sampler::Clock::now() + std::chrono::milliseconds{20});
    sampler.for_each([&sink](const Delivered& one) { sink.put(one); });
  }
}

// 0 or an errno.
int record_to(Sink& sink, Sampler& sampler, const RecordOptions& options, const Watched& watched,
              const std::atomic<bool>& stop) {
  int error = sink.begin();
  if (error == 0) error = drain(sampler, sink, options, watched, stop);
  // Another signal ends the program.
  if (stop) StopOnSignals::let_signals_end_the_program();
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
    const bool only_counts =
        std::ranges::find(causes, "sample_period", &event::Cause::field) != causes.end();
    fail(sampler.error().explain());
    return only_counts ? fail("note: every event is sampled here; perf stat counts")
                       : kUsageOrEnvironment;
  }
  Sink sink{options, *sampler, signals.requested()};
  if (const std::string why = sink.open(); !why.empty()) return fail(why);
  // (fail() would let a signal end the program, and not the recording.)
  for (const std::string& note : notes_on(*sampler, *request)) {
    ProgressLine{}.keep(fmt::format("{}: note: {}", program_name(), one_line(note)));
  }
  if (const auto started = sampler->start(); !started) return fail(started.error().explain());
  const int error = record_to(sink, *sampler, options, watched, signals.requested());
  if (error == ETIMEDOUT) {
    // Nor does it wait for a reader of this.
    ProgressLine{}.keep(fmt::format("{}: {}", program_name(), sink.why(error)));
    return kUsageOrEnvironment;
  }
  if (error != 0) return fail(sink.why(error));
  if (sink.left_out() != 0) {
    fail(
        fmt::format("note: {} could be of several events, and are not in the file: another program "
                    "samples the same event (R25)",
                    counted(sink.left_out(), "sample")));
  }
  const event::Counts& counts = sampler->counts();
  return deliver_to_stderr(
      fmt::format("{}, {} lost, {} late, {} malformed\n", counted(counts.delivered, "record"),
                  sampler->lost(), counts.late, counts.malformed),
      kHolds);
}

}  // namespace perfring::cli
