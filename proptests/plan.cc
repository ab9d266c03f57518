#include "proptests/plan.h"

#include <ostream>
#include <string>
#include <utility>

namespace perfring::proptests {
namespace {

using Kind = Action::Kind;
namespace gen = rc::gen;

void indent(std::ostream& out, unsigned depth) {
  out << '\n' << std::string(2 * depth + 2, ' ');
}

const char* name(Kind kind) {
  switch (kind) {
    case Kind::Output:
      return "output";
    case Kind::Drain:
      return "drain";
    case Kind::Break:
      return "drain that breaks at event ";
    case Kind::Throw:
      return "drain that throws at event ";
    case Kind::Pause:
      return "pause";
    case Kind::Resume:
      return "resume";
    case Kind::Consume:
      return "the consumer goes on";
  }
  return "unknown action";
}

void print(std::ostream& out, const Action& action, unsigned depth) {
  if (action.times != 1) out << action.times << " times: ";
  out << name(action.kind);
  if (action.kind == Kind::Output) out << " of " << action.number << " bytes";
  if (action.kind == Kind::Break || action.kind == Kind::Throw) out << action.number;
  const char* const where = action.kind == Kind::Output ? "at step " : "in event ";
  for (const Action& each : action.nested) {
    indent(out, depth + 1);
    out << where << each.at << ": ";
    print(out, each, depth + 1);
  }
}

// Numbers in [min, max], whatever RapidCheck's size is.
template <class T>
rc::Gen<T> between(T min, T max) {
  return gen::resize(100, gen::inRange<T>(min, max + 1));
}

// Numbers in one of these ranges; it shrinks towards the first.
rc::Gen<std::uint32_t> in_one_of(std::vector<std::pair<std::uint32_t, std::uint32_t>> ranges) {
  return gen::mapcat(one_of(std::move(ranges)),
                     [](auto range) { return between(range.first, range.second); });
}

rc::Gen<Action> action(const Mix& mix, unsigned depth) {
  Mix inner = mix;
  inner.nesting = depth == 0 ? 0 : depth - 1;
  const auto nested = depth == 0 ? gen::just(std::vector<Action>{})
                                 : gen::weightedOneOf<std::vector<Action>>(
                                       {{3, gen::just(std::vector<Action>{})},
                                        {1, gen::scale(0.04, gen::lazy([inner] {
                                                         return gen::container<std::vector<Action>>(
                                                             action(inner, inner.nesting));
                                                       }))}});
  const auto output_or_other = [mix, nested](Kind kind) {
    const bool is_output = kind == Kind::Output;
    const bool stops = kind == Kind::Break || kind == Kind::Throw;
    // Runs of one size, which the drain guesses at.
    const auto times = gen::weightedOneOf<unsigned>({{3, gen::just(1U)}, {1, between(1U, 40U)}});
    const auto number = is_output ? mix.payloads
                        : stops   ? between<std::uint32_t>(1, 12)
                                  : gen::just(std::uint32_t{0});
    const bool holds_others = is_output || stops || kind == Kind::Drain;
    return gen::build<Action>(
        gen::set(&Action::kind, gen::just(kind)), gen::set(&Action::number, number),
        gen::set(&Action::times, is_output ? times : gen::just(1U)),
        gen::set(&Action::at, between(0U, 27U)),
        gen::set(&Action::nested, holds_others ? nested : gen::just(std::vector<Action>{})));
  };
  return gen::mapcat(one_of(mix.kinds), output_or_other);
}

}  // namespace

std::ostream& operator<<(std::ostream& out, const Settings& settings) {
  out << "a ring of " << settings.pages << (settings.pages == 1 ? " page" : " pages") << ", a "
      << (settings.word == kernel::Word::k32 ? "32" : "64") << "-bit kernel, positions from "
      << std::hex << std::showbase << settings.start << std::dec << std::noshowbase;
  if (settings.wakeup_watermark) {
    out << ", wakeup_watermark " << *settings.wakeup_watermark;
  } else if (settings.wakeup_events != 1) {
    out << ", wakeup_events " << settings.wakeup_events;
  }
  return out;
}

std::ostream& operator<<(std::ostream& out, const Action& action) {
  print(out, action, 0);
  return out;
}

std::ostream& operator<<(std::ostream& out, const Plan& plan) {
  out << plan.settings;
  for (const Action& each : plan.actions) {
    indent(out, 0);
    print(out, each, 0);
  }
  return out;
}

rc::Gen<std::uint64_t> positions() {
  const auto bases = gen::weightedOneOf<std::uint64_t>(
      {{4, one_of<std::uint64_t>({0, 1ULL << 32, 1ULL << 31, 1ULL << 63, 7ULL << 32})},
       {1, gen::arbitrary<std::uint64_t>()}});
  // Before the base, so that a run crosses it.
  const auto before = [](std::uint64_t base, std::uint64_t words) -> std::uint64_t {
    return (base & ~7ULL) - 8 * words;  // so that a run crosses it
  };
  return gen::apply(before, bases, between<std::uint64_t>(0, 4096));
}

rc::Gen<Settings> settings() {
  return gen::build<Settings>(
      gen::set(&Settings::pages, one_of<unsigned>({1, 2, 4})),
      gen::set(&Settings::word, one_of<kernel::Word>({kernel::Word::k64, kernel::Word::k32})),
      gen::set(&Settings::start, positions()));
}

rc::Gen<std::uint32_t> lengths() {
  return in_one_of({{0, 64}, {0, 64}, {0, 64}, {0, 700}, {0, 700}, {4060, 4100}, {0, 16400}});
}

rc::Gen<std::uint32_t> oversize_lengths() {
  return in_one_of({{65517, 65560}, {65517, 65560}, {131'044, 131'100}, {65517, 200'000}});
}

rc::Gen<std::vector<Action>> actions(const Mix& mix) {
  return gen::container<std::vector<Action>>(action(mix, mix.nesting));
}

rc::Gen<Plan> plans(const Mix& mix, const rc::Gen<Settings>& of) {
  return gen::build<Plan>(gen::set(&Plan::settings, of), gen::set(&Plan::actions, actions(mix)));
}

Mix everything() {
  return {{Kind::Output, Kind::Output, Kind::Output, Kind::Output, Kind::Drain, Kind::Drain,
           Kind::Break, Kind::Throw, Kind::Pause, Kind::Resume, Kind::Resume},
          2};
}

}  // namespace perfring::proptests
