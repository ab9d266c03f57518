// Tests of the cases, of the vectors built from them, and of the judge. The self-check: perfring is
// right in every case, and each planted fault gets its expected outcome.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/perf_event.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <set>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "harness/conformance/cases/case_producer.h"
#include "harness/conformance/cases/cases.h"
#include "harness/conformance/cases/judge.h"
#include "harness/conformance/cases/vector.h"
#include "harness/conformance/subjects.h"
#include "harness/faults/fault_catalogue.h"
#include "harness/program/json.h"
#include "harness/program/read_file.h"
#include "harness/rig/simulated_ring.h"
#include "harness/script/script.h"
#include "perfring/testing/copied_events.h"
#include "perfring/testing/reference_drain.h"

namespace perfring::conformance {
namespace {

using Kind = Wanted::Kind;
using ::testing::HasSubstr;

const Case& the(std::string_view id) {
  const Case* const found = find_case(id);
  if (found == nullptr) throw std::runtime_error{"no case " + std::string{id}};
  return *found;
}

bool has_patch(const Case& of) {
  return std::ranges::any_of(of.parts,
                             [](const Part& part) { return std::holds_alternative<Patch>(part); });
}

bool has_oversize(const Case& of) {
  return std::ranges::any_of(of.parts, [](const Part& part) {
    const auto* const steps = std::get_if<std::vector<script::Step>>(&part);
    return steps != nullptr && std::ranges::any_of(*steps, [](const script::Step& step) {
             return step.number > 65500;
           });
  });
}

TEST(CasesTest, TheSuiteHasCasesOfBothKinds) {
  std::size_t reachable = 0;
  for (const Case& of : suite().cases) reachable += of.reachable ? 1 : 0;
  EXPECT_GE(reachable, 60U);
  EXPECT_GE(suite().cases.size() - reachable, 20U);
}

TEST(CasesTest, TextThatIsNoCaseIsRefusedWithItsLine) {
  const std::vector<std::pair<std::string, std::string>> refused{
      {"output 20\n", "line 1: a case begins with 'case'"},
      {"case a 1 reachable\ncase b 1 reachable\n", "line 2: a does not end with a drain"},
      {"case a 1 maybe\n", "line 1: case ID SINCE reachable|hostile"},
      {"case a 1 hostile\ndrain\n", "a has no title, or no facts"},
      {"case a 1 hostile\naccept all\n", "'all' is not understood"},
      {"case a 1 hostile\nexpect 0\n", "'expect' follows a drain"},
      {"case a 1 hostile\npatch 0 colour 1\n", "'colour' is not understood"},
      {"case a 1 hostile\ndrain\nexpect lost\n", "'lost' is not understood"},
      {"case a 1 hostile\ndrain\npages 4\n", "a setting after the first step"},
      {"case a 1 hostile\npages 3\n", "a power of two"},
      {"case a 1 hostile\nnonsense\ndrain\n", "its steps: line 1: 'nonsense'"},
      {"case a 1 hostile\ncpus 0\n", "'0' is not understood"},
      {"case a 1 hostile\ncpus 2\nabsent 2\n", "'2' is not understood"},
      {"case a 1 hostile\ncpus 3\nabsent 1\ncpu 1\n", "'1' is not understood"},
      {"case a 1 hostile\ncpus 2\nabsent 0\nabsent 1\n", "'1' is not understood"},
      {"case a 1 hostile\noutput 4\ncpus 2\n", "a setting after the first step"},
      {"case a 1 hostile\noutput 4\nduring head-read\ndrain\n", "'during' follows the drain"},
      {"case a 1 hostile\noutput 4\ndrain\nduring lunch\ndrain\n", "'lunch' is not understood"},
      {"case a 1 hostile\ncpus 2\ndrain\nexpect lost 1\n", "'lost' is not understood"},
      {"case a 1 hostile\ncpus 2\ndrain\nexpect bad\n", "'bad' is not understood"},
      {"case a 1 hostile\ntitle x\nfacts K1\ndrain\ncase a 1 hostile\n", "this id is used twice"},
  };
  for (const auto& [text, why] : refused) {
    const auto parsed = parse_suite(text);
    ASSERT_FALSE(parsed.has_value()) << text;
    EXPECT_THAT(parsed.error(), HasSubstr(why)) << text;
  }
}

TEST(ProducerTest, EachCpuHasItsTurnInAVector) {
  const Vector vector = vector_of(the("cpu-absent"));
  std::vector<std::size_t> cpus;
  for (const Turn& turn : vector.turns) cpus.push_back(turn.cpu);
  ASSERT_THAT(cpus, ::testing::ElementsAre(0, 2, 0, 2));
  EXPECT_EQ(vector.turns[0].expected, (std::vector<Event>{{.payload = payload_of(0, 20)}}));
  EXPECT_EQ(vector.turns[1].expected, (std::vector<Event>{{.payload = payload_of(1, 36)}}));
  EXPECT_THAT(vector.turns[2].writes, ::testing::IsEmpty());
  EXPECT_THAT(vector.turns[2].expected, ::testing::IsEmpty());
  EXPECT_EQ(vector.once_more().size(), 2U);
}

TEST(ProducerTest, TheExpectedEventsAreThoseOfTheLedger) {
  std::size_t compared = 0;
  for (const Case& of : suite().cases) {
    if (has_patch(of) || has_oversize(of)) continue;
    const CaseRings rings{of};
    CaseProducer producer{of, rings};
    while (producer.play_turn()) {
      for (std::size_t cpu = 0; cpu < rings.all().size(); ++cpu) {
        rig::SimulatedRing* const ring = rings.all()[cpu];
        if (ring == nullptr) continue;
        EXPECT_EQ(producer.expected(cpu), producer.events_by_ledger(cpu)) << of.id;
        perf_event_mmap_page& page = ring->page();
        page.data_tail += static_cast<std::uint32_t>(page.data_head - page.data_tail);
        ++compared;
      }
    }
  }
  EXPECT_GE(compared, 50U);
}

// The records of a place are written there or, if the consumer does not come past it, at its next
// turn.
TEST(ProducerTest, RecordsOfAPlaceBelongToTheNextTurn) {
  using Place = During::Place;
  const Case& of = the("during-each");
  for (const bool is_watched : {true, false}) {
    const CaseRings rings{of};
    CaseProducer producer{of, rings};
    EXPECT_FALSE(producer.play_during(Place::HeadRead)) << "before its drain";
    ASSERT_TRUE(producer.play_turn());
    const std::uint64_t first = rings.all()[0]->page().data_head;
    if (is_watched) {
      EXPECT_FALSE(producer.play_during(Place::TailStore)) << "another place is next";
      for (const Place place : {Place::HeadRead, Place::TailStore, Place::TailStored}) {
        const std::uint64_t before = rings.all()[0]->page().data_head;
        EXPECT_TRUE(producer.play_during(place));
        EXPECT_FALSE(producer.play_during(place)) << "only once";
        EXPECT_GT(rings.all()[0]->page().data_head, before);
      }
    }
    EXPECT_EQ(producer.expected_so_far(0).size(), 2U);
    ASSERT_TRUE(producer.play_turn());
    EXPECT_GT(rings.all()[0]->page().data_head, first);
    EXPECT_EQ(producer.expected(0), (std::vector<Event>{{.payload = payload_of(2, 36)},
                                                        {.payload = payload_of(3, 52)},
                                                        {.payload = payload_of(4, 68)}}));
    EXPECT_EQ(producer.position_of(0, 2), first);
    EXPECT_TRUE(producer.is_boundary(0, static_cast<std::uint32_t>(first)));
    EXPECT_FALSE(producer.is_boundary(0, static_cast<std::uint32_t>(first) + 8));
  }
}

// The reference is the slow consumer of lib's tests, which shares no code with the drain.
TEST(VectorTest, TheReferenceConsumerReadsWhatIsExpected) {
  std::size_t compared = 0;
  for (const Case& of : suite().cases) {
    if (of.settings.sample_type != PERF_SAMPLE_RAW) continue;
    const Vector vector = vector_of(of);
    std::vector<RingImage> images = images_of(vector);
    for (const Turn& turn : vector.turns) {
      RingImage& image = images[turn.cpu];
      image.apply(turn);
      perf_event_mmap_page& page = image.page();
      perfring::testing::ReferenceDrain reference{image.data(), page.data_tail, page.data_head};
      std::vector<Event> events;
      for (const perfring::testing::CopiedEvent& each : reference.events()) {
        using Of = perfring::testing::CopiedEvent::Kind;
        if (each.kind == Of::Lost) events.push_back({.kind = Kind::Lost, .lost = each.count});
        if (each.kind == Of::Sample) events.push_back({.payload = each.bytes});
        if (each.kind == Of::Malformed) events.push_back({.kind = Kind::Bad});
      }
      Cell cell;
      judge_events(of, turn.expected, events, cell);
      EXPECT_EQ(cell.outcome, CaseOutcome::Right) << of.id << ": " << cell.detail;
      page.data_tail += static_cast<std::uint32_t>(page.data_head - page.data_tail);
      ++compared;
    }
  }
  EXPECT_GE(compared, 90U);
}

TEST(VectorTest, TheCheckedInIndexIsWhatTheCasesGive) {
  if (std::endian::native != std::endian::little) GTEST_SKIP() << "the index is little-endian";
  std::vector<Vector> vectors;
  for (const Case& of : suite().cases) vectors.push_back(vector_of(of));
  EXPECT_TRUE(read_file(std::getenv("VECTORS")) == index_of(vectors))
      << "perfring conform --vectors >harness/conformance/vectors/index.json";
}

void collect_names(const Json& of, std::set<std::string>& names) {
  if (of.is_object()) {
    for (const auto& [name, value] : of.items()) names.insert(name);
  }
  if (!of.is_structured()) return;  // iterating over a scalar yields the scalar itself
  for (const Json& each : of) collect_names(each, names);
}

TEST(VectorTest, EveryWordOfTheIndexIsExplained) {
  std::set<std::string> names{"cases", "turns"};
  collect_names(Json::parse(std::ifstream{std::getenv("VECTORS")}), names);
  EXPECT_GE(names.size(), 25U);
  const std::string readme = read_file(std::getenv("VECTORS_README")).value();
  for (const std::string& name : names) {
    if (name == "cases") continue;
    EXPECT_THAT(readme, HasSubstr("`" + name + "`"));
  }
}

TEST(VectorTest, BytesAreTextWithRepetitionsCounted) {
  std::vector<std::byte> bytes{std::byte{1}, std::byte{0xab}};
  EXPECT_EQ(to_text(bytes), "01ab");
  bytes.insert(bytes.end(), 30, std::byte{0xa5});
  bytes.push_back(std::byte{2});
  EXPECT_EQ(to_text(bytes), "01ab a5*30 02");
}

// The case size-0 expects sample 0, an error, and perhaps samples 1 and 2.
class JudgeTest : public ::testing::Test {
 protected:
  const Case& of = the("size-0");
  const std::vector<Event> expected = vector_of(of).turns[0].expected;
  const Event first = whole(0);
  const Event third = whole(2);
  const Event error{.kind = Kind::Bad};

  static Event whole(std::uint64_t output) { return {.payload = payload_of(output, 20)}; }
  Cell judged(const std::vector<Event>& events) const {
    Cell cell;
    judge_events(of, expected, events, cell);
    return cell;
  }
  static Cell of_a_plain_case(const std::vector<Event>& events) {
    Cell cell;
    const Case& plain = the("three-sizes");
    judge_events(plain, vector_of(plain).turns[0].expected, events, cell);
    return cell;
  }
};

TEST_F(JudgeTest, TheStrictEventsAreRight) {
  EXPECT_EQ(judged({first, error}).outcome, CaseOutcome::Right);
}

TEST_F(JudgeTest, AnAcceptableOutcomeNamesWhatTheCaseAccepts) {
  const Cell silent = judged({first, third});
  EXPECT_EQ(silent.outcome, CaseOutcome::Acceptable);
  EXPECT_THAT(silent.accepted, ::testing::ElementsAre(Accept::Silent, Accept::Guesses));
  EXPECT_THAT(judged({first, error, error}).accepted, ::testing::ElementsAre(Accept::Errors));
  EXPECT_THAT(judged({first, error, third}).accepted, ::testing::ElementsAre(Accept::Guesses));
}

// The case expects an error, and perhaps the sample, which is intact; in either order.
TEST_F(JudgeTest, ErrorMayFollowIntactRecordAtWrongHeader) {
  const Case& off = the("head-off-the-grid");
  const std::vector<Event> wanted = vector_of(off).turns[0].expected;
  ASSERT_EQ(wanted.size(), 2U);
  const auto outcome = [&](const std::vector<Event>& events) {
    Cell cell;
    judge_events(off, wanted, events, cell);
    return std::pair{cell.outcome, cell.accepted};
  };
  using Accepts = std::vector<Accept>;
  EXPECT_EQ(outcome({first, error}), std::pair(CaseOutcome::Acceptable, Accepts{Accept::Guesses}));
  EXPECT_EQ(outcome({error, first}), std::pair(CaseOutcome::Acceptable, Accepts{Accept::Guesses}));
  EXPECT_EQ(outcome({first}).second, (Accepts{Accept::Silent, Accept::Guesses}));
  EXPECT_EQ(outcome({first, error, error}).second, (Accepts{Accept::Errors, Accept::Guesses}));
  EXPECT_EQ(outcome({error, first, error}).second, (Accepts{Accept::Errors, Accept::Guesses}));
  EXPECT_EQ(outcome({}).first, CaseOutcome::Loses);
  EXPECT_EQ(judged({third, error}).accepted, Accepts{Accept::Guesses}) << "sample 0 is lost";
}

// Whether it follows the malformed record or is overwritten by it, and wherever the tail stays.
TEST_F(JudgeTest, AnIntactRecordIsNeverLostWithoutAWord) {
  const Cell truncated = judged({first});
  EXPECT_EQ(truncated.outcome, CaseOutcome::Loses);
  EXPECT_THAT(truncated.detail, HasSubstr(std::endian::native == std::endian::little
                                              ? "not reported: sample of 20 bytes: 03 00"
                                              : "not reported: sample of 20 bytes: 00 00"));
  Cell overwritten;
  const Case& overwrites = the("oversize-overwrites");
  judge_events(overwrites, vector_of(overwrites).turns[0].expected, {}, overwritten);
  judge_tail(overwrites, {0, 144, 0}, overwritten);
  EXPECT_EQ(overwritten.outcome, CaseOutcome::Loses);
  Cell damaged;
  const Case& last = the("size-0-last");
  judge_events(last, vector_of(last).turns[0].expected, {&first, 1}, damaged);
  EXPECT_THAT(damaged.accepted, ::testing::ElementsAre(Accept::Silent)) << "nothing else is lost";
}

TEST_F(JudgeTest, BytesThatNobodyWroteAreGarbage) {
  Event wrong = first;
  wrong.payload[3] ^= std::byte{1};
  EXPECT_EQ(judged({wrong, error}).outcome, CaseOutcome::Garbage);
  Event longer = first;
  longer.payload.push_back({});
  EXPECT_EQ(judged({longer, error}).outcome, CaseOutcome::Garbage);
  EXPECT_EQ(judged({first, {.kind = Kind::Lost, .lost = 1}, error}).outcome, CaseOutcome::Garbage);
}

// The case payload-0 has a sample of 4 bytes. All are padding, which may have any value.
TEST_F(JudgeTest, DeliveredPaddingMayHaveAnyValue) {
  const Case& padded = the("payload-0");
  const std::vector<Event> wanted = vector_of(padded).turns[0].expected;
  ASSERT_EQ(wanted[0].padding, 4U);
  const auto with = [&](std::size_t bytes) {
    Cell cell;
    const std::vector<Event> events{{.payload = std::vector(bytes, std::byte{0xee})}, whole(1)};
    judge_events(padded, wanted, events, cell);
    return cell.outcome;
  };
  EXPECT_EQ(with(4), CaseOutcome::Right);
  for (const std::size_t wrong : {0U, 3U, 5U, 8U})
    EXPECT_EQ(with(wrong), CaseOutcome::Garbage) << wrong;
}

TEST_F(JudgeTest, ALostOfAnotherCountNamesWhatWasDue) {
  const Case& lost = the("lost-one");
  const std::vector<Event> wanted{whole(0), {.kind = Kind::Lost, .lost = 100}, whole(1)};
  const auto detail = [&](const std::vector<Event>& events) {
    Cell cell;
    judge_events(lost, wanted, events, cell);
    return cell.detail;
  };
  EXPECT_EQ(detail({whole(0), {.kind = Kind::Lost, .lost = 1}, whole(1)}),
            "never written: LOST 1, expected LOST 100");
  EXPECT_EQ(detail({whole(0), wanted[1], {.kind = Kind::Lost, .lost = 1}, whole(1)}),
            "never written: LOST 1");
}

// A consumer may repeat an error in a later turn or in the same one. Both are judged alike.
TEST_F(JudgeTest, AnErrorThatComesOnceMoreIsJudgedAsInOneTurn) {
  const Case& off = the("head-off-the-grid");
  const std::vector<Event> wanted = vector_of(off).turns[0].expected;
  const auto in_two_turns = [](const Case& one, const std::vector<Event>& due,
                               const std::vector<Event>& at_first, const std::vector<Event>& then) {
    Cell cell;
    std::vector<Event> so_far;
    judge_turn(one, so_far, due, at_first, cell);
    judge_turn(one, so_far, {}, then, cell);
    return cell;
  };
  const Cell again = in_two_turns(off, wanted, {error}, {error});
  EXPECT_EQ(again.outcome, CaseOutcome::Acceptable);
  EXPECT_THAT(again.accepted, ::testing::ElementsAre(Accept::Errors));
  EXPECT_EQ(again.detail, "a second error for one malformed record");
  const Cell twice = in_two_turns(off, wanted, {error}, {first, error});
  EXPECT_EQ(twice.detail, "delivered again: " + to_text(first));
  const Case& plain = the("one-record");
  EXPECT_EQ(in_two_turns(plain, {whole(0)}, {whole(0)}, {error}).outcome, CaseOutcome::Garbage);
  EXPECT_EQ(in_two_turns(plain, {whole(0)}, {}, {whole(0)}).outcome, CaseOutcome::Garbage);
}

TEST_F(JudgeTest, ARecordThatComesAgainIsGarbage) {
  const Cell cell = judged({first, first, error});
  EXPECT_EQ(cell.outcome, CaseOutcome::Garbage);
  EXPECT_THAT(cell.detail, HasSubstr("delivered again"));
}

TEST_F(JudgeTest, AnIntactRecordThatIsMissingIsLost) {
  EXPECT_EQ(judged({error}).outcome, CaseOutcome::Garbage) << "an error in the place of a sample";
  EXPECT_EQ(judged({}).outcome, CaseOutcome::Loses);
  const Event a{.payload = payload_of(0, 4)};
  const Event c = whole(2);
  EXPECT_EQ(of_a_plain_case({a, c}).outcome, CaseOutcome::Loses);
}

TEST_F(JudgeTest, AnErrorInAnIntactRingIsGarbage) {
  const Event a{.payload = payload_of(0, 4)};
  const Event b{.payload = payload_of(1, 100)};
  EXPECT_EQ(of_a_plain_case({a, b, whole(2)}).outcome, CaseOutcome::Right);
  EXPECT_EQ(of_a_plain_case({a, error, b, whole(2)}).outcome, CaseOutcome::Garbage);
}

// The events of several rings may come in any order relative to each other.
TEST_F(JudgeTest, SeveralRingsHaveAnOrderEach) {
  const Case& two = the("cpus-2");
  const std::vector<Event> here{whole(0), whole(1)};
  const std::vector<Event> there{whole(2), {.kind = Kind::Lost, .lost = 4}};
  const std::vector<std::span<const Event>> both{here, there};
  const auto outcome = [&](const std::vector<Event>& events) {
    Cell cell;
    judge_streams(two, both, events, cell);
    return cell.outcome;
  };
  EXPECT_EQ(outcome({here[0], here[1], there[0], there[1]}), CaseOutcome::Right);
  EXPECT_EQ(outcome({there[0], here[0], there[1], here[1]}), CaseOutcome::Right);
  EXPECT_EQ(outcome({here[0], there[1], there[0], here[1]}), CaseOutcome::Garbage)
      << "out of order";
  EXPECT_EQ(outcome({here[0], there[0], there[1]}), CaseOutcome::Loses);
  EXPECT_EQ(outcome({here[0], here[1], there[0]}), CaseOutcome::Loses);
  EXPECT_EQ(outcome({here[0], here[1], there[0], there[1], there[0]}), CaseOutcome::Garbage);
  EXPECT_EQ(outcome({here[0], here[1], there[0], there[1], error}), CaseOutcome::Garbage);
}

TEST_F(JudgeTest, TailIsRightOnlyAtHead) {
  const auto tail = [](const Case& one, const Tails& tails) {
    Cell cell;
    judge_tail(one, tails, cell);
    return cell.outcome;
  };
  const Case& plain = the("one-record");
  EXPECT_EQ(tail(plain, {0, 32, 32}), CaseOutcome::Right);
  EXPECT_EQ(tail(plain, {0, 32, 40}), CaseOutcome::Loses);
  EXPECT_EQ(tail(plain, {0, 32, 0}), CaseOutcome::Loses);
  EXPECT_EQ(tail(plain, {0, 32, 28}), CaseOutcome::Garbage);
  EXPECT_EQ(tail(of, {0, 32, 40}), CaseOutcome::Loses) << "never beyond, even where it may stop";
  EXPECT_EQ(tail(of, {0, 32, 0}), CaseOutcome::Acceptable) << "it accepts one that stops";
  for (const Case* const each : {&plain, &of}) {
    EXPECT_EQ(tail(*each, {64, 96, 32}), CaseOutcome::Loses) << "it goes back";
    EXPECT_EQ(tail(*each, {64, 64, 56}), CaseOutcome::Loses)
        << "it goes back, with nothing to read";
    EXPECT_EQ(tail(*each, {0x1'0000'0020, 0x1'0000'0040, 0xffff'fff0}), CaseOutcome::Loses)
        << "it goes back across 4 GiB";
  }
  Cell back;
  judge_place({64, 96, 32}, back);
  EXPECT_EQ(back.outcome, CaseOutcome::Loses) << "nor may it, before the turn's end";
  EXPECT_EQ(tail(plain, {0xffff'ffe0, 0x20, 0x1'0000'0020}), CaseOutcome::Right) << "modulo 2^32";
}

TEST(SelfCheckTest, PerfringIsRightInEveryCase) {
  EXPECT_GE(suite().cases.size(), 123u);
  for (const Case& of : suite().cases) {
    const Cell cell = run_perfring(vector_of(of));
    EXPECT_EQ(cell.outcome, CaseOutcome::Right) << of.id << ": " << cell.detail;
  }
}

// The worst outcome of all cases is the catalogue's.
TEST(SelfCheckTest, EachFaultGetsTheOutcomeThatTheCatalogueSays) {
  std::vector<Vector> vectors;
  for (const Case& of : suite().cases) vectors.push_back(vector_of(of));
  const auto planted = planted_faults();
  std::size_t found = 0;
  for (const faults::Fault& fault : faults::catalogue()) {
    const faults::Conforms expected = by_conformance(fault);
    const auto* const outcome = std::get_if<const char*>(&expected);
    if (std::ranges::find(planted, fault.name) == planted.end()) {
      ASSERT_EQ(outcome, nullptr) << fault.name;
      EXPECT_TRUE(is_not_planted(std::get<faults::Reason>(expected))) << fault.name;
      continue;
    }
    CaseOutcome worst = CaseOutcome::Right;
    for (const Vector& vector : vectors) {
      const Cell cell = run_fault(fault.name, vector);
      if (is_failure(cell.outcome)) worst = std::max(worst, cell.outcome);
    }
    EXPECT_STREQ(to_string(worst), outcome == nullptr ? "right" : *outcome) << fault.name;
    ++found;
  }
  EXPECT_EQ(found, planted.size());
  EXPECT_GE(found, 35U);
}

}  // namespace
}  // namespace perfring::conformance
