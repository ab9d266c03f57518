#ifndef FUZZ_ANY_RECORD_H_
#define FUZZ_ANY_RECORD_H_

// Decodes any bytes as a record of an event with any attributes. An input, in little endian:
//
//   u32  sample_type
//   u8   read_format
//   u32  branch_sample_type
//   u64  sample_regs_user
//   u64  sample_regs_intr
//   u8   flags; 1: sample_id_all, 2: build_id, 4: set header.size to the number of bytes
//   ...  the record

#include <linux/perf_event.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <type_traits>
#include <variant>
#include <vector>

#include "fuzz/input.h"
#include "perfring/perf_event.h"
#include "perfring/record/callchain.h"
#include "perfring/record/decode.h"
#include "perfring/record/layout.h"
#include "perfring/record/layouts.h"
#include "perfring/record/sample.h"
#include "perfring/record/to_string.h"
#include "perfring/record/view.h"
#include "perfring/testing/hand_made_records.h"

namespace perfring::fuzz {

// The operations on a record that the target checks: those of lib's decoder. The target's own test
// replaces some of them.
struct Decoder {
  template <class Layouts>
  static record::Any decode(Bytes bytes, const Layouts& layouts) {
    return record::decode(bytes, layouts);
  }
  static std::string words(const record::Any& any) { return to_string(any); }
  template <class View>
  static Bytes bytes(const View& view) {
    return view.bytes();
  }
  template <class View>
  static Bytes rest(const View& view) {
    return view.rest();
  }
  static const char* field(const record::Malformed& bad) { return bad.field; }
  static std::optional<Bytes> raw(const record::Sample& sample) { return sample.raw(); }
  static std::optional<Bytes> aux(const record::Sample& sample) { return sample.aux(); }
  static Bytes dumped(const record::StackUser& stack) { return stack.dumped(); }
  static auto frames(const record::Callchain& callchain) { return callchain.frames(); }
};

template <class D = Decoder>
class AnyRecord {
 public:
  explicit AnyRecord(Input input) {
    perf_event_attr attr{};
    attr.sample_type = input.take<std::uint32_t>();
    attr.read_format = input.take<std::uint8_t>();
    attr.branch_sample_type = input.take<std::uint32_t>();
    attr.sample_regs_user = input.take<std::uint64_t>();
    attr.sample_regs_intr = input.take<std::uint64_t>();
    const auto flags = input.take<std::uint8_t>();
    attr.sample_id_all = flags & 1;
    attr.build_id = flags >> 1 & 1;
    layout_ = record::Layout{attr};
    const auto rest = input.rest();
    bytes_.assign(rest.begin(), rest.begin() + static_cast<std::ptrdiff_t>(
                                                   std::min(rest.size(), std::size_t{65535})));
    const auto size = static_cast<std::uint16_t>(bytes_.size());
    if ((flags & 4) != 0 && size >= 8) std::memcpy(&bytes_[6], &size, sizeof size);
  }

  // Decodes the record twice, directly after an inaccessible page and directly before one, and
  // reads all of its parts. Returns the record as text.
  std::string run() const {
    using Against = record::testing::Guarded::Against;
    static record::testing::Guarded memory{{}};
    memory.place(bytes_, Against::First);
    const std::string first = text_of(memory.bytes());
    memory.place(bytes_);
    const std::string text = text_of(memory.bytes());
    expect(first == text, "a record decodes differently at another address");
    const std::array<record::Layouts::Entry, 1> entries{{{id(), &layout_}}};
    if (const auto layouts = record::Layouts::over(entries)) {
      const std::string of_several = D::words(D::decode(memory.bytes(), *layouts));
      expect(!is_one_of_several() || of_several == text,
             "a record decodes differently among several events");
    }
    return text;
  }

 private:
  // Returns the record's id if is_one_of_several().
  std::uint64_t id() const {
    std::uint64_t id = 0;
    if (bytes_.size() >= 16) std::memcpy(&id, &bytes_[8], sizeof id);
    return id;
  }

  // Whether the record is a sample that begins with an identifier, by which Layouts finds its
  // event.
  bool is_one_of_several() const {
    perf_event_header header{};
    if (bytes_.size() >= sizeof header) std::memcpy(&header, bytes_.data(), sizeof header);
    return header.type == PERF_RECORD_SAMPLE && header.size >= 16 && header.size <= bytes_.size() &&
           layout_.has(PERF_SAMPLE_IDENTIFIER);
  }

  static bool inside(Bytes part, Bytes whole) {
    return part.data() >= whole.data() && part.data() + part.size() <= whole.data() + whole.size();
  }

  std::string text_of(Bytes bytes) const {
    const record::Any any = D::decode(bytes, layout_);
    std::visit(
        [bytes](const auto& view) {
          using T = std::remove_cvref_t<decltype(view)>;
          if constexpr (std::is_same_v<T, record::Malformed>) {
            const char* const field = D::field(view);
            expect(field != nullptr && *field != '\0', "malformed without a field");
            expect(inside(view.bytes, bytes), "the bytes are not the input's");
          } else {
            const Bytes own = D::bytes(view);
            expect(own.size() == view.header().size, "a size that is not the header's");
            expect(inside(own, bytes), "a record outside its bytes");
            expect(inside(D::rest(view), own), "trailing bytes outside the record");
          }
        },
        any);
    if (const auto* const sample = std::get_if<record::Sample>(&any)) look_at(*sample, bytes);
    const std::string text = D::words(any);
    expect(!text.empty(), "a record without text");
    return text;
  }

  static void look_at(const record::Sample& sample, Bytes bytes) {
    if (const auto raw = D::raw(sample)) expect(inside(*raw, bytes), "raw data outside");
    if (const auto aux = D::aux(sample)) expect(inside(*aux, bytes), "AUX data outside");
    if (const auto stack = sample.stack_user()) {
      expect(inside(D::dumped(*stack), stack->data), "more of the stack than there is");
    }
    if (const auto callchain = sample.callchain()) {
      std::size_t frames = 0;
      for (const record::Frame frame : D::frames(*callchain)) {
        expect(!record::is_context(frame.ip), "a marker as a frame");
        ++frames;
      }
      expect(frames <= callchain->ips().size(), "more frames than entries");
      (void)callchain->deferred_cookie();
    }
  }

  record::Layout layout_;
  std::vector<std::byte> bytes_;
};

}  // namespace perfring::fuzz

#endif  // FUZZ_ANY_RECORD_H_
