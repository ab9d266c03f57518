#include "fuzz/script_bytes.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>

#include "harness/rig/script_run.h"
#include "harness/script/generate.h"

namespace perfring::fuzz {
namespace {

namespace fs = std::filesystem;
using script::Script;

std::string read(const fs::path& path) {
  std::ifstream in{path, std::ios::binary};
  std::string bytes{std::istreambuf_iterator<char>{in}, {}};
  if (!in) ADD_FAILURE() << path << " cannot be read";
  return bytes;
}

Input input(const std::string& bytes) {
  return Input{reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()};
}

std::string bytes_of(const Script& script) {
  const auto bytes = encode_script(script);
  if (!bytes) return bytes.error();
  return {reinterpret_cast<const char*>(bytes->data()), bytes->size()};
}

TEST(ScriptBytes, AreAnyScriptThatIsGenerated) {
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    const Script script = script::generate(
        seed, {.pages_max = 8, .any_word = true, .any_start = true, .nested = true});
    ASSERT_EQ(decode_script(input(bytes_of(script))), script) << to_text(script);
  }
}

TEST(ScriptBytes, OfAnyKindAreAScriptThatCanBeRun) {
  std::mt19937_64 random{1};
  for (int i = 0; i < 2000; ++i) {
    std::string bytes(static_cast<std::size_t>(random() % 300), '\0');
    for (char& c : bytes) c = static_cast<char>(random());
    const Script script = decode_script(input(bytes));
    ASSERT_FALSE(why_impossible(script)) << *why_impossible(script);
    ASSERT_EQ(decode_script(input(bytes_of(script))), script);
    ASSERT_FALSE(why_impossible(understood(script))) << *why_impossible(understood(script));
  }
}

TEST(ScriptBytes, CannotSayEverything) {
  EXPECT_FALSE(encode_script(Script{.settings{.pages = 16}, .steps{}}));
  const Script late = *script::parse_script("output 1\n> at 256 poll\n");
  EXPECT_FALSE(encode_script(late)) << "a moment is one byte";
}

// fuzz/seeds.py writes them. A differential seed is a byte of damage, none, and the script but for
// the drains at its end, after which there would be nothing to compare.
TEST(Seeds, AreTheScriptsThatTheyAreNamedFor) {
  std::size_t scripts = 0;
  for (const auto& entry : fs::directory_iterator{"fuzz/scripts"}) {
    auto script = script::parse_script(read(entry.path()));
    ASSERT_TRUE(script) << entry.path() << ": " << script.error();
    const std::string name = entry.path().stem();
    const std::string bytes = bytes_of(*script);
    EXPECT_EQ(read("fuzz/kernel_script_seeds/" + name), bytes) << name;
    EXPECT_FALSE(rig::violation_of<rig::ScriptRunner<>>(*script)) << name;
    std::vector<script::Step>& steps = script->steps;
    while (steps.back().depth == 0 && steps.back().action == script::Action::Drain) {
      steps.pop_back();
    }
    EXPECT_EQ(read("fuzz/differential_seeds/" + name),
              std::string(1, '\0').append(bytes_of(*script)))
        << name;
    ++scripts;
  }
  EXPECT_GE(scripts, 10U);
}

}  // namespace
}  // namespace perfring::fuzz
