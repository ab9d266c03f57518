#include "harness/stress/run.h"

#include <fmt/format.h>

#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "harness/kernel/perf_event.h"
#include "harness/stress/threads.h"

namespace perfring::stress {
namespace {

constexpr std::size_t kPageSize = 4096;

std::uint64_t draw_start(Random& random, kernel::Word word, std::uint64_t size) {
  const std::uint64_t before = random() % (4 * size / 8) * 8;
  switch (random() % 4) {
    case 0:
      return before;
    case 1:
      if (word == kernel::Word::k64) return std::uint64_t{0} - 8 - before;
      [[fallthrough]];
    default:
      return (std::uint64_t{1} << 32) - 8 - before;
  }
}

}  // namespace

Setting draw(Random& random, std::size_t pages) {
  Setting setting;
  setting.ring.pages = pages != 0 ? pages : 1 + random() % 2;
  setting.ring.word = random() % 2 == 0 ? kernel::Word::k32 : kernel::Word::k64;
  setting.ring.start = draw_start(random, setting.ring.word, ring_size(setting));
  setting.levels = random() % 2 == 0 ? 1 : 2 + static_cast<unsigned>(random() % (kLevelsMax - 1));
  setting.payload_max = longest_payload(ring_size(setting)) >> random() % 6;
  setting.calm = 8U << 2 * (random() % 4);
  setting.patient = random() % 2 == 0;
  setting.seed = random();
  return setting;
}

std::size_t ring_size(const Setting& setting) {
  return static_cast<std::size_t>(setting.ring.pages) * kPageSize;
}

// The ring without the 8 bytes that stay free (K12), a LOST (K14), and a header with raw size (K1).
std::uint32_t longest_payload(std::size_t ring_size) {
  constexpr std::size_t kRecordMax = 65528;
  const std::size_t record = ring_size - 8 - 24;
  return static_cast<std::uint32_t>((record < kRecordMax ? record : kRecordMax) - 12);
}

std::string describe(const Setting& setting) {
  return fmt::format(
      "{} pages, {}-bit, from {:#x}, {} levels, payloads up to {}, calm {}, {}, {} {}",
      setting.ring.pages, setting.ring.word == kernel::Word::k64 ? 64 : 32, setting.ring.start,
      setting.levels, setting.payload_max, setting.calm, setting.patient ? "patient" : "greedy",
      setting.ring.watermark ? "watermark" : "wakeup_events", setting.ring.wakeup);
}

std::future<void> start_thread(std::function<void()> work) {
  return std::async(std::launch::async, std::move(work));
}

std::vector<Setting> draw_rings(Random& random, const Run& run) {
  std::vector<Setting> settings(static_cast<std::size_t>(1 + random() % run.rings));
  std::uint32_t first_stream = 0;
  for (Setting& setting : settings) {
    setting = draw(random, run.pages);
    setting.first_stream = std::exchange(first_stream, first_stream + kLevelsMax);
  }
  return settings;
}

PartReport rounds(std::string part, const Run& run,
                  const std::function<void(PartReport&, Random&)>& round) {
  PartReport outcome;
  outcome.part = std::move(part);
  Random random{run.seed};
  const auto begin = Clock::now();
  const std::chrono::duration<double> limit{run.seconds};
  do {
    round(outcome, random);
    ++outcome.rounds;
  } while ((outcome.holds() || run.keep_going) && !run.interrupted() &&
           Clock::now() - begin < limit);
  outcome.seconds = std::chrono::duration<double>{Clock::now() - begin}.count();
  return outcome;
}

PartReport threads(const Run& run, std::unique_ptr<ThreadedRing> (*make_ring)(const Setting&)) {
  constexpr std::chrono::milliseconds kRound{50};
  return rounds("threads", run, [&](PartReport& outcome, Random& random) {
    std::atomic<bool> stop{false};
    std::vector<std::unique_ptr<ThreadedRing>> rings;
    const StopGuard stop_guard{stop};  // stops before the rings join their threads
    for (const Setting& setting : draw_rings(random, run)) rings.push_back(make_ring(setting));
    for (const auto& ring : rings) ring->start(stop);
    for (const auto end = Clock::now() + kRound; Clock::now() < end;) {
      bool any = false;
      for (const auto& ring : rings) any |= ring->drain();
      if (!any) std::this_thread::yield();
    }
    stop.store(true, std::memory_order_relaxed);
    for (const auto& ring : rings) ring->end(outcome);
  });
}

}  // namespace perfring::stress
