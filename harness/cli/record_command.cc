// `perfring record`.

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "harness/cli/command_line.h"
#include "harness/program/console.h"
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

std::expected<event::Request, Refused> request_of(const RecordOptions& options) {
  event::Request request;
  request.page_count = 64;
  request.target = options.all ? event::system()
                   : options.pid != 0
                       ? event::process(static_cast<pid_t>(options.pid)).and_children()
                       : event::child(options.command);
  if (!options.all && options.pid == 0 && options.command.empty()) {
    return std::unexpected(Refused{"no target is given: say -a, -p PID, or -- COMMAND"});
  }
  for (const std::string& name : options.events) {
    auto each = event::by_name(name);
    if (!each) {
      return std::unexpected(Refused{"--event: " + one_line(each.error().says) + ": " +
                                     one_line(each.error().advice)});
    }
    Event wanted = options.callchains ? each->callchain() : *std::move(each);
    // A plain user may see his own switches, but not by that event (R11).
    if (wanted.kind() == event::Kind::Software &&
        wanted.attr()->config == PERF_COUNT_SW_CONTEXT_SWITCHES) {
      wanted = wanted.or_else(event::changes({.switches = true}));
    }
    request.events.push_back(std::move(wanted));
  }
  // Without them perf script knows no program and no symbol.
  if (!options.output.empty()) {
    request.events.push_back(event::changes({.execs = true, .forks = true, .maps = true}));
  }
  return request;
}

// What perf is told of the events, which have the names that were given.
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

// The destination of records: lines on stdout, or a file.
class Sink {
 public:
  Sink(const RecordOptions& options, const Sampler& sampler) : options_{options} {
    for (const event::Opened& each : sampler.events()) {
      events_.push_back({each.attr, each.ids});
      names_.push_back(each.name);
    }
  }

  // 0 or an errno.
  int open() {
    if (options_.output.empty()) return 0;
    file_ = os::Fd{::open(options_.output.c_str(),
                          O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NONBLOCK, 0666)};
    if (file_.get() < 0) return errno;
    if (options_.all || options_.pid != 0) {
      // By the event of changes, which is the last.
      text_ = record::existing_tasks(events_.back().attr, events_.back().ids.front(),
                                     static_cast<pid_t>(options_.pid));
    }
    return write_all(file_.get(), record::perf_data_header(events_, 0));
  }

  void put(const Delivered& each) {
    if (!options_.output.empty()) {
      text_.append(reinterpret_cast<const char*>(each.bytes.data()), each.bytes.size());
    } else if (options_.json) {
      nlohmann::ordered_json json{{"event", name_of(each)}, {"late", each.late}};
      json.update(record::to_json(each.record));
      text_ += record::line_of(json);
    } else {
      text_ += one_line(name_of(each)) + (each.late ? " (late): " : ": ") + to_string(each.record) +
               "\n";
    }
  }

  // Writes the records that were put so far. 0 or an errno.
  int flush() {
    written_ += text_.size();
    const int fd = options_.output.empty() ? STDOUT_FILENO : file_.get();
    const int error = write_all(fd, text_);
    text_.clear();
    return error;
  }

  // What stands behind the records; and the header again, which says how long they are by now.
  int close() {
    if (options_.output.empty()) return 0;
    const int error = write_all(
        file_.get(), record::perf_data_features(events_, written_, features_of(options_)));
    if (error != 0) return error;
    if (::lseek(file_.get(), 0, SEEK_SET) != 0) return errno;
    return write_all(file_.get(), record::perf_data_header(events_, written_, /*finished=*/true));
  }

 private:
  std::string name_of(const Delivered& each) const {
    return each.event < names_.size() ? names_[each.event] : "an event that is not known";
  }

  const RecordOptions& options_;
  std::vector<record::PerfDataEvent> events_;
  std::vector<std::string> names_;
  os::Fd file_;
  std::string text_;
  std::uint64_t written_ = 0;
};

// Until the command ends, the time is over, or a signal comes. 0 or an errno.
int drain(Sampler& sampler, Sink& sink, const RecordOptions& options,
          const std::atomic<bool>& stop) {
  using namespace std::chrono_literals;
  const auto each = [&sink](const Delivered& one) { sink.put(one); };
  const auto now = Sampler::Clock::now();
  const auto end = options.seconds == 0
                       ? Waiter::kNoDeadline
                       : now + std::chrono::duration_cast<Sampler::Clock::duration>(
                                   std::chrono::duration<double>(options.seconds));
  const auto is_over = [&] {
    const bool gone =
        options.pid != 0 && ::kill(static_cast<pid_t>(options.pid), 0) != 0 && errno == ESRCH;
    return stop || gone || sampler.child_status().has_value() || Sampler::Clock::now() >= end;
  };
  while (!is_over()) {
    sampler.wait(std::min(end, Sampler::Clock::now() + 50ms));
    sampler.for_each(each);
    if (const int error = sink.flush(); error != 0) return error;
  }
  sampler.flush(each);
  return sink.flush();
}

}  // namespace

int run_command(const RecordOptions& options) {
  const auto request = request_of(options);
  if (!request) return fail(request.error().why);
  const StopOnSignals signals;
  auto sampler = Sampler::open(*request, /*starts=*/false);
  if (!sampler) return fail(sampler.error().explain());
  for (const std::string& note : sampler->notes()) fail("note: " + one_line(note));
  for (const event::Finding& each : event::check(*request)) {
    if (each.severity != event::Finding::Severity::Silent) continue;
    fail("note: " + one_line(each.says) + ": " + one_line(each.advice));
  }
  Sink sink{options, *sampler};
  const std::string where = options.output.empty() ? "stdout" : in_quotes(options.output);
  int error = sink.open();
  if (error == 0) {
    if (const auto started = sampler->start(); !started) return fail(started.error().explain());
    error = drain(*sampler, sink, options, signals.requested());
  }
  if (error == 0) error = sink.close();
  if (error != 0) {
    return fail(
        fmt::format("{} cannot be written: {}", where, std::generic_category().message(error)));
  }
  const event::Counts& counts = sampler->counts();
  return deliver_to_stderr(
      fmt::format("{}, {} lost, {} late, {} malformed\n", counted(counts.delivered, "record"),
                  sampler->lost(), counts.late, counts.malformed),
      kHolds);
}

}  // namespace perfring::cli
