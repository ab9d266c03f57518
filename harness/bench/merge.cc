// Measures how fast the events of several rings are delivered in key order: by perfring's Merge,
// compared with the same rings drained in no order, and with other methods. See README.md.

#include <fmt/format.h>
#include <linux/perf_event.h>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <queue>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "harness/bench/bench_options.h"
#include "harness/bench/race.h"
#include "harness/bench/workload.h"
#include "harness/program/console.h"
#include "harness/program/json.h"
#include "harness/program/options.h"
#include "harness/program/output_file.h"
#include "harness/program/run_program.h"
#include "harness/program/verdict.h"
#include "perfring/merge/key_at.h"
#include "perfring/merge/merge.h"
#include "perfring/perf_event.h"
#include "perfring/ring/default_memory.h"
#include "perfring/ring/ring.h"

namespace perfring::bench {
namespace {

constexpr std::size_t kRecordBytes = 64;
constexpr std::uint32_t kRawBytes = 52;
constexpr std::size_t kRun = 16;  // mean length of a run of events from one ring

// A ring. The first `used` bytes of its data are written.
class OneRing {
 public:
  explicit OneRing(std::size_t size) : memory_{size} {}

  perf_event_mmap_page& page() const { return memory_.page(); }
  std::span<std::byte> data() const { return memory_.data(); }
  std::span<const std::byte> used() const { return data().first(used_); }
  bool has_room() const { return used_ + kRecordBytes <= data().size(); }

  void write(std::uint64_t key) {
    std::byte* const at = data().data() + used_;
    const perf_event_header header{PERF_RECORD_SAMPLE, PERF_RECORD_MISC_KERNEL, kRecordBytes};
    std::memcpy(at, &header, sizeof(header));
    std::memcpy(at + 8, &kRawBytes, sizeof(kRawBytes));
    std::memcpy(at + 12, &key, sizeof(key));
    used_ += kRecordBytes;
  }
  // Makes the ring full again.
  void refill() const {
    page().data_tail = 0;
    page().data_head = used_;
  }

 private:
  MappedRing memory_;
  std::size_t used_ = 0;
};

// The callback reads 12 bytes of each event.
[[gnu::always_inline]] inline void add_event(Tally& tally, const std::byte* raw) {
  std::uint64_t key;
  std::uint32_t more;
  std::memcpy(&key, raw, sizeof(key));
  std::memcpy(&more, raw + sizeof(key), sizeof(more));
  ++tally.events;
  tally.sum += key + more;
}
[[gnu::always_inline]] inline void add_event(Tally& tally, const PerfEvent& event) {
  if (const auto* const sample = std::get_if<Sample>(&event)) {
    add_event(tally, sample->head.data());
  } else {
    ++tally.odd;
  }
}

// One line of the table: events in key order, each on a random ring.
struct Load {
  Load(std::size_t k, std::size_t bytes, bool in_runs) {
    for (std::size_t i = 0; i < k; ++i) rings.emplace_back(std::bit_ceil(2 * bytes / k));
    std::mt19937_64 random{1};
    const auto any_ring = [&] { return static_cast<std::size_t>(random() % k); };
    std::size_t ring = 0;
    for (std::size_t event = 0; event < bytes / kRecordBytes; ++event) {
      if (!in_runs || random() % kRun == 0) ring = any_ring();
      while (!rings[ring].has_room()) ring = any_ring();
      end += 1 + random() % 200;
      rings[ring].write(end);
      ++tally.events;
      tally.sum += end;
    }
    ++end;
  }

  void refill() const {
    for (const OneRing& ring : rings) ring.refill();
  }

  std::vector<OneRing> rings;
  std::uint64_t end = 0;  // higher than all keys
  Tally tally;
};

[[gnu::noinline]] Tally unmerged(const Load& load) {
  Tally tally;
  for (const OneRing& ring : load.rings) {
    Ring<>::over(ring.page(), ring.data())
        ->for_each([&](const PerfEvent& event)
                       __attribute__((always_inline)) { add_event(tally, event); });
  }
  return tally;
}

// Each pass has higher keys than the previous one, so that no event is late.
template <unsigned kWindow>
class Merged {
 public:
  explicit Merged(const Load& load) : load_{load} {
    for (const OneRing& ring : load.rings) merge_.add(ring.page(), ring.data());
  }
  [[gnu::noinline]] Tally operator()() {
    Tally tally;
    const std::uint64_t passed = load_.end * passes_++;
    const std::uint64_t now = passed + load_.end;
    merge_.run([passed](const Sample& sample)
                   __attribute__((always_inline)) { return passed + KeyAt{}(sample); },
               [now] { return now; },
               [&](const Ordered& each)
                   __attribute__((always_inline)) { add_event(tally, each.event); });
    tally.odd += merge_.counts().late;
    return tally;
  }

 private:
  const Load& load_;
  Merge<DefaultMemory, kWindow> merge_{{.slack = 0, .learns = false}};
  std::uint64_t passes_ = 0;
};

std::uint64_t key_of(const std::byte* record) {
  std::uint64_t key;
  std::memcpy(&key, record + 12, sizeof(key));
  return key;
}

// In place: a queue with the next record of each ring, unchecked.
[[gnu::noinline]] Tally queue_of_places(const Load& load) {
  struct Place {
    std::uint64_t key;
    const std::byte* record;
    const std::byte* end;
    bool operator<(const Place& other) const { return key > other.key; }
  };
  Tally tally;
  std::priority_queue<Place> queue;
  const auto push = [&](const std::byte* record, const std::byte* end) {
    if (record != end) queue.push({key_of(record), record, end});
  };
  for (const OneRing& ring : load.rings) {
    push(ring.used().data(), ring.used().data() + ring.used().size());
  }
  while (!queue.empty()) {
    const Place place = queue.top();
    queue.pop();
    add_event(tally, place.record + 12);
    perf_event_header header;
    std::memcpy(&header, place.record, sizeof(header));
    push(place.record + header.size, place.end);
  }
  return tally;
}

// Copies each event into its own memory, and queues the copies.
[[gnu::noinline]] Tally queue_of_copies(const Load& load) {
  struct Copy {
    std::uint64_t key;
    std::unique_ptr<std::byte[]> raw;
    bool operator<(const Copy& other) const { return key > other.key; }
  };
  Tally tally;
  std::priority_queue<Copy> queue;
  for (const OneRing& ring : load.rings) {
    Ring<>::over(ring.page(), ring.data())->for_each([&](const PerfEvent& event) {
      const auto& sample = std::get<Sample>(event);
      auto raw = std::make_unique<std::byte[]>(sample.size());
      sample.copy_to({raw.get(), sample.size()});
      queue.push({KeyAt{}(sample), std::move(raw)});
    });
  }
  for (; !queue.empty(); queue.pop()) add_event(tally, queue.top().raw.get());
  return tally;
}

template <class F>
Contender contender(const std::string& name, const Load& load, F pass) {
  return {name, [&load, pass = std::move(pass)](unsigned passes) mutable {
            Tally tally;
            for (; passes != 0; --passes) {
              load.refill();
              tally += pass();
            }
            return tally;
          }};
}

// The table, and the same numbers as JSON.
struct Figures {
  std::string table;
  Json json = Json::array();
  bool wrong = false;
};

// Measures one line, or reports a contender that delivered other events.
void measure(const Load& load, std::size_t k, bool in_runs, unsigned rounds, Figures& figures) {
  auto merged1 = std::make_shared<Merged<1>>(load);
  auto merged8 = std::make_shared<Merged<8>>(load);
  Race race{{contender("unmerged", load, [&] { return unmerged(load); }),
             contender("window 1", load, [=] { return (*merged1)(); }),
             contender("window 8", load, [=] { return (*merged8)(); }),
             contender("places", load, [&] { return queue_of_places(load); }),
             contender("copies", load, [&] { return queue_of_copies(load); })},
            load.tally};
  for (unsigned i = 0; i < rounds; ++i) race.round();
  if (race.wrong()) {
    figures.wrong = true;
    figures.table += *race.wrong() + " delivered other events\n";
    return;
  }
  const double unmerged = race.ns("unmerged");
  const double one = race.ns("window 1");
  const double eight = race.ns("window 8");
  const double places = race.ns("places");
  const double copies = race.ns("copies");
  const char* const order = in_runs ? "runs" : "random";
  figures.json.push_back({{"name", fmt::format("{}/{}", order, k)},
                          {"unmerged", unmerged},
                          {"window 1", one},
                          {"window 8", eight},
                          {"places", places},
                          {"copies", copies},
                          {"window 1/unmerged", one / unmerged},
                          {"window 8/unmerged", eight / unmerged},
                          {"places/window 1", places / one},
                          {"places/window 8", places / eight},
                          {"copies/window 1", copies / one},
                          {"copies/window 8", copies / eight}});
  figures.table += fmt::format(
      "{:6} {:4} {:9.2f} {:9.2f} {:5.1f}x {:9.2f} {:5.1f}x {:9.1f} {:5.1f}x {:5.1f}x {:9.1f} "
      "{:5.1f}x {:5.1f}x\n",
      order, k, unmerged, one, one / unmerged, eight, eight / unmerged, places, places / one,
      places / eight, copies, copies / one, copies / eight);
}

int merge(int argc, char** argv) {
  auto parsed = parse_merge(argc, argv);
  if (const auto* answer = std::get_if<Answer>(&parsed)) return print_answer(*answer);
  const auto& options = std::get<MergeOptions>(parsed);
  Figures figures;
  figures.table =
      fmt::format("{:6} {:>4} {:>9} {:>16} {:>16} {:>23} {:>23}\n", "order", "K", "unmerged",
                  "window 1", "window 8", "queue of places", "queue of copies");
  for (const bool in_runs : {false, true}) {
    for (const std::size_t k : options.rings) {
      const Load load{k, options.kib * 1024, in_runs};
      measure(load, k, in_runs, static_cast<unsigned>(options.rounds), figures);
    }
  }
  const Conclusion conclusion = conclude(figures.wrong, false);
  if (!options.json.empty()) {
    Json all = to_json(conclusion);
    all["benchmarks"] = std::move(figures.json);
    const auto written = write_output("--json", options.json, dump(all));
    if (!written) return fail(written.error());
  }
  if (options.json == "-") return exit_code(conclusion.verdict);
  return deliver(figures.table, exit_code(conclusion.verdict), "the table");
}

}  // namespace
}  // namespace perfring::bench

int main(int argc, char** argv) {
  return perfring::run_program("merge", perfring::bench::merge, argc, argv);
}
