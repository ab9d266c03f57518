// The cost of typed records: walks a ring of equal records in three ways, in turns.
//   chase    from header to header, nothing else: a floor
//   by hand  some fields, read at their offsets without checks
//   decoded  the same fields, through record::decode() and its accessors
// Prints ns per record and two ratios, each the median of many rounds.
// usage: records [--json -]

#include <fmt/format.h>
#include <linux/perf_event.h>

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <initializer_list>
#include <ratio>
#include <span>
#include <string_view>
#include <variant>
#include <vector>

#include "perfring/perf_event.h"
#include "perfring/record/bytes.h"
#include "perfring/record/counts.h"
#include "perfring/record/decode.h"
#include "perfring/record/layout.h"
#include "perfring/record/mappings.h"
#include "perfring/record/read_values.h"
#include "perfring/record/sample.h"
#include "perfring/record/tasks.h"

namespace perfring::bench {
namespace {

constexpr std::size_t kCount = 1024;
constexpr std::size_t kRounds = 2001;
using Words = std::initializer_list<std::uint64_t>;

template <class T>
T at(Bytes record, std::size_t offset) {
  T value;
  std::memcpy(&value, record.data() + offset, sizeof value);
  return value;
}
std::uint64_t u64(Bytes record, std::size_t offset) {
  return at<std::uint64_t>(record, offset);
}
std::uint64_t u32(Bytes record, std::size_t offset) {
  return at<std::uint32_t>(record, offset);
}
std::size_t size_at(Bytes record, std::size_t offset) {
  return static_cast<std::size_t>(u64(record, offset));
}

std::vector<std::byte> records(std::uint32_t type, Words body) {
  const std::size_t size = sizeof(perf_event_header) + body.size() * 8;
  const perf_event_header header{type, PERF_RECORD_MISC_USER, static_cast<std::uint16_t>(size)};
  std::vector<std::byte> bytes(kCount * size);
  for (std::size_t i = 0; i < kCount; ++i) {
    std::memcpy(&bytes[i * size], &header, sizeof header);
    std::memcpy(&bytes[i * size + sizeof header], std::data(body), body.size() * 8);
  }
  return bytes;
}

record::Layout layout(std::uint64_t sample_type) {
  perf_event_attr attr{};
  attr.sample_type = sample_type;
  attr.read_format = PERF_FORMAT_GROUP | PERF_FORMAT_ID;
  attr.sample_id_all = 1;
  return record::Layout{attr};
}

template <class Each>
std::uint64_t walk(Bytes bytes, const Each& each) {
  std::uint64_t sum = 0;
  while (!bytes.empty()) {
    const auto header = record::internal::load_once<std::uint64_t>(bytes.data());
    const std::size_t size = std::bit_cast<perf_event_header>(header).size;
    sum += each(bytes.first(size));
    bytes = bytes.subspan(size);
  }
  return sum;
}

// Prints lines of text, or the JSON that ci/run bench reads.
class Report {
 public:
  explicit Report(bool is_json) : is_json_{is_json} {
    if (is_json_) {
      fmt::print("{{\"benchmarks\": [");
    } else {
      fmt::print("ns for each      chase   by hand   decoded   decoded/chase   decoded/by hand\n");
    }
  }
  void add(std::string_view name, double chase, double by_hand, double decoded) {
    if (is_json_) {
      fmt::print("{}\n{{\"name\": \"{}\", \"decoded/chase\": {:.3f}, \"decoded/by hand\": {:.3f}}}",
                 separator_, name, decoded / chase, decoded / by_hand);
      separator_ = ",";
    } else {
      fmt::print("{:<12}{:>10.2f}{:>10.2f}{:>10.2f}{:>16.2f}{:>18.2f}\n", name, chase, by_hand,
                 decoded, decoded / chase, decoded / by_hand);
    }
  }
  void end() const {
    if (is_json_) fmt::print("]}}\n");
  }

 private:
  bool is_json_;
  const char* separator_ = "";
};

// Times the three ways on equal records. `by_hand` takes a record's bytes and `read` takes its
// View; both return the sum of the same fields.
template <class View, class ByHand, class Read>
bool raced(std::string_view name, std::uint64_t sample_type, const std::vector<std::byte>& bytes,
           const ByHand& by_hand, const Read& read, Report& report) {
  const record::Layout layout = bench::layout(sample_type);
  const auto decoded = [&](Bytes one) -> std::uint64_t {
    const record::Any any = record::decode(one, layout);
    const auto* const view = std::get_if<View>(&any);
    // Use the other alternatives too: otherwise the compiler would not decode them.
    return view == nullptr ? any.index() : read(*view);
  };
  if (walk(bytes, by_hand) != walk(bytes, decoded)) {
    fmt::print(stderr, "records: {}: the decoded values differ from those read by hand\n", name);
    return false;
  }
  std::array<std::vector<double>, 3> times;
  [[maybe_unused]] volatile std::uint64_t kept = 0;
  const auto timed = [&](std::size_t which, const auto& each) {
    const auto begin = std::chrono::steady_clock::now();
    kept = walk(bytes, each);
    const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - begin;
    times[which].push_back(took.count() / kCount);
  };
  for (std::size_t round = 0; round < kRounds; ++round) {
    timed(0, [](Bytes one) { return one.size(); });
    timed(1, by_hand);
    timed(2, decoded);
  }
  std::array<double, 3> median{};
  for (std::size_t i = 0; i < times.size(); ++i) {
    std::ranges::nth_element(times[i], times[i].begin() + kRounds / 2);
    median[i] = times[i][kRounds / 2];
  }
  report.add(name, median[0], median[1], median[2]);
  return true;
}

constexpr std::uint64_t kPlace = PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME;
constexpr std::uint64_t kTid = std::uint64_t{2} << 32 | 1;  // pid 1, tid 2
constexpr std::uint64_t kName = 0x6c6f6f702f6e6962;         // 8 characters of a path

bool samples(Report& report) {
  using record::Sample;
  return raced<Sample>(
             "records", kPlace | PERF_SAMPLE_CPU | PERF_SAMPLE_PERIOD,
             records(PERF_RECORD_SAMPLE, {7, kTid, 3, 1, 5}),
             [](Bytes one) {
               return u64(one, 8) + u32(one, 20) + u64(one, 24) + u32(one, 32) + u64(one, 40);
             },
             [](const Sample& sample) {
               return *sample.ip() + *sample.tid() + *sample.time() + *sample.cpu() +
                      *sample.period();
             },
             report) &&
         raced<Sample>(
             "raw", kPlace | PERF_SAMPLE_CPU | PERF_SAMPLE_RAW,
             records(PERF_RECORD_SAMPLE, {7, kTid, 3, 1, 28, 11, 12, 13}),
             [](Bytes one) {
               const Bytes raw = one.subspan(44, static_cast<std::size_t>(u32(one, 40)));
               return u64(one, 24) + raw.size() + u64(raw, 4);
             },
             [](const Sample& sample) {
               const Bytes raw = *sample.raw();
               return *sample.time() + raw.size() + u64(raw, 4);
             },
             report) &&
         raced<Sample>(
             "callchain", kPlace | PERF_SAMPLE_CALLCHAIN,
             records(PERF_RECORD_SAMPLE, {7, kTid, 3, 8, 1, 2, 3, 4, 5, 6, 7, 8}),
             [](Bytes one) {
               std::uint64_t sum = u64(one, 24);
               for (std::size_t i = 0, nr = size_at(one, 32); i < nr; ++i)
                 sum += u64(one, 40 + 8 * i);
               return sum;
             },
             [](const Sample& sample) {
               std::uint64_t sum = *sample.time();
               for (const std::uint64_t ip : sample.callchain()->ips()) sum += ip;
               return sum;
             },
             report) &&
         raced<Sample>(
             "read", PERF_SAMPLE_TIME | PERF_SAMPLE_READ,
             records(PERF_RECORD_SAMPLE, {3, 2, 100, 1, 200, 2}),
             [](Bytes one) {
               std::uint64_t sum = u64(one, 8);
               for (std::size_t i = 0, nr = size_at(one, 16); i < nr; ++i) {
                 sum += u64(one, 24 + 16 * i);
               }
               return sum;
             },
             [](const Sample& sample) {
               const record::ReadValues values = *sample.values();
               std::uint64_t sum = *sample.time();
               for (std::size_t i = 0; i < values.size(); ++i) sum += values[i].value;
               return sum;
             },
             report);
}

// Records with sample_id (TID, TIME, CPU) at the end.
bool side_band(Report& report) {
  constexpr std::uint64_t kFields = PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU;
  const auto time = [](Bytes one) { return u64(one, one.size() - 16); };
  const auto text = [](Bytes one, std::size_t offset) {
    return std::string_view{reinterpret_cast<const char*>(one.data() + offset)}.size();
  };
  return raced<record::Lost>(
             "lost", kFields, records(PERF_RECORD_LOST, {9, 5, kTid, 3, 1}),
             [&](Bytes one) { return u64(one, 8) + u64(one, 16) + time(one); },
             [](const record::Lost& lost) {
               return lost.id() + lost.lost() + *lost.sample_id().time();
             },
             report) &&
         raced<record::Switch>(
             "switch", kFields, records(PERF_RECORD_SWITCH, {kTid, 3, 1}),
             [&](Bytes one) {
               const bool is_out =
                   (at<perf_event_header>(one, 0).misc & PERF_RECORD_MISC_SWITCH_OUT) != 0;
               return u32(one, 12) + time(one) + is_out;
             },
             [](const record::Switch& one) {
               return *one.sample_id().tid() + *one.sample_id().time() + one.is_out();
             },
             report) &&
         raced<record::Fork>(
             "fork", kFields, records(PERF_RECORD_FORK, {kTid, kTid, 3, kTid, 3, 1}),
             [&](Bytes one) { return u32(one, 8) + u32(one, 16) + time(one); },
             [](const record::Fork& fork) {
               return fork.pid() + fork.tid() + *fork.sample_id().time();
             },
             report) &&
         raced<record::Comm>(
             "comm", kFields, records(PERF_RECORD_COMM, {kTid, kName, 0, kTid, 3, 1}),
             [&](Bytes one) { return u32(one, 8) + u32(one, 12) + text(one, 16) + time(one); },
             [](const record::Comm& comm) {
               return comm.pid() + comm.tid() + comm.comm().size() + *comm.sample_id().time();
             },
             report) &&
         raced<record::Mmap2>(
             "mmap2", kFields,
             records(PERF_RECORD_MMAP2,
                     {kTid, 4096, 8192, 0, 1, 77, 1, 5, kName, kName, kName, 0, kTid, 3, 1}),
             [&](Bytes one) {
               return u32(one, 8) + u64(one, 16) + u64(one, 24) + u64(one, 48) + text(one, 72) +
                      time(one);
             },
             [](const record::Mmap2& mmap) {
               return mmap.pid() + mmap.addr() + mmap.len() + *mmap.ino() + mmap.filename().size() +
                      *mmap.sample_id().time();
             },
             report);
}

int run(bool is_json) {
  Report report{is_json};
  if (!samples(report) || !side_band(report)) return 1;
  report.end();
  return 0;
}

}  // namespace
}  // namespace perfring::bench

int main(int argc, char** argv) {
  const std::span<char*> all{argv, static_cast<std::size_t>(argc)};
  const bool is_json =
      all.size() == 3 && std::string_view{all[1]} == "--json" && std::string_view{all[2]} == "-";
  if (all.size() > 1 && !is_json) return std::fputs("usage: records [--json -]\n", stderr), 2;
  return perfring::bench::run(is_json);
}
