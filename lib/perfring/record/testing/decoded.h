#ifndef PERFRING_RECORD_TESTING_DECODED_H_
#define PERFRING_RECORD_TESTING_DECODED_H_

// A record together with the memory and the layout that its view refers to.

#include <stdexcept>
#include <string>
#include <variant>

#include "perfring/record/decode.h"
#include "perfring/record/testing/made.h"

namespace perfring::record::testing {

inline perf_event_attr sampling(std::uint64_t sample_type) {
  perf_event_attr attr{};
  attr.sample_type = sample_type;
  return attr;
}

// sample_id_all is set.
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
inline Made& add_sample_id(Made& made) {
  return made.u32(11).u32(12).u64(13).u64(14).u64(15).u32(16).u32(17).u64(18);
}

class Decoded {
 public:
  Decoded(const Made& made, const perf_event_attr& attr) : Decoded{made.bytes(), attr} {}
  Decoded(const std::vector<std::byte>& bytes, const perf_event_attr& attr)
      : memory_{bytes}, layout_{attr}, any_{decode(memory_.bytes(), layout_)} {}

  const Any& any() const { return any_; }
  // Throws, which ends the test, if it is another type.
  template <class T>
  const T& as() const {
    const T* const view = std::get_if<T>(&any_);
    if (view != nullptr) return *view;
    const auto* const malformed = std::get_if<Malformed>(&any_);
    throw std::runtime_error{
        "decoded as alternative " + std::to_string(any_.index()) +
        (malformed != nullptr ? std::string{", malformed: "} + malformed->field : "")};
  }
  // The field that is too short; empty if the record is not malformed.
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

#endif  // PERFRING_RECORD_TESTING_DECODED_H_
