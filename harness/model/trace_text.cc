// How a trace is shown: as a table, and as a graph.

#include <fmt/format.h>

#include <algorithm>

#include "harness/model/trace.h"

namespace perfring::model {
namespace {

std::string origin(std::size_t number) {
  return number == 0 ? "initial" : fmt::format("#{}", number);
}

// "data_head := 16", "data_head = 16".
std::string access(const TraceEvent& event) {
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

std::string relations(const TraceEvent& event) {
  std::string text;
  if (event.reads_from) text += fmt::format(" rf {}", origin(*event.reads_from));
  if (event.after) text += fmt::format(" co after {}", origin(*event.after));
  return text;
}

std::string place(const Where& where, bool with_lines) {
  const std::string text = to_string(where);
  return with_lines ? text : text.substr(0, text.rfind(':'));
}

std::string quoted(const std::string& text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '"' || c == '\\') escaped += '\\';
    escaped += c;
  }
  return '"' + escaped + '"';
}

}  // namespace

std::string trace_table(const Trace& trace, bool with_lines) {
  std::vector<std::vector<std::string>> rows;
  std::vector<std::size_t> widths(trace.threads.size(), 0);  // 0: it takes no part
  for (const TraceEvent& event : trace.events) {
    const std::string cell =
        fmt::format("{}{} [{}]", access(event), relations(event), place(event.where, with_lines));
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

// A cluster for each thread; reads-from is green, modification order orange.
std::string trace_dot(const Trace& trace) {
  std::string text =
      "digraph {\n  node [shape=box, fontname=monospace, fontsize=10]\n"
      "  edge [fontname=monospace, fontsize=9]\n  initial [shape=ellipse, label=\"initial "
      "values\"]\n";
  for (std::size_t thread = 0; thread < trace.threads.size(); ++thread) {
    std::string nodes, order;
    for (std::size_t i = 0; i < trace.events.size(); ++i) {
      const TraceEvent& event = trace.events[i];
      if (event.thread != thread) continue;
      const bool races = std::ranges::find(trace.race, i + 1) != trace.race.end();
      nodes += fmt::format(
          "    e{} [label={}{}]\n", i + 1,
          quoted(fmt::format("#{} {}  {}", i + 1, access(event), to_string(event.where))),
          races ? ", color=red, penwidth=2" : "");
      order += fmt::format("{}e{}", order.empty() ? "" : " -> ", i + 1);
    }
    if (nodes.empty()) continue;
    text += fmt::format("  subgraph cluster_{} {{\n    label={}\n{}    {} [weight=10]\n  }}\n",
                        thread, quoted(trace.threads[thread]), nodes, order);
  }
  const auto edge = [&](std::size_t from, std::size_t to, const char* name, const char* color) {
    text += fmt::format("  {} -> e{} [label={}, color={}, fontcolor={}, constraint=false]\n",
                        from == 0 ? "initial" : fmt::format("e{}", from), to, name, color, color);
  };
  for (std::size_t i = 0; i < trace.events.size(); ++i) {
    const TraceEvent& event = trace.events[i];
    if (event.reads_from) edge(*event.reads_from, i + 1, "rf", "forestgreen");
    if (event.after && *event.after != 0) edge(*event.after, i + 1, "co", "darkorange");
  }
  if (!trace.race.empty()) {
    text += fmt::format(
        "  e{} -> e{} [label=race, dir=none, color=red, fontcolor=red, "
        "constraint=false]\n",
        trace.race[0], trace.race[1]);
  }
  return text + fmt::format("  label={}\n}}\n", quoted(trace.cause.what));
}

}  // namespace perfring::model
