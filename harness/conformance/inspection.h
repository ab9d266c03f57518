#ifndef HARNESS_CONFORMANCE_INSPECTION_H_
#define HARNESS_CONFORMANCE_INSPECTION_H_

// Explains the bytes of a ring record by record: the defect, the event that perfring delivers, and
// how data_tail moves.

#include <linux/perf_event.h>

#include <cstddef>
#include <cstdint>
#include <expected>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace perfring::conformance {

// A ring: its positions, and its data pages (a power of two).
struct InspectedRing {
  std::uint64_t head = 0;
  std::uint64_t tail = 0;
  std::vector<std::byte> data;
  std::uint64_t sample_type = PERF_SAMPLE_RAW;
  bool sample_id_all = false;
  bool has_sample_type = false;  // else sample_type is an assumption
};

// The ring_of_ functions return the ring that a file holds, or why it holds none.
//
// A file with a control page and data pages, like a mapped ring.
std::expected<InspectedRing, std::string> ring_of_image(std::span<const std::byte> file);
// An input of fuzz/hostile_ring (its header explains the bytes), before any poke.
std::expected<InspectedRing, std::string> ring_of_fuzz_input(std::span<const std::byte> file);
// A case of an index of vectors, before the consumer's turn of this number (from 1): the ring of
// that turn's CPU. The consumer has released all earlier turns.
std::expected<InspectedRing, std::string> ring_of_vector(std::string_view file, std::string_view id,
                                                         std::size_t turn);

struct InspectedRecord {
  std::uint64_t position = 0;
  std::uint64_t offset = 0;  // in the data pages
  std::uint64_t size = 0;    // bytes that the event takes up
  perf_event_header header{};
  bool straddles = false;
  std::string delivers{};  // "sample", "lost", "malformed"
  std::string wrong{};     // the defect of a malformed record
  std::string text{};      // the record's fields
};

struct Inspection {
  std::uint64_t head = 0;
  std::uint64_t tail = 0;
  std::uint64_t size = 0;
  std::uint64_t unread = 0;  // modulo 2^32
  std::uint64_t tail_after = 0;
  bool has_sample_type = false;
  std::vector<InspectedRecord> records{};
};
Inspection inspect(const InspectedRing& ring);

std::string to_text(const Inspection& inspection, bool colours);
nlohmann::ordered_json to_json(const Inspection& inspection);
std::string to_svg(const Inspection& inspection);

}  // namespace perfring::conformance

#endif  // HARNESS_CONFORMANCE_INSPECTION_H_
