#include "harness/bench/workload.h"

#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

namespace perfring::bench {
namespace {

constexpr std::size_t kPageBytes = 4096;

// The kernel's layout: header, u32 raw size, raw data, padded to a multiple of 8.
constexpr std::size_t record_bytes(std::size_t payload) {
  return (sizeof(perf_event_header) + sizeof(__u32) + payload + 7) / 8 * 8;
}
constexpr std::size_t raw_bytes(std::size_t payload) {
  return record_bytes(payload) - sizeof(perf_event_header) - sizeof(__u32);
}

void write_record(std::byte* at, std::size_t payload, std::uint64_t index) {
  const perf_event_header header{PERF_RECORD_SAMPLE, PERF_RECORD_MISC_KERNEL,
                                 static_cast<__u16>(record_bytes(payload))};
  const auto raw = static_cast<__u32>(raw_bytes(payload));
  std::memcpy(at, &header, sizeof(header));
  std::memcpy(at + sizeof(header), &raw, sizeof(raw));
  std::memcpy(at + sizeof(header) + sizeof(raw), &index, sizeof(index));
}

}  // namespace

Workload::Workload(std::size_t ring, const payload_mix& sizes) : ring_bytes{ring}, mix{sizes} {
  for (std::uint32_t index = 0;; ++index) {
    const std::size_t payload = payload_bytes(&mix, index);
    // The kernel never fills the last 8 bytes of a ring.
    if (used_bytes + record_bytes(payload) > ring_bytes - 8) break;
    used_bytes += record_bytes(payload);
    ++count.events;
    count.bytes += raw_bytes(payload);
    sum.sum += index;
  }
  sum.events = count.events;
  sum.bytes = count.bytes;
}

std::string ring_name(std::size_t ring_bytes) {
  const std::size_t kib = ring_bytes / 1024;
  return kib % 1024 == 0 ? std::to_string(kib / 1024) + "M" : std::to_string(kib) + "K";
}

std::string payload_name(const payload_mix& mix) {
  std::string name = std::to_string(mix.bytes[0]);
  for (unsigned i = 1; i < mix.choices; ++i) name.append("|").append(std::to_string(mix.bytes[i]));
  return name;
}

std::vector<std::size_t> measured_rings() {
  return {64u << 10, 512u << 10, 8u << 20};
}

std::vector<payload_mix> measured_mixes() {
  return {{1, {8}},    {1, {64}},    {1, {256}},       {1, {1024}},
          {1, {4096}}, {2, {8, 16}}, {3, {8, 64, 256}}};
}

MappedRing::MappedRing(std::size_t ring_bytes) {
  const std::size_t length = kPageBytes + ring_bytes;
  void* const memory =
      mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    throw std::system_error{errno, std::generic_category(), "mmap of a ring"};
  }
  madvise(memory, length, MADV_NOHUGEPAGE);
  mapping_ = {static_cast<std::byte*>(memory), length};
  std::memset(memory, 0, length);
}

MappedRing::MappedRing(MappedRing&& other) noexcept : mapping_{std::exchange(other.mapping_, {})} {}

MappedRing::~MappedRing() {
  if (!mapping_.empty()) munmap(mapping_.data(), mapping_.size());
}

perf_event_mmap_page& MappedRing::page() const {
  return *reinterpret_cast<perf_event_mmap_page*>(mapping_.data());
}

std::span<std::byte> MappedRing::data() const {
  return mapping_.subspan(kPageBytes);
}

MappedRing filled_ring(const Workload& workload) {
  MappedRing ring{workload.ring_bytes};
  std::byte* at = ring.data().data();
  for (std::uint32_t index = 0; index < workload.count.events; ++index) {
    const std::size_t payload = payload_bytes(&workload.mix, index);
    write_record(at, payload, index);
    at += record_bytes(payload);
  }
  ring.page().data_head = workload.used_bytes;
  return ring;
}

}  // namespace perfring::bench
