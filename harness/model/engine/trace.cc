#include "harness/model/engine/trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

namespace perfring::model {

namespace {

// Returns the events that the cause depends on. A check at the end depends on all events.
std::vector<bool> prefix(const Execution& x, const Cause& cause) {
  std::vector<bool> kept(x.events.size(), false);
  const bool race = x.race.first != kNone;
  if (!race && x.threads[cause.thread].is_finally) {
    std::fill(kept.begin() + static_cast<std::ptrdiff_t>(x.latest.size()), kept.end(), true);
    return kept;
  }
  std::array<std::uint16_t, kThreads> upto{};  // the number of events kept of each thread
  if (race) {
    for (const EventId id : {x.race.first, x.race.second}) {
      upto[x.events[id].thread] = std::max(upto[x.events[id].thread], x.events[id].index);
    }
  } else {
    upto[cause.thread] = x.threads[cause.thread].events;
  }
  // Each event follows every event that it depends on.
  for (std::size_t i = x.events.size(); i-- > x.latest.size();) {
    const Event& event = x.events[i];
    kept[i] = event.index <= upto[event.thread];
    if (!kept[i] || event.reads_from == kNone) continue;
    const Event& source = x.events[event.reads_from];
    if (!source.is_initial()) upto[source.thread] = std::max(upto[source.thread], source.index);
  }
  return kept;
}

// Returns the write's predecessor in modification order, among the kept events.
EventId kept_before(const Execution& x, EventId write, const std::vector<bool>& kept) {
  EventId at = x.events[write].earlier;
  while (!x.events[at].is_initial() && !kept[at]) at = x.events[at].earlier;
  return at;
}

}  // namespace

Trace trace_of(const Program& program, const Execution& x, const Cause& cause) {
  Trace trace;
  trace.cause = cause;
  trace.execution_events = x.events.size();
  trace.at_end = x.threads[cause.thread].is_finally;
  for (std::size_t i = 0; i < x.threads.size(); ++i) {
    const bool named = i < program.thread_names.size();
    trace.threads.push_back(x.threads[i].is_finally ? "at the end"
                            : named                 ? program.thread_names[i]
                                                    : "thread " + std::to_string(i));
  }
  const std::vector<bool> kept = prefix(x, cause);
  std::vector<std::size_t> numbers(x.events.size(), 0);
  for (std::size_t i = x.latest.size(); i < x.events.size(); ++i) {
    if (!kept[i]) continue;
    const Event& event = x.events[i];
    TraceEvent& added = trace.events.emplace_back();
    numbers[i] = trace.events.size();
    added.thread = event.thread;
    added.kind = event.step->kind;
    added.order = event.order;
    added.where = event.step->where;
    if (added.kind == Step::Kind::Fence) continue;
    added.location = program.locations[event.location].name;
    if (event.reads_from != kNone) {
      added.read = event.read;
      added.reads_from = numbers[event.reads_from];
    }
    if (event.writes) added.written = event.written;
  }
  // In modification order, a write may precede events that are earlier in the trace.
  for (std::size_t i = x.latest.size(); i < x.events.size(); ++i) {
    if (!kept[i] || !x.events[i].writes) continue;
    trace.events[numbers[i] - 1].after = numbers[kept_before(x, static_cast<EventId>(i), kept)];
  }
  if (x.race.first != kNone) trace.race = {numbers[x.race.first], numbers[x.race.second]};
  trace.violated = trace.race;
  for (std::size_t number = trace.events.size(); trace.violated.empty() && number > 0; --number) {
    if (trace.events[number - 1].thread == cause.thread) trace.violated = {number};
  }
  return trace;
}

bool Trace::overtakes() const {
  return std::ranges::any_of(events,
                             [](const TraceEvent& event) { return event.overtakes.has_value(); });
}

const char* to_string(Order order) {
  switch (order) {
    case Order::NonAtomic:
      return "plain";
    case Order::Relaxed:
      return "relaxed";
    case Order::Acquire:
      return "acquire";
    case Order::Release:
      return "release";
    case Order::AcquireRelease:
      return "acq_rel";
    case Order::SequentiallyConsistent:
      return "seq_cst";
    case Order::StoreStore:
      return "store-store";
  }
  return "";
}

const char* to_string(Step::Kind kind) {
  switch (kind) {
    case Step::Kind::Read:
      return "read";
    case Step::Kind::Write:
      return "write";
    case Step::Kind::Update:
      return "update";
    case Step::Kind::Fence:
      return "fence";
    default:
      return "";
  }
}

std::string to_string(const Where& where) {
  const std::string_view file = where.file;
  const std::size_t slash = file.rfind('/');
  const std::string_view name = slash == std::string_view::npos ? file : file.substr(slash + 1);
  return std::string{name} + ":" + std::to_string(where.line);
}

// The trace as a table.

namespace {

std::string origin(std::size_t number) {
  return number == 0 ? "initial" : fmt::format("#{}", number);
}

std::string relations_of(const TraceEvent& event) {
  std::string text;
  if (event.reads_from) text += fmt::format(" rf {}", origin(*event.reads_from));
  if (event.after) text += fmt::format(" co after {}", origin(*event.after));
  if (event.overtakes) text += fmt::format(" overtakes #{}", *event.overtakes);
  return text;
}

std::string place(const Where& where, bool with_lines) {
  const std::string text = to_string(where);
  return with_lines ? text : text.substr(0, text.rfind(':'));
}

}  // namespace

std::string to_string(const TraceEvent& event) {
  switch (event.kind) {
    case Step::Kind::Fence:
      return fmt::format("fence {}", to_string(event.order));
    case Step::Kind::Read:
      return fmt::format("{} = {:#x} {}", event.location, *event.read, to_string(event.order));
    case Step::Kind::Write:
      return fmt::format("{} := {:#x} {}", event.location, *event.written, to_string(event.order));
    default:
      return event.written ? fmt::format("{} = {:#x} := {:#x} {}", event.location, *event.read,
                                         *event.written, to_string(event.order))
                           : fmt::format("{} = {:#x} not changed, {}", event.location, *event.read,
                                         to_string(event.order));
  }
}

std::string trace_table(const Trace& trace, bool with_lines) {
  std::vector<std::vector<std::string>> rows;
  std::vector<std::size_t> widths(trace.threads.size(), 0);  // 0: the thread has no event
  for (const TraceEvent& event : trace.events) {
    const std::string cell = fmt::format("{}{} [{}]", to_string(event), relations_of(event),
                                         place(event.where, with_lines));
    std::size_t& width = widths[event.thread];
    width = std::max({width, cell.size(), trace.threads[event.thread].size()});
    rows.emplace_back(trace.threads.size())[event.thread] = cell;
  }
  std::string text;
  const auto add_row = [&](const std::string& number, const std::vector<std::string>& cells) {
    std::string line = fmt::format("{:>4}", number);
    for (std::size_t i = 0; i < cells.size(); ++i) {
      if (widths[i] != 0) line += fmt::format("  {:{}}", cells[i], widths[i]);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  };
  add_row("#", trace.threads);
  for (std::size_t i = 0; i < rows.size(); ++i) add_row(std::to_string(i + 1), rows[i]);
  text += fmt::format("{}, {}{} [{}]", trace.cause.what, trace.at_end ? "" : "by ",
                      trace.threads[trace.cause.thread], place(trace.cause.where, with_lines));
  if (!trace.race.empty()) text += fmt::format(": #{} and #{}", trace.race[0], trace.race[1]);
  return text + "\n";
}

}  // namespace perfring::model
