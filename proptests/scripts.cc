#include "proptests/scripts.h"

#include <ostream>
#include <utility>

#include "harness/kernel/perf_event.h"

namespace perfring::script {

void showValue(const Settings& settings, std::ostream& out) {
  out << to_text(settings);
}

void showValue(const Step& step, std::ostream& out) {
  out << to_text(step);
}

void showValue(const Script& script, std::ostream& out) {
  out << to_text(script);
}

}  // namespace perfring::script

namespace perfring::proptests {
namespace {

namespace gen = rc::gen;

// A step together with the steps nested in it, so that they shrink as a unit.
struct Tree {
  Step step;
  std::uint64_t times = 1;
  std::vector<Tree> nested{};
};

void flatten(const std::vector<Tree>& trees, std::uint64_t depth, std::vector<Step>& steps) {
  for (const Tree& each : trees) {
    for (std::uint64_t i = 0; i < each.times; ++i) {
      steps.push_back(each.step);
      steps.back().depth = depth;
      if (depth == 0) steps.back().at = 0;
      flatten(each.nested, depth + 1, steps);
    }
  }
}

// Numbers in [min, max], independent of RapidCheck's size.
template <class T>
rc::Gen<T> between(T min, T max) {
  return gen::resize(100, gen::inRange<T>(min, max + 1));
}

// Numbers in one of these ranges. Shrinks towards the first range.
rc::Gen<std::uint64_t> in_one_of(std::vector<std::pair<std::uint64_t, std::uint64_t>> ranges) {
  return gen::mapcat(one_of(std::move(ranges)),
                     [](auto range) { return between(range.first, range.second); });
}

bool holds_others(StepKind kind) {
  return kind == StepKind::Output || kind == StepKind::Drain || kind == StepKind::Break ||
         kind == StepKind::Throw;
}

Action action_of(StepKind kind) {
  switch (kind) {
    case StepKind::Output:
      return Action::Output;
    case StepKind::Drain:
    case StepKind::Break:
      return Action::Drain;
    case StepKind::Throw:
      return Action::Throw;
    case StepKind::Pause:
      return Action::Pause;
    case StepKind::Resume:
      return Action::Resume;
    case StepKind::Poll:
      break;
  }
  return Action::Poll;
}

rc::Gen<std::uint64_t> number_of(StepKind kind, const Mix& mix) {
  switch (kind) {
    case StepKind::Output:
      return mix.payloads;
    case StepKind::Drain:
      return gen::just(rig::kWholeRing);
    case StepKind::Break:
    case StepKind::Throw:
      return between<std::uint64_t>(1, 12);
    default:
      return gen::just(std::uint64_t{0});
  }
}

rc::Gen<std::vector<Tree>> trees(const Mix& mix);

rc::Gen<Tree> tree(const Mix& mix) {
  const auto none = gen::just(std::vector<Tree>{});
  Mix inner = mix;
  inner.nesting = mix.nesting == 0 ? 0 : mix.nesting - 1;
  const auto nested =
      mix.nesting == 0
          ? none
          : gen::weightedOneOf<std::vector<Tree>>(
                {{3, none}, {1, gen::scale(0.04, gen::lazy([inner] { return trees(inner); }))}});
  return gen::mapcat(one_of(mix.kinds), [mix, none, nested](StepKind kind) {
    const auto step = gen::build<Step>(gen::set(&Step::action, gen::just(action_of(kind))),
                                       gen::set(&Step::number, number_of(kind, mix)),
                                       gen::set(&Step::at, between<std::uint64_t>(0, 27)));
    // Runs of records of one size, so that the drain's guess of the next header is right.
    const auto times = gen::weightedOneOf<std::uint64_t>(
        {{3, gen::just(std::uint64_t{1})}, {1, between<std::uint64_t>(1, 40)}});
    return gen::build<Tree>(
        gen::set(&Tree::step, step),
        gen::set(&Tree::times, kind == StepKind::Output ? times : gen::just(std::uint64_t{1})),
        gen::set(&Tree::nested, holds_others(kind) ? nested : none));
  });
}

rc::Gen<std::vector<Tree>> trees(const Mix& mix) {
  return gen::container<std::vector<Tree>>(tree(mix));
}

}  // namespace

rc::Gen<std::uint64_t> positions() {
  const auto bases = gen::weightedOneOf<std::uint64_t>(
      {{4, one_of<std::uint64_t>({0, 1ULL << 32, 1ULL << 31, 1ULL << 63, 7ULL << 32})},
       {1, gen::arbitrary<std::uint64_t>()}});
  // Start below the base, so that a run crosses it.
  const auto before = [](std::uint64_t base, std::uint64_t words) -> std::uint64_t {
    return (base & ~7ULL) - 8 * words;
  };
  return gen::apply(before, bases, between<std::uint64_t>(0, 4096));
}

rc::Gen<Settings> settings() {
  return gen::build<Settings>(
      gen::set(&Settings::word, one_of<kernel::Word>({kernel::Word::k64, kernel::Word::k32})),
      gen::set(&Settings::pages, one_of<std::uint64_t>({1, 2, 4})),
      gen::set(&Settings::start, positions()));
}

rc::Gen<std::uint64_t> lengths() {
  return in_one_of({{0, 64}, {0, 64}, {0, 64}, {0, 700}, {0, 700}, {4060, 4100}, {0, 16400}});
}

rc::Gen<std::uint64_t> oversize_lengths() {
  return in_one_of({{65517, 65560}, {65517, 65560}, {131'044, 131'100}, {65517, 200'000}});
}

rc::Gen<std::vector<Step>> steps(const Mix& mix) {
  return gen::map(trees(mix), [](const std::vector<Tree>& drawn) {
    std::vector<Step> steps;
    flatten(drawn, 0, steps);
    return steps;
  });
}

rc::Gen<Script> scripts(const Mix& mix, const rc::Gen<Settings>& of) {
  return gen::build<Script>(gen::set(&Script::settings, of), gen::set(&Script::steps, steps(mix)));
}

Mix everything() {
  return {{StepKind::Output, StepKind::Output, StepKind::Output, StepKind::Output, StepKind::Drain,
           StepKind::Drain, StepKind::Break, StepKind::Throw, StepKind::Pause, StepKind::Resume,
           StepKind::Resume},
          2};
}

}  // namespace perfring::proptests
