#include "fuzz/script_bytes.h"

#include <linux/perf_event.h>

#include <algorithm>
#include <array>
#include <bit>
#include <concepts>
#include <cstdint>
#include <utility>

#include "harness/kernel/perf_event.h"

namespace perfring::fuzz {
namespace {

using script::Action;
using script::Script;
using script::Settings;
using script::Step;

constexpr std::array<std::uint64_t, 9> kSampleTypes{
    PERF_SAMPLE_RAW,    PERF_SAMPLE_TID,       PERF_SAMPLE_TIME,
    PERF_SAMPLE_ADDR,   PERF_SAMPLE_ID,        PERF_SAMPLE_CPU,
    PERF_SAMPLE_PERIOD, PERF_SAMPLE_STREAM_ID, PERF_SAMPLE_IDENTIFIER};

struct Code {
  Action action;
  bool second = false;
};
// The actions by the number in bits 0-3. Outputs and drains are listed several times, so that most
// steps of a script are outputs and drains.
constexpr std::array<Code, 16> kCodes{{{Action::Output},
                                       {Action::Drain},
                                       {Action::Throw},
                                       {Action::Poll},
                                       {Action::Epoll},
                                       {Action::Rearm},
                                       {Action::Pause},
                                       {Action::Resume},
                                       {Action::Disable},
                                       {Action::Enable},
                                       {Action::Tail},
                                       {Action::Output, true},
                                       {Action::Poll, true},
                                       {Action::Output},
                                       {Action::Output},
                                       {Action::Drain}}};

enum Width : std::uint8_t { kU8, kU12, kU8Again, kShifted };
constexpr std::uint64_t kNearWrapMin = 65400;

Code code_of(unsigned number, Encoding encoding) {
  const Code code = kCodes[number];
  return encoding == Encoding::ForOracle && code.action == Action::Tail ? Code{Action::Output}
                                                                        : code;
}

void decode_kind(Input& input, Settings& settings) {
  const auto kind = static_cast<std::uint16_t>(input.take<std::uint16_t>() ^ 1);
  settings.sample_type = 0;
  for (std::size_t i = 0; i < kSampleTypes.size(); ++i) {
    if ((kind >> i & 1) != 0) settings.sample_type |= kSampleTypes[i];
  }
  settings.write_backward = (kind >> 9 & 1) != 0;
  settings.overwrite = (kind >> 10 & 1) != 0;
}

Settings decode_settings(Input& input, Encoding encoding) {
  Settings settings;
  const auto flags = input.take<std::uint8_t>();
  settings.word = (flags & 1) != 0 ? kernel::Word::k32 : kernel::Word::k64;
  settings.pages = std::uint64_t{1} << (flags >> 1 & 3);
  settings.watermark = (flags & 8) != 0;
  settings.events = (flags & 16) != 0 ? 2 : 1;
  settings.epoll = static_cast<script::Epoll>((flags >> 5 & 3) % 3);
  settings.sample_id_all = (flags & 128) != 0;
  if (encoding == Encoding::Full) decode_kind(input, settings);
  settings.wakeup = input.take<std::uint32_t>();
  settings.start = input.take<std::uint64_t>() & ~std::uint64_t{7};
  return settings;
}

std::uint64_t decode_number(Input& input, Width width, Action action) {
  if (width == kU12) return input.take<std::uint16_t>() & 0xfff;
  if (width != kShifted) return input.take<std::uint8_t>();
  if (action == Action::Tail) return input.take<std::uint64_t>();
  const unsigned shift = input.take<std::uint8_t>() & 31;
  const std::uint64_t high = input.take<std::uint8_t>();
  const std::uint64_t number = high << 16 | input.take<std::uint16_t>();
  if (shift >= 24) return kNearWrapMin + (number & 0xff);
  return (number >> shift) % (script::kOutputMax + 1);
}

Step decode_step(Input& input, Encoding encoding, const Script& before) {
  const auto code = input.take<std::uint8_t>();
  const auto [action, second] = code_of(code & 15, encoding);
  Step step{.action = action, .second = second && before.settings.events == 2};
  step.depth = std::min<std::uint64_t>(code >> 4 & 3, deepest(before.steps));
  if (step.depth != 0) step.at = input.take<std::uint8_t>();
  if (has_number(step.action)) {
    step.number = decode_number(input, static_cast<Width>(code >> 6), step.action);
  }
  return step;
}

class Bytes {
 public:
  // Appends the low byte first, and byte by byte, because at -O3 g++ 12 warns that vector's
  // insert() of several bytes writes past the end.
  template <std::unsigned_integral T>
  void put(T value) {
    for (std::size_t i = 0; i < sizeof value; ++i) {
      bytes_.push_back(static_cast<std::byte>(value >> 8 * i & 0xff));
    }
  }
  std::vector<std::byte> take() { return std::move(bytes_); }

 private:
  std::vector<std::byte> bytes_;
};

void encode_kind(const Settings& settings, Bytes& out) {
  unsigned kind = 0;
  for (std::size_t i = 0; i < kSampleTypes.size(); ++i) {
    if ((settings.sample_type & kSampleTypes[i]) != 0) kind |= 1U << i;
  }
  kind |= (settings.write_backward ? 1U << 9 : 0U) | (settings.overwrite ? 1U << 10 : 0U);
  out.put(static_cast<std::uint16_t>(kind ^ 1));
}

void encode_settings(const Settings& settings, Encoding encoding, Bytes& out) {
  unsigned flags = settings.word == kernel::Word::k32 ? 1 : 0;
  flags |= static_cast<unsigned>(std::countr_zero(settings.pages)) << 1;
  flags |= (settings.watermark ? 8U : 0U) | (settings.events == 2 ? 16U : 0U);
  flags |= static_cast<unsigned>(settings.epoll) << 5 | (settings.sample_id_all ? 128U : 0U);
  out.put(static_cast<std::uint8_t>(flags));
  if (encoding == Encoding::Full) encode_kind(settings, out);
  out.put(static_cast<std::uint32_t>(settings.wakeup));
  out.put(settings.start);
}

void encode_number(const Step& step, Width width, Bytes& out) {
  if (width == kU8) return out.put(static_cast<std::uint8_t>(step.number));
  if (width == kU12) return out.put(static_cast<std::uint16_t>(step.number));
  if (step.action == Action::Tail) return out.put(step.number);
  out.put(std::uint8_t{0});
  out.put(static_cast<std::uint8_t>(step.number >> 16));
  out.put(static_cast<std::uint16_t>(step.number));
}

void encode_step(const Step& step, Bytes& out) {
  unsigned code = 0;
  while (kCodes[code].action != step.action || kCodes[code].second != step.second) ++code;
  const Width width = step.number < 256 ? kU8 : step.number < 4096 ? kU12 : kShifted;
  code |= static_cast<unsigned>(step.depth) << 4;
  if (has_number(step.action)) code |= unsigned{width} << 6;
  out.put(static_cast<std::uint8_t>(code));
  if (step.depth != 0) out.put(static_cast<std::uint8_t>(step.at));
  if (has_number(step.action)) encode_number(step, width, out);
}

}  // namespace

Script decode_script(Input input, Encoding encoding) {
  Script script{decode_settings(input, encoding), {}};
  script.steps.reserve(std::min(input.rest().size(), script::kStepsMax));
  while (!input.empty() && script.steps.size() < script::kStepsMax) {
    const Step step = decode_step(input, encoding, script);
    if (!why_impossible(script.settings, step)) script.steps.push_back(step);
  }
  return script;
}

std::expected<std::vector<std::byte>, std::string> encode_script(const Script& script,
                                                                 Encoding encoding) {
  if (script.settings.pages > 8) return std::unexpected("the byte encoding has at most 8 pages");
  const auto dies = [](const Step& step) { return step.action == Action::Die; };
  if (std::ranges::any_of(script.steps, dies)) {
    return std::unexpected("the byte encoding has no 'die'");
  }
  Bytes out;
  encode_settings(script.settings, encoding, out);
  for (const Step& step : script.steps) encode_step(step, out);
  std::vector<std::byte> bytes = out.take();
  if (decode_script(Input{bytes}, encoding) != script) {
    return std::unexpected("not representable in the byte encoding");
  }
  return bytes;
}

}  // namespace perfring::fuzz
