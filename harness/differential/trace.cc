#include "harness/differential/trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <iterator>
#include <set>
#include <sstream>
#include <stdexcept>
#include <utility>

#include "harness/program/numbers.h"
#include "harness/rig/simulated_kernel.h"

namespace perfring::differential {

namespace {

constexpr std::size_t kBytesMax = 48;  // the longest change that a trace keeps as bytes

// FNV-1a on 8-byte words.
std::uint64_t digest_of(std::span<const std::byte> ring) {
  std::uint64_t digest = 0xcbf2'9ce4'8422'2325;
  for (std::size_t i = 0; i < ring.size(); i += sizeof(digest)) {
    std::uint64_t word = 0;
    std::memcpy(&word, &ring[i], sizeof(word));
    digest = (digest ^ word) * 0x0000'0100'0000'01b3;
    digest ^= digest >> 32;
  }
  return digest;
}

Change change_of(std::span<const std::byte> before, std::span<const std::byte> after) {
  const auto first = std::ranges::mismatch(before, after).in1 - before.begin();
  const auto begin = static_cast<std::size_t>(first);
  std::size_t end = after.size();
  while (end > begin && before[end - 1] == after[end - 1]) --end;
  if (end == begin) return {};
  if (end - begin > kBytesMax) return {.bytes{}, .digest = digest_of(after)};
  const auto changed = after.subspan(begin, end - begin);
  return {.offset = begin, .bytes{changed.begin(), changed.end()}, .digest{}};
}

}  // namespace

KernelTrace record(const std::string& name, const script::Script& script, ReferenceKernel& kernel,
                   std::span<const std::byte> ring) {
  KernelTrace trace{.name = name,
                    .script = script,
                    .identity = kernel.identity(),
                    .page_size = std::uint64_t{1} << kernel.page_shift(),
                    .little_endian = std::endian::native == std::endian::little,
                    .steps{}};
  std::vector<std::byte> before{ring.begin(), ring.end()};
  for (const script::Step& step : script.steps) {
    const ReferenceStep step_result = kernel.run(step);
    trace.steps.push_back({step_result, change_of(before, ring)});
    before.assign(ring.begin(), ring.end());
  }
  return trace;
}

RecordedReference::RecordedReference(const KernelTrace& trace)
    : trace_{trace},
      ring_(static_cast<std::size_t>(trace.script.settings.pages * trace.page_size)) {}

unsigned RecordedReference::page_shift() const {
  return static_cast<unsigned>(std::countr_zero(trace_.page_size));
}

ReferenceStep RecordedReference::run(const script::Step&) {
  const Change& change = trace_.steps.at(next_).change;
  std::ranges::copy(change.bytes, ring_.begin() + static_cast<std::ptrdiff_t>(change.offset));
  return trace_.steps[next_++].step;
}

std::optional<std::string> RecordedReference::ring_difference(std::span<const std::byte> ring) {
  const auto digest = trace_.steps.at(next_ - 1).change.digest;
  if (!digest) return first_difference(ring_, ring);
  if (*digest != digest_of(ring)) return "the ring's bytes: their digest differs";
  ring_.assign(ring.begin(), ring.end());
  return std::nullopt;
}

// Converts traces to text and back.

namespace {

constexpr std::string_view kArrow = " => ";
using Parsed = std::expected<void, std::string>;

std::string observed_text(const TracedStep& traced) {
  const rig::Observed& observed = traced.step.observed;
  std::string text =
      fmt::format("{} head {} tail {} lost {} {} time {}", observed.result, observed.head,
                  observed.tail, observed.lost[0], observed.lost[1], traced.step.time);
  if (traced.change.digest) return text + fmt::format(" digest {:016x}", *traced.change.digest);
  if (traced.change.bytes.empty()) return text;
  text += fmt::format(" bytes {} ", traced.change.offset);
  for (const std::byte byte : traced.change.bytes) {
    text += fmt::format("{:02x}", static_cast<unsigned>(byte));
  }
  return text;
}

// Reads the words of a line.
class Words {
 public:
  explicit Words(std::string_view line) : in_{std::string{line}} {}

  Words& name(std::string_view wanted) {
    std::string word;
    good_ = good_ && in_ >> word && word == wanted;
    return *this;
  }
  template <class T>
  Words& value(T& into) {
    const auto number = parse_number<T>(next());
    good_ = good_ && number;
    if (number) into = *number;
    return *this;
  }
  std::string next() {
    std::string word;
    in_ >> word;
    return word;
  }
  // Returns true if every word matched and the line has ended.
  bool done() { return good_ && next().empty(); }
  bool good() const { return good_; }

 private:
  std::istringstream in_;
  bool good_ = true;
};

Parsed parse_change(Words& words, Change& change) {
  const std::string kind = words.next();
  if (kind == "digest") {
    const std::string text = words.next();
    change.digest = parse_number(text, 16);
    if (!change.digest) return std::unexpected("'" + text + "' is not a digest");
  } else if (kind == "bytes") {
    words.value(change.offset);
    auto bytes = parse_hex(words.next());
    if (!bytes || bytes->empty()) return std::unexpected("bytes that are not hexadecimal");
    change.bytes = *std::move(bytes);
  } else if (!kind.empty()) {
    return std::unexpected("'" + kind + "': bytes or digest is expected");
  }
  return {};
}

std::expected<TracedStep, std::string> parse_traced_step(std::string_view text) {
  TracedStep traced;
  rig::Observed& observed = traced.step.observed;
  Words words{text};
  words.value(observed.result).name("head").value(observed.head).name("tail").value(observed.tail);
  words.name("lost")
      .value(observed.lost[0])
      .value(observed.lost[1])
      .name("time")
      .value(traced.step.time);
  if (!words.good())
    return std::unexpected("the observation must be RESULT head N tail N lost N N time N");
  if (const auto parsed = parse_change(words, traced.change); !parsed) {
    return std::unexpected(parsed.error());
  }
  if (!words.done()) return std::unexpected("unexpected text at the end of the line");
  return traced;
}

// Parses a line about the recording's origin. Returns false if it is a line of another kind.
std::expected<bool, std::string> parse_origin(std::string_view line, KernelTrace& trace) {
  Words words{line};
  const std::string name = words.next();
  if (name == "byte_order") {
    const std::string order = words.next();
    if (order != "little" && order != "big") return std::unexpected("byte_order: little or big");
    trace.little_endian = order == "little";
  } else if (name == "page_size") {
    words.value(trace.page_size);
    if (!std::has_single_bit(trace.page_size) || trace.page_size < 4096 ||
        trace.page_size > 65536) {
      return std::unexpected("page_size: a power of two from 4096 to 65536");
    }
  } else if (name == "cpu") {
    words.value(trace.identity.cpu);
  } else if (name == "pid") {
    words.value(trace.identity.pid);
  } else if (name == "tid") {
    words.value(trace.identity.tid);
  } else if (name == "ids") {
    words.value(trace.identity.ids[0]).value(trace.identity.ids[1]);
  } else {
    return false;
  }
  if (!words.done()) return std::unexpected(name + ": not a valid value");
  if (!trace.steps.empty()) return std::unexpected(name + ": after the first step");
  return true;
}

Parsed parse_line(std::string_view line, KernelTrace& trace) {
  const std::size_t arrow = line.find(kArrow);
  if (arrow == std::string_view::npos) {
    const auto origin = parse_origin(line, trace);
    if (!origin) return std::unexpected(origin.error());
    if (*origin) return {};
    const auto setting = script::parse_setting(line, trace.script.settings);
    if (!setting) return std::unexpected(setting.error());
    if (!*setting) return std::unexpected("neither a setting nor STEP => OBSERVATION");
    if (!trace.steps.empty()) return std::unexpected("a setting after the first step");
    return {};
  }
  const auto step = script::parse_step(line.substr(0, arrow));
  if (!step) return std::unexpected(step.error());
  if (step->depth != 0) return std::unexpected("a real kernel's trace has no nested steps");
  if (const auto why = script::why_impossible(trace.script.settings, *step)) {
    return std::unexpected(*why);
  }
  auto traced = parse_traced_step(line.substr(arrow + kArrow.size()));
  if (!traced) return std::unexpected(traced.error());
  const std::uint64_t ring = trace.script.settings.pages * trace.page_size;
  if (traced->change.offset > ring || traced->change.bytes.size() > ring - traced->change.offset) {
    return std::unexpected("bytes outside the ring");
  }
  trace.script.steps.push_back(*step);
  trace.steps.push_back(*std::move(traced));
  return {};
}

class Traces {
 public:
  Parsed add_line(std::string_view line) {
    if (Words words{line}; words.next() == "trace") return begin(words);
    if (traces_.empty()) traces_.emplace_back();
    return parse_line(line, traces_.back());
  }
  bool complete() const { return !traces_.empty() && !traces_.back().steps.empty(); }
  std::vector<KernelTrace> take() { return std::move(traces_); }

 private:
  Parsed begin(Words& words) {
    if (!traces_.empty() && !complete()) return std::unexpected("the previous trace has no step");
    const std::string name = words.next();
    if (name.empty() || !words.done()) return std::unexpected("trace: the name must be one word");
    if (!names_.insert(name).second) return std::unexpected("a second trace '" + name + "'");
    traces_.emplace_back().name = name;
    return {};
  }

  std::vector<KernelTrace> traces_;
  std::set<std::string> names_;
};

}  // namespace

std::string to_text(const KernelTrace& trace) {
  std::string text = trace.name.empty() ? "" : fmt::format("trace {}\n", trace.name);
  text += fmt::format("byte_order {}\npage_size {}\ncpu {}\npid {}\ntid {}\nids {} {}\n",
                      trace.little_endian ? "little" : "big", trace.page_size, trace.identity.cpu,
                      trace.identity.pid, trace.identity.tid, trace.identity.ids[0],
                      trace.identity.ids[1]);
  text += to_text(trace.script.settings);
  for (std::size_t i = 0; i < trace.steps.size(); ++i) {
    text +=
        to_text(trace.script.steps[i]) + std::string{kArrow} + observed_text(trace.steps[i]) + "\n";
  }
  return text;
}

std::expected<std::vector<KernelTrace>, std::string> parse_traces(std::string_view text) {
  Traces traces;
  for (std::size_t number = 1; !text.empty(); ++number) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = script::without_comment(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.empty()) continue;
    if (const auto parsed = traces.add_line(line); !parsed) {
      return std::unexpected(fmt::format("line {}: {}", number, parsed.error()));
    }
  }
  if (!traces.complete()) return std::unexpected("a trace without a step");
  return traces.take();
}

std::vector<KernelTrace> traces_of(std::initializer_list<std::string_view> texts) {
  std::vector<KernelTrace> traces;
  for (const std::string_view text : texts) {
    auto stated = parse_traces(text);
    if (!stated) throw std::runtime_error(stated.error());
    std::ranges::move(*stated, std::back_inserter(traces));
  }
  return traces;
}

}  // namespace perfring::differential
