// The byte encoding of scripts; each seed of a script is the encoding of its text; two_consumers
// finds faulty consumers. hostile_drain_test.cc tests the targets of rings.

#include <gtest/gtest.h>
#include <linux/perf_event.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "fuzz/input.h"
#include "fuzz/script_bytes.h"
#include "fuzz/seed_file.h"
#include "fuzz/two_consumers.h"
#include "harness/faults/consumer_faults.h"
#include "harness/faults/memory_faults.h"
#include "harness/faults/ring_wrappers.h"
#include "harness/rig/script_outcome.h"
#include "harness/rig/script_run.h"
#include "harness/script/script.h"
#include "perfring/control_flow.h"
#include "perfring/perf_event.h"
#include "perfring/ring/default_memory.h"
#include "perfring/ring/memory.h"
#include "perfring/ring/ring.h"

namespace perfring::fuzz {
namespace {

using script::Script;

std::string bytes_of(const Script& script, Encoding encoding) {
  const auto bytes = encode_script(script, encoding);
  if (!bytes) return bytes.error();
  return {reinterpret_cast<const char*>(bytes->data()), bytes->size()};
}

constexpr script::GenerateOptions kAnything{
    .pages_max = 8, .any_word = true, .any_start = true, .nested = true};

// Generates a script that the oracle can check.
Script generate_for_oracle(std::uint64_t seed) {
  Script script = script::generate(seed, kAnything);
  script.settings.sample_type = PERF_SAMPLE_RAW;
  script.settings.write_backward = script.settings.overwrite = false;
  std::erase_if(script.steps,
                [](const script::Step& step) { return step.action == script::Action::Tail; });
  return script;
}

TEST(ScriptBytesTest, AnyGeneratedScriptIsDecodedFromItsBytes) {
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    const Script script = script::generate(seed, kAnything);
    ASSERT_EQ(decode_script(Input{bytes_of(script, Encoding::Full)}, Encoding::Full), script)
        << to_text(script);
    const Script checked = generate_for_oracle(seed);
    ASSERT_EQ(decode_script(Input{bytes_of(checked, Encoding::ForOracle)}, Encoding::ForOracle),
              checked)
        << to_text(checked);
  }
}

TEST(ScriptBytesTest, AnyBytesAreAScriptThatCanBeRun) {
  std::mt19937_64 random{1};
  for (int i = 0; i < 2000; ++i) {
    std::string bytes(static_cast<std::size_t>(random() % 300), '\0');
    for (char& c : bytes) c = static_cast<char>(random());
    for (const Encoding encoding : {Encoding::Full, Encoding::ForOracle}) {
      const Script script = decode_script(Input{bytes}, encoding);
      ASSERT_FALSE(why_impossible(script)) << *why_impossible(script);
      ASSERT_EQ(decode_script(Input{bytes_of(script, encoding)}, encoding), script);
      ASSERT_TRUE(rig::oracle_can_check(script) || encoding == Encoding::Full) << to_text(script);
    }
  }
}

TEST(ScriptBytesTest, EveryByteForTheOracleChangesTheScript) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    const Script script = generate_for_oracle(seed);
    const std::string bytes = bytes_of(script, Encoding::ForOracle);
    for (std::size_t at = 0; at < bytes.size(); ++at) {
      bool counts = false;
      for (unsigned bit = 0; bit < 8 && !counts; ++bit) {
        std::string changed = bytes;
        changed[at] = static_cast<char>(changed[at] ^ 1 << bit);
        counts = decode_script(Input{changed}, Encoding::ForOracle) != script;
      }
      ASSERT_TRUE(counts) << "byte " << at << " of\n" << to_text(script);
    }
  }
}

// A step's moment is decoded only if the step is nested.
TEST(ScriptBytesTest, AStepThatCannotBeNestedHasNoMoment) {
  const std::string settings(13, '\0');
  const Script script = decode_script(Input{settings + "\x10\x07"}, Encoding::ForOracle);
  EXPECT_EQ(script.steps, (std::vector{script::Step{.number = 7}}));
}

TEST(ScriptBytesTest, AScriptThatBytesCannotSayIsRefused) {
  EXPECT_FALSE(encode_script(Script{.settings{.pages = 16}, .steps{}}, Encoding::Full));
  const Script late = *script::parse_script("output 1\n> at 256 poll\n");
  EXPECT_FALSE(encode_script(late, Encoding::Full)) << "a moment is one byte";
  const Script dies = *script::parse_script("output 4\n> at 2 die\n");
  EXPECT_FALSE(encode_script(dies, Encoding::Full)) << "no code is left";
  for (const char* text : {"sample_type RAW|TIME\noutput 1\n", "write_backward 1\noutput 1\n",
                           "overwrite 1\noutput 1\n", "tail 8\n"}) {
    const Script script = *script::parse_script(text);
    EXPECT_TRUE(encode_script(script, Encoding::Full)) << text;
    EXPECT_FALSE(encode_script(script, Encoding::ForOracle)) << text;
    EXPECT_FALSE(rig::oracle_can_check(script)) << text;
  }
}

std::map<std::string, std::string> seed_texts() {
  std::istringstream in{read_seed("fuzz/scripts.txt")};
  std::map<std::string, std::string> texts;
  std::string name;
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("=== ")) {
      name = line.substr(4);
    } else if (!name.empty()) {
      texts[name] += line + "\n";
    }
  }
  return texts;
}

// fuzz/seeds.py writes the seeds with its own encoder. A seed of two_consumers is a byte that says
// "no damage", then the script without the drains at its end, which would leave nothing to compare.
TEST(ScriptSeedsTest, EachSeedIsTheScriptThatItIsNamedFor) {
  const std::map<std::string, std::string> texts = seed_texts();
  EXPECT_GE(texts.size(), 17U);
  for (const auto& [name, text] : texts) {
    auto script = script::parse_script(text);
    ASSERT_TRUE(script) << name << ": " << script.error();
    const std::string bytes = bytes_of(*script, Encoding::ForOracle);
    EXPECT_EQ(read_seed("fuzz/kernel_script_seeds/" + name), bytes) << name;
    EXPECT_FALSE(rig::violation_of<rig::ScriptRunner<>>(*script)) << name;
    std::vector<script::Step>& steps = script->steps;
    while (steps.back().depth == 0 && steps.back().action == script::Action::Drain) {
      steps.pop_back();
    }
    EXPECT_EQ(read_seed("fuzz/two_consumers_seeds/" + name),
              std::string(1, '\0').append(bytes_of(*script, Encoding::Full)))
        << name;
  }
}

// With `stop`, a drain that ends at this event precedes the complete drain.
template <Memory M, class R = Ring<M>>
void compare(const std::string& name, std::optional<unsigned> stop = std::nullopt) {
  std::string bytes = read_seed("fuzz/two_consumers_seeds/" + name);
  if (stop) bytes = std::string{'\x08', static_cast<char>(*stop - 1)} + bytes.substr(1);
  TwoConsumers<M, R>{Input{bytes}}.run();
}

// A fault that harness/faults does not have: the drain sees no record.
struct SeesNothing : DefaultMemory {
  static Position read_once(const SharedPosition& field) {
    return DefaultMemory::read_once(field) & 0;
  }
};

TEST(TwoConsumersTest, TheDrainSeesWhatTheReferenceSees) {
  for (const char* const name : {"breaks_and_throws", "wrap_at_size_prefix"}) {
    compare<DefaultMemory>(name);
    for (const unsigned stop : {1U, 2U, 255U}) compare<DefaultMemory>(name, stop);
  }
}

TEST(TwoConsumersTest, AFaultyConsumerDiffersFromTheReference) {
  EXPECT_DEATH(compare<faults::ShortensSamples<DefaultMemory>>("outputs_and_drains"),
               "event 0 is not the reference's");
  EXPECT_DEATH(compare<faults::TailTooHigh<DefaultMemory>>("outputs_and_drains"),
               "data_tail is not the reference's");
  EXPECT_DEATH(compare<faults::NeverCommits<DefaultMemory>>("outputs_and_drains"),
               "data_tail is not the reference's");
  EXPECT_DEATH(compare<SeesNothing>("outputs_and_drains"), "the reference has more events");
}

template <class R>
void compare_stopped(unsigned stop) {
  compare<DefaultMemory, R>("outputs_and_drains", stop);
}

struct ForgetsTheBreak : faults::AroundRing<ForgetsTheBreak, DefaultMemory> {
  using AroundRing::AroundRing;
  ControlFlow<> drain(const faults::Visit& visit) { return sound_drain(visit); }
  template <class F>
  ControlFlow<> try_fold(Unit init, F f) {
    static_cast<void>(RingFromDrain::try_fold(init, f));
    return Continue{};
  }
};

struct IsAlwaysReadable : ForgetsTheBreak {
  using ForgetsTheBreak::ForgetsTheBreak;
  static std::optional<IsAlwaysReadable> over(perf_event_mmap_page& page, Bytes data) {
    return IsAlwaysReadable{page, data};
  }
  template <class F>
  ControlFlow<> try_fold(Unit init, F f) {
    return RingFromDrain::try_fold(init, f);
  }
  static bool readable() { return true; }
};

TEST(TwoConsumersTest, ADrainThatStopsIsComparedToo) {
  using Memory = DefaultMemory;
  EXPECT_DEATH(compare_stopped<faults::IgnoresBreak<Memory>>(1), "event 1 is not the reference's");
  EXPECT_DEATH(compare_stopped<faults::RedeliversAfterBreak<Memory>>(1),
               "data_tail is not the reference's");
  EXPECT_DEATH(compare_stopped<faults::CommitsAllOnBreak<Memory>>(1),
               "data_tail is not the reference's");
  EXPECT_DEATH(compare_stopped<faults::TakesOneAtATime<Memory>>(2),
               "the reference has more events");
  EXPECT_DEATH(compare_stopped<ForgetsTheBreak>(1), "try_fold's result");
  EXPECT_DEATH(compare_stopped<IsAlwaysReadable>(1), "readable\\(\\) after a complete drain");
}

}  // namespace
}  // namespace perfring::fuzz
