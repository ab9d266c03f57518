// Draws a trace. All positions are computed here, in points: Graphviz's own layouts do not keep the
// threads in order, and route long edges around the boxes.

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "harness/model/engine/trace.h"

namespace perfring::model {
namespace {

constexpr std::string_view kReadsFrom = "forestgreen";
constexpr std::string_view kModificationOrder = "darkorange";
constexpr std::string_view kProgramOrder = "gray60";
constexpr std::string_view kViolated = "red";

constexpr int kRow = 24;     // from one box to the next
constexpr int kGap = 120;    // between threads
constexpr int kMargin = 12;  // of a thread's frame
constexpr int kTitle = 20;   // for a thread's name
constexpr int kArrow = 6;

std::string quoted(const std::string& text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '"' || c == '\\') escaped += '\\';
    escaped += c;
  }
  return '"' + escaped + '"';
}

// Returns the text in a color, for a label between < and >.
std::string colored(const std::string& text, std::string_view color) {
  std::string escaped;
  for (const char c : text) {
    escaped += c == '<' ? "&lt;" : c == '>' ? "&gt;" : c == '&' ? "&amp;" : std::string{c};
  }
  return fmt::format("<font color=\"{}\">{}</font>", color, escaped);
}

int width_of(std::size_t characters) {
  return static_cast<int>(characters) * 61 / 10 + 14;
}

// Returns how far an edge between two boxes of a thread bulges out from them.
int bulge(std::size_t from, std::size_t to) {
  const int rows = std::abs(static_cast<int>(to) - static_cast<int>(from));
  return 10 + std::min(3 * rows, 50);
}

// Returns the edges in words, as in the table: among many edges, an arrow is hard to follow.
std::string relations(const TraceEvent& event) {
  std::string text;
  if (event.reads_from.value_or(0) != 0) {
    text += fmt::format(" rf #{}", *event.reads_from);
  } else if (event.reads_from) {
    text += event.written ? " rf initial" : " (initial)";
  }
  if (event.after.value_or(0) != 0) text += fmt::format(" co after #{}", *event.after);
  if (event.overtakes) text += fmt::format(" overtakes #{}", *event.overtakes);
  return text;
}

class Picture {
 public:
  explicit Picture(const Trace& trace) : trace_{trace} {
    for (std::size_t thread = 0; thread < trace.threads.size(); ++thread) add_column(thread);
    rows_ = trace.events.size() + (trace.race.empty() ? 1 : 0);
  }

  std::string draw(const std::string& subject) const {
    std::string text =
        "digraph {\n  layout=nop2\n  outputorder=edgesfirst\n  labelloc=t\n  fontname=monospace\n"
        "  fontsize=11\n  node [shape=box, fontname=monospace, fontsize=10, height=0.25, "
        "style=filled, fillcolor=white]\n  edge [arrowsize=0.6]\n";
    text += caption(subject);
    for (const Column& column : columns_) text += cluster(column);
    for (std::size_t number = 1; number <= trace_.events.size(); ++number) {
      const TraceEvent& event = trace_.events[number - 1];
      if (event.reads_from.value_or(0) != 0) text += edge(*event.reads_from, number, kReadsFrom);
      if (event.after.value_or(0) != 0) text += edge(*event.after, number, kModificationOrder);
    }
    if (!trace_.race.empty()) text += edge(trace_.race[0], trace_.race[1], kViolated);
    return text + "}\n";
  }

 private:
  struct Column {
    std::size_t thread = 0;
    std::vector<std::size_t> events;  // event numbers
    std::vector<std::string> texts;   // all equally wide
    bool fails = false;               // the failed check is this thread's
    int left = 0, right = 0;          // of the boxes
    int before = 0, after = 0;        // room for edges within the thread

    int middle() const { return (left + right) / 2; }
  };

  std::string failure() const {
    return fmt::format("{}  {}", trace_.cause.what, to_string(trace_.cause.where));
  }

  // Adds a column if the thread has events, as in the table, or if its check fails.
  void add_column(std::size_t thread) {
    Column column;
    column.thread = thread;
    column.fails = trace_.race.empty() && trace_.cause.thread == thread;
    std::size_t widest = 0, place = 0;
    for (std::size_t number = 1; number <= trace_.events.size(); ++number) {
      const TraceEvent& event = trace_.events[number - 1];
      if (event.thread != thread) continue;
      column.events.push_back(number);
      widest = std::max(widest, to_string(event).size() + relations(event).size());
      place = std::max(place, to_string(event.where).size());
    }
    if (!column.fails && column.events.empty()) return;
    for (const std::size_t number : column.events) {
      const TraceEvent& event = trace_.events[number - 1];
      column.texts.push_back(fmt::format("#{:<2} {:{}}  {:>{}}", number,
                                         to_string(event) + relations(event), widest,
                                         to_string(event.where), place));
    }
    std::size_t characters = trace_.threads[thread].size();
    for (const std::string& text : column.texts) characters = std::max(characters, text.size());
    if (column.fails) characters = std::max(characters, failure().size());
    (columns_.empty() ? column.before : column.after) = own_edges(thread);
    column.left = kMargin + column.before;
    if (!columns_.empty()) column.left += columns_.back().right + columns_.back().after + kGap;
    column.right = column.left + width_of(characters);
    columns_.push_back(std::move(column));
  }

  // Returns the room that edges within the thread take.
  int own_edges(std::size_t thread) const {
    int room = 0;
    for (std::size_t number = 1; number <= trace_.events.size(); ++number) {
      const TraceEvent& event = trace_.events[number - 1];
      if (event.thread != thread) continue;
      for (const std::size_t from : {event.reads_from.value_or(0), event.after.value_or(0)}) {
        if (from == 0 || trace_.events[from - 1].thread != thread) continue;
        room = std::max(room, bulge(from, number));
      }
    }
    return room;
  }

  std::string caption(const std::string& subject) const {
    const auto by = [this](std::size_t number) {
      return fmt::format("#{} by {}", number, trace_.threads[trace_.events[number - 1].thread]);
    };
    const bool race = !trace_.race.empty();
    const std::string& thread = trace_.threads[trace_.cause.thread];
    const std::string violated =
        race ? fmt::format("{}: {}, {}", trace_.cause.what, by(trace_.race[0]), by(trace_.race[1]))
             : fmt::format("{}, {}{} [{}]", trace_.cause.what, trace_.at_end ? "" : "by ", thread,
                           to_string(trace_.cause.where));
    const char* const red =
        race ? "red: the violation" : "red: the violation, and the step before it";
    const char* const down =
        trace_.overtakes() ? "downwards: memory order; overtakes: an earlier step of the thread"
                           : "downwards: program order";
    const auto line = [](const std::string& text) {
      return fmt::format("<tr><td>{}</td></tr>", text);
    };
    const std::string legend =
        fmt::format("= reads, := writes; {}; {}; {}; {}", colored("rf: reads from", kReadsFrom),
                    colored("co: modification order", kModificationOrder),
                    colored(down, kProgramOrder), colored(red, kViolated));
    return fmt::format(
        "  label=<<table border=\"0\" cellspacing=\"3\" cellpadding=\"0\">{}{}{}</table>>\n",
        line(colored(subject, "black")), line(colored(violated, kViolated)), line(legend));
  }

  int y(std::size_t number) const {
    return static_cast<int>(rows_ - number) * kRow + kRow / 2 + kMargin;
  }
  int height() const { return static_cast<int>(rows_) * kRow + 2 * kMargin + kTitle; }

  std::string box(const std::string& name, const std::string& label, const Column& column,
                  std::size_t row, const char* attributes) const {
    return fmt::format("    {} [label={}, pos=\"{},{}\", width={:.3f}{}]\n", name, quoted(label),
                       column.middle(), y(row), (column.right - column.left) / 72.0, attributes);
  }

  // Returns a frame with the thread's name and its boxes in program order.
  std::string cluster(const Column& column) const {
    std::string text = fmt::format(
        "  subgraph cluster_{} {{\n    label={}\n    bb=\"{},0,{},{}\"\n    lp=\"{},{}\"\n",
        column.thread, quoted(trace_.threads[column.thread]), column.left - column.before - kMargin,
        column.right + column.after + kMargin, height(), column.middle(), height() - kTitle / 2);
    std::string last, lines;
    int last_y = 0;
    const auto add = [&](const std::string& name, const std::string& label, std::size_t row,
                         const char* attributes) {
      text += box(name, label, column, row, attributes);
      const int x = column.middle(), to = y(row);
      if (!last.empty()) {
        lines += fmt::format("    {} -> {} [dir=none, color={}, pos=\"{},{} {},{} {},{} {},{}\"]\n",
                             last, name, kProgramOrder, x, last_y, x, last_y, x, to, x, to);
      }
      last = name;
      last_y = to;
    };
    for (std::size_t i = 0; i < column.events.size(); ++i) {
      const std::size_t number = column.events[i];
      const bool red = std::ranges::find(trace_.violated, number) != trace_.violated.end();
      add(fmt::format("e{}", number), column.texts[i], number,
          red ? ", color=red, penwidth=2" : "");
    }
    if (column.fails) {
      add("check", failure(), rows_, ", color=red, fontcolor=red, penwidth=2, fillcolor=mistyrose");
    }
    return text + lines + "  }\n";
  }

  const Column& column_of(std::size_t number) const {
    const std::size_t thread = trace_.events[number - 1].thread;
    return *std::ranges::find(columns_, thread, &Column::thread);
  }

  std::string edge(std::size_t from, std::size_t to, std::string_view color) const {
    const Column &source = column_of(from), &target = column_of(to);
    return fmt::format("  e{} -> e{} [color={}{}, pos=\"{}\"]\n", from, to, color,
                       color == kViolated ? ", dir=none, penwidth=2" : "",
                       &source == &target ? around(source, from, to)
                                          : across(source, target, from, to, color == kViolated));
  }

  // Returns an edge between two boxes of one thread, around the boxes between them: on the left of
  // the first thread, and on the right of any other thread.
  std::string around(const Column& column, std::size_t from, std::size_t to) const {
    const bool left = &column == &columns_.front();
    const int x = left ? column.left : column.right, away = left ? -1 : 1;
    const int out = x + away * bulge(from, to);
    return fmt::format("e,{},{} {},{} {},{} {},{} {},{}", x, y(to), x, y(from), out, y(from), out,
                       y(to), x + away * kArrow, y(to));
  }

  // Returns an edge from a box to a box of another thread. It runs down or up in the gap next to
  // the source, where no boxes are, and then straight on, because no other box is in the target's
  // row. A race has no direction.
  std::string across(const Column& source, const Column& target, std::size_t from, std::size_t to,
                     bool race) const {
    const int away = source.left < target.left ? 1 : -1;
    const Column& next = *(&source + away);
    const auto facing = [away](const Column& column) {
      return away > 0 ? column.left : column.right;
    };
    const int start = away > 0 ? source.right : source.left, tip = facing(target);
    const int end = race ? tip : tip - away * kArrow;
    const int bend = &next == &target ? end : facing(next);
    const int middle = (start + bend) / 2;
    std::string points = race ? "" : fmt::format("e,{},{} ", tip, y(to));
    points += fmt::format("{},{} {},{} {},{} {},{}", start, y(from), middle, y(from), middle, y(to),
                          bend, y(to));
    if (&next == &target) return points;
    return points + fmt::format(" {},{} {},{} {},{}", bend, y(to), end, y(to), end, y(to));
  }

  const Trace& trace_;
  std::vector<Column> columns_;
  std::size_t rows_ = 0;
};

}  // namespace

std::string trace_dot(const Trace& trace, const std::string& subject) {
  return Picture{trace}.draw(subject);
}

}  // namespace perfring::model
