// How a trace is shown as a table.

#include <fmt/format.h>

#include <algorithm>

#include "harness/model/engine/trace.h"

namespace perfring::model {
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
  std::vector<std::size_t> widths(trace.threads.size(), 0);  // 0: it takes no part
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
  text += fmt::format("{}, by {} [{}]", trace.cause.what, trace.threads[trace.cause.thread],
                      place(trace.cause.where, with_lines));
  if (!trace.race.empty()) text += fmt::format(": #{} and #{}", trace.race[0], trace.race[1]);
  return text + "\n";
}

}  // namespace perfring::model
