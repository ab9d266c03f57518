// A fuzz target: any bytes as a record of an event with any attributes. An input, in little endian:
// u32 sample_type, u8 read_format, u32 branch_sample_type, u64 sample_regs_user, u64
// sample_regs_intr, u8 flags (1: sample_id_all, 2: build_id, 4: header.size is made that of the
// bytes), and the record.

#include <linux/perf_event.h>

#include <array>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

#include "fuzz/input.h"
#include "perfring/record/layouts.h"
#include "perfring/record/to_string.h"
#include "perfring/testing/made.h"

namespace perfring::fuzz {
namespace {

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

  // Decodes it between inaccessible pages, once against each, and looks at everything. Returns it
  // as text.
  std::string run() const {
    using Against = record::testing::Guarded::Against;
    static record::testing::Guarded memory{{}};
    memory.place(bytes_, Against::First);
    const std::string first = look(memory.bytes());
    memory.place(bytes_);
    const std::string text = look(memory.bytes());
    expect(first == text, "a record is another one elsewhere");
    const std::array<record::Layouts::Entry, 1> entries{{{id(), &layout_}}};
    if (const auto layouts = record::Layouts::over(entries)) {
      (void)to_string(decode(memory.bytes(), *layouts));
    }
    return text;
  }

 private:
  // The record's id, if it is a sample with an identifier.
  std::uint64_t id() const {
    std::uint64_t id = 0;
    if (bytes_.size() >= 16) std::memcpy(&id, &bytes_[8], sizeof id);
    return id;
  }

  static bool inside(Bytes part, Bytes whole) {
    return part.data() >= whole.data() && part.data() + part.size() <= whole.data() + whole.size();
  }

  std::string look(Bytes bytes) const {
    const record::Any any = decode(bytes, layout_);
    std::visit(
        [bytes](const auto& view) {
          using T = std::remove_cvref_t<decltype(view)>;
          if constexpr (std::is_same_v<T, record::Malformed>) {
            expect(view.field != nullptr && *view.field != '\0', "malformed, but nothing is");
            expect(inside(view.bytes, bytes), "the bytes are others");
          } else {
            expect(view.bytes().size() == view.header().size, "a size that is not the header's");
            expect(inside(view.bytes(), bytes), "a record outside its bytes");
            expect(inside(view.rest(), view.bytes()), "a rest outside the record");
          }
        },
        any);
    if (const auto* const sample = std::get_if<record::Sample>(&any)) look_at(*sample, bytes);
    const std::string text = to_string(any);
    expect(!text.empty(), "a record without words");
    return text;
  }

  static void look_at(const record::Sample& sample, Bytes bytes) {
    if (const auto raw = sample.raw()) expect(inside(*raw, bytes), "raw data outside");
    if (const auto aux = sample.aux()) expect(inside(*aux, bytes), "AUX data outside");
    if (const auto stack = sample.stack_user()) {
      expect(inside(stack->dumped(), stack->data), "more of the stack than there is");
    }
    if (const auto callchain = sample.callchain()) {
      std::size_t frames = 0;
      for (const record::Frame frame : callchain->frames()) {
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

}  // namespace

// The record as text, for the test.
std::string text_of_record(std::string_view input) {
  return AnyRecord{Input{input}}.run();
}

// No view of it leaves its bytes, and what is malformed says where.
void record(std::string_view input) {
  text_of_record(input);
}

}  // namespace perfring::fuzz
