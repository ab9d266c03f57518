// More than 4 GiB through one ring: on a 32-bit kernel data_head wraps there (K47 to K50). Long.

#include <bpf/libbpf.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>

#include "harness/kernel/perf_event.h"
#include "harness/live/testing.h"

namespace perfring::live {
namespace {

constexpr std::uint64_t kFourGib = std::uint64_t{1} << 32;
constexpr std::uint64_t kBeyond = 64 << 20;
constexpr std::size_t kPages = 64;
constexpr std::uint32_t kBatch = 5;  // of the largest fit the ring

// Sizes that change from batch to batch, so that records lie everywhere and wrap in all ways.
constexpr std::array<std::size_t, 4> kSizes{45000, 44004, 8, 37117};

class FourGibTest : public LiveTest {
 protected:
  // Fills the ring over and over, and has it drained by `drain` each time, until it has said false
  // or more than 4 GiB were written.
  template <class Drain>
  void pump(Drain drain) {
    std::uint64_t first = 0;
    for (std::size_t i = 0; written_ < kFourGib + kBeyond; ++i) {
      const std::size_t size = kSizes[i % kSizes.size()];
      const Emitted emitted = emitter().emit_many(cpu(), size, kBatch, first);
      ASSERT_EQ(emitted.accepted, kBatch) << "after " << written_ << " bytes";
      first += kBatch;
      written_ += kBatch * record_size(size);
      if (!drain(size)) return;
    }
  }

  std::uint64_t written_ = 0;  // bytes of ring
};

TEST_F(FourGibTest, EveryRecordIsDeliveredInOrder) {
  PerfEventArrayBuffer buffer = open(kPages);
  std::uint64_t next = 0;
  std::optional<MappedRing> memory;
  std::uint64_t wrong = 0;
  pump([&](std::size_t size) {
    fill_payload(16);
    buffer.for_each([&](const PerfEvent& event) {
      const auto* const sample = std::get_if<Sample>(&event);
      if (sample == nullptr || sample->size() != raw_size(size)) {
        ++wrong;
        return;
      }
      if (sample->as<std::uint64_t>() != next++) ++wrong;
      if (!memory) memory.emplace(see(event), kPages);
    });
    return wrong == 0;
  });
  EXPECT_EQ(wrong, 0u) << "after " << written_ << " bytes";
  EXPECT_GT(written_, kFourGib);
  EXPECT_FALSE(buffer.readable());
  RecordProperty("records in order", std::to_string(next));
  RecordProperty("bytes through the ring", std::to_string(written_));
  ASSERT_TRUE(memory);
  RecordProperty("data_head at the end", std::to_string(memory->page.data_head));
  EXPECT_EQ(static_cast<std::uint32_t>(memory->page.data_head),
            static_cast<std::uint32_t>(written_));
}

// libbpf's consumer in the same place: nothing is asked of it, it is reported.
struct Libbpf {
  std::uint64_t next = 0;
  std::uint64_t wrong = 0;
};

bpf_perf_event_ret on_event(void* context, int, perf_event_header* event) {
  auto& libbpf = *static_cast<Libbpf*>(context);
  std::uint64_t number = 0;
  if (event->type == PERF_RECORD_SAMPLE) {
    std::memcpy(&number, reinterpret_cast<const char*>(event) + 12, sizeof(number));
  }
  if (event->type != PERF_RECORD_SAMPLE || number != libbpf.next) ++libbpf.wrong;
  ++libbpf.next;
  // More than any drain of this ring can hold: it walks in circles.
  return libbpf.wrong > 1'000'000 ? LIBBPF_PERF_EVENT_ERROR : LIBBPF_PERF_EVENT_CONT;
}

std::string as_seen(const Libbpf& libbpf, std::uint64_t written) {
  const std::string at = " after " + std::to_string(written) + " bytes";
  if (libbpf.wrong > 1'000'000) {
    return "perf_buffer__consume() did not return: stopped by its callback, which was given more "
           "than a million wrong records" +
           at;
  }
  if (libbpf.wrong != 0) return std::to_string(libbpf.wrong) + " wrong records" + at;
  return "all " + std::to_string(libbpf.next) + " records in order" + at;
}

TEST_F(FourGibTest, LibbpfOnTheSameRecordsIsRecorded) {
  const std::string seen = in_child([&] {
    perf_event_attr attr = kernel::bpf_output_attr(/*watermark=*/0);
    int cpu_number = static_cast<int>(cpu());
    int key = cpu_number;
    perf_buffer_raw_opts options{};
    options.sz = sizeof(options);
    options.cpu_cnt = 1;
    options.cpus = &cpu_number;
    options.map_keys = &key;
    Libbpf libbpf;
    const std::unique_ptr<perf_buffer, decltype(&perf_buffer__free)> buffer{
        perf_buffer__new_raw(emitter().map_fd(), kPages, &attr, on_event, &libbpf, &options),
        perf_buffer__free};
    if (buffer == nullptr) return "perf_buffer__new_raw: " + std::string{std::strerror(errno)};
    ::alarm(600);  // a callback that is never called cannot stop it
    pump([&](std::size_t) {
      perf_buffer__consume(buffer.get());
      return libbpf.wrong == 0;
    });
    return as_seen(libbpf, written_);
  });
  RecordProperty("libbpf " + std::string{libbpf_version_string()}, seen);
}

}  // namespace
}  // namespace perfring::live
