#ifndef PERFRING_TESTING_HAND_MADE_RECORDS_H_
#define PERFRING_TESTING_HAND_MADE_RECORDS_H_

// Records built by hand, field by field, from the uapi's comments; and memory that ends where the
// record does.

#include <linux/perf_event.h>
#include <sys/mman.h>

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "perfring/perf_event.h"
#include "perfring/record/decode.h"
#include "perfring/record/layout.h"
#include "perfring/record/view.h"

namespace perfring::record::testing {

class RecordBuilder {
 public:
  explicit RecordBuilder(std::uint32_t type, std::uint16_t misc = 0) {
    u32(type);
    u16(misc);
    u16(0);  // header.size, which bytes() fills in
  }

  RecordBuilder& u8(std::uint8_t value) { return add(value); }
  RecordBuilder& u16(std::uint16_t value) { return add(value); }
  RecordBuilder& u32(std::uint32_t value) { return add(value); }
  RecordBuilder& u64(std::uint64_t value) { return add(value); }
  // Appends a string, its NUL, and zeroes up to a multiple of 8.
  RecordBuilder& text(std::string_view value) {
    for (const char c : value) u8(static_cast<std::uint8_t>(c));
    do u8(0);
    while (bytes_.size() % 8 != 0);
    return *this;
  }
  // Appends `size` bytes: first, first + 1, and so on.
  RecordBuilder& run(std::size_t size, std::uint8_t first) {
    for (std::size_t i = 0; i < size; ++i) u8(static_cast<std::uint8_t>(first + i));
    return *this;
  }
  std::vector<std::byte> bytes() const {
    std::vector<std::byte> whole = bytes_;
    const auto size = static_cast<std::uint16_t>(whole.size());
    std::memcpy(&whole[6], &size, sizeof size);
    return whole;
  }

 private:
  template <class T>
  RecordBuilder& add(T value) {
    // Byte by byte: at -O3 g++ 12 takes insert() and resize() for writes past the end.
    for (const std::byte byte : std::bit_cast<std::array<std::byte, sizeof value>>(value)) {
      bytes_.push_back(byte);
    }
    return *this;
  }

  std::vector<std::byte> bytes_;
};

// A copy of some bytes between two inaccessible pages, adjacent to the second or to the first.
class Guarded {
 public:
  enum class Against { Second, First };
  explicit Guarded(Bytes bytes, Against against = Against::Second) {
    mapped_ = static_cast<std::byte*>(::mmap(nullptr, kGuard + kRoom + kGuard, PROT_NONE,
                                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
    if (mapped_ == MAP_FAILED || bytes.size() > kRoom ||
        ::mprotect(mapped_ + kGuard, kRoom, PROT_READ | PROT_WRITE) != 0) {
      std::abort();
    }
    place(bytes, against);
  }
  ~Guarded() { ::munmap(mapped_, kGuard + kRoom + kGuard); }
  Guarded(const Guarded&) = delete;
  Guarded& operator=(const Guarded&) = delete;

  // Puts other bytes into the same memory.
  void place(Bytes bytes, Against against = Against::Second) {
    std::byte* const room = mapped_ + kGuard;
    std::byte* const begin = against == Against::First ? room : room + kRoom - bytes.size();
    if (!bytes.empty()) std::memcpy(begin, bytes.data(), bytes.size());
    bytes_ = {begin, bytes.size()};
  }
  Bytes bytes() const { return bytes_; }
  std::span<std::byte> writable() const {
    return {const_cast<std::byte*>(bytes_.data()), bytes_.size()};
  }

 private:
  static constexpr std::size_t kGuard = 65536;  // a multiple of every architecture's page size
  static constexpr std::size_t kRoom = 65536;   // any record

  std::byte* mapped_;
  Bytes bytes_;
};

inline perf_event_attr sampling(std::uint64_t sample_type) {
  perf_event_attr attr{};
  attr.sample_type = sample_type;
  return attr;
}

// Like sampling(), with sample_id_all.
inline perf_event_attr trailing(std::uint64_t sample_type) {
  perf_event_attr attr = sampling(sample_type);
  attr.sample_id_all = 1;
  return attr;
}

inline constexpr std::uint64_t kTrailer = PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ID |
                                          PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_CPU |
                                          PERF_SAMPLE_IDENTIFIER;

// sample_id with every field: pid 11, tid 12, time 13, id 14, stream_id 15, cpu 16, res 17,
// identifier 18.
inline RecordBuilder& add_sample_id(RecordBuilder& builder) {
  return builder.u32(11).u32(12).u64(13).u64(14).u64(15).u32(16).u32(17).u64(18);
}

// A record together with the memory and the layout that its view refers to.
class DecodedRecord {
 public:
  DecodedRecord(const RecordBuilder& builder, const perf_event_attr& attr)
      : DecodedRecord{builder.bytes(), attr} {}
  DecodedRecord(const std::vector<std::byte>& bytes, const perf_event_attr& attr)
      : memory_{bytes}, layout_{attr}, any_{decode(memory_.bytes(), layout_)} {}

  const Any& any() const { return any_; }
  // Throws, which ends the test, if the record is of another type.
  template <class T>
  const T& as() const {
    const T* const view = std::get_if<T>(&any_);
    if (view != nullptr) return *view;
    const auto* const malformed = std::get_if<Malformed>(&any_);
    throw std::runtime_error{
        "decoded as alternative " + std::to_string(any_.index()) +
        (malformed != nullptr ? std::string{", malformed: "} + malformed->field : "")};
  }
  // Returns the field that is too short, or "" if the record is not malformed.
  std::string malformed() const {
    const auto* const malformed = std::get_if<Malformed>(&any_);
    return malformed == nullptr ? "" : malformed->field;
  }

 private:
  Guarded memory_;
  Layout layout_;
  Any any_;
};

inline std::string hex(Bytes bytes) {
  std::string text;
  for (const std::byte byte : bytes) {
    constexpr const char* kDigits = "0123456789abcdef";
    text += kDigits[std::to_integer<unsigned>(byte) / 16];
    text += kDigits[std::to_integer<unsigned>(byte) % 16];
  }
  return text;
}

}  // namespace perfring::record::testing

#endif  // PERFRING_TESTING_HAND_MADE_RECORDS_H_
