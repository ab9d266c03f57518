// Round trips: the kernel's output functions (harness/record/encoder.h) write any event, and the
// decoder returns exactly the fields that were put in.

#include <gtest/gtest.h>
#include <linux/perf_event.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <ios>
#include <random>
#include <string>
#include <variant>
#include <vector>

#include "harness/program/json.h"
#include "harness/record/encoder.h"
#include "harness/record/known_fields.h"
#include "harness/record/vectors.h"
#include "perfring/record/decode.h"
#include "perfring/record/layout.h"
#include "perfring/record/uapi.h"
#include "perfring/record/view.h"
#include "perfring/testing/hand_made_records.h"
#include "proptests/property.h"

namespace perfring::proptests {
namespace {

using record::Encoded;
using record::Shape;

constexpr std::uint64_t kAllBits = (1U << 25) - 1;  // of sample_type
constexpr std::uint64_t kHwIndex = 1U << 17;

// Drops one of the two forms of weight if both are set, because the kernel refuses both.
perf_event_attr attributes(std::uint64_t sample_type, std::uint64_t read_format,
                           bool sample_id_all) {
  if ((sample_type & PERF_SAMPLE_WEIGHT_TYPE) == PERF_SAMPLE_WEIGHT_TYPE) {
    sample_type &= ~std::uint64_t{PERF_SAMPLE_WEIGHT};
  }
  perf_event_attr attr{};
  attr.sample_type = sample_type;
  attr.read_format = read_format;
  attr.sample_id_all = sample_id_all;
  return attr;
}

// Returns a source of arbitrary values that depends on the seed only.
std::function<std::uint64_t()> values(unsigned seed) {
  return [random = std::mt19937_64{seed}]() mutable { return random(); };
}

// Encodes a record and decodes it. Returns the written and the decoded fields if they differ, else
// an empty string.
std::string difference(const perf_event_attr& attr, const Shape& shape, unsigned seed) {
  const Encoded encoded = encode(attr, shape, values(seed));
  const record::testing::Guarded memory{encoded.bytes};
  const record::Layout layout{attr};
  Json decoded = to_json(record::decode(memory.bytes(), layout));
  decoded.erase("record");
  decoded.erase("header");
  // Compare both ways, to find missing fields as well as invented ones.
  if (record::agrees(encoded.fields, decoded) && record::agrees(decoded, encoded.fields)) return {};
  return "written " + encoded.fields.dump() + "\ndecoded " + decoded.dump();
}

void holds(const perf_event_attr& attr, const Shape& shape, unsigned seed) {
  const std::string what = difference(attr, shape, seed);
  if (!what.empty()) RC_FAIL(what);
}

std::size_t up_to(std::size_t most) {
  return *rc::gen::inRange<std::size_t>(0, most + 1);
}

Shape any_shape() {
  Shape shape;
  shape.misc = *rc::gen::element<std::uint16_t>(0, 1, 2, 1U << 13, 3U << 13);
  shape.siblings = up_to(4);
  shape.callchain = up_to(8);
  shape.raw = up_to(40);
  shape.has_branches = *rc::gen::arbitrary<bool>();
  shape.branches = up_to(4);
  shape.abi_user = up_to(2);
  shape.abi_intr = up_to(2);
  shape.stack = 8 * up_to(5);
  shape.aux = 8 * up_to(5);
  shape.text = up_to(20);
  shape.namespaces = up_to(7);
  shape.old_len = up_to(20);
  shape.new_len = up_to(20);
  shape.has_build_id = *rc::gen::arbitrary<bool>();
  shape.build_id = up_to(20);
  return shape;
}

perf_event_attr any_attributes() {
  perf_event_attr attr = attributes(*rc::gen::arbitrary<std::uint32_t>() & kAllBits, up_to(31),
                                    *rc::gen::arbitrary<bool>());
  attr.branch_sample_type =
      *rc::gen::element<std::uint64_t>(8, 8 | kHwIndex, 8 | 1U << 19, 8 | kHwIndex | 1U << 19);
  attr.sample_regs_user = *rc::gen::arbitrary<std::uint64_t>();
  attr.sample_regs_intr = *rc::gen::arbitrary<std::uint64_t>();
  attr.build_id = *rc::gen::arbitrary<bool>();
  return attr;
}

TEST(RecordRoundTripTest, ASampleOfAnyAttributesIsWhatWasWritten) {
  always([] { holds(any_attributes(), any_shape(), *rc::gen::arbitrary<unsigned>()); }, 3000);
}

TEST(RecordRoundTripTest, AnyOtherRecordOfAnyAttributesIsWhatWasWritten) {
  always(
      [] {
        Shape shape = any_shape();
        shape.type = *rc::gen::inRange<std::uint32_t>(1, record::kCallchainDeferred + 1);
        if (shape.type == PERF_RECORD_SAMPLE) shape.type = PERF_RECORD_MMAP2;
        shape.future = 8 * up_to(3);
        holds(any_attributes(), shape, *rc::gen::arbitrary<unsigned>());
      },
      3000);
}

// Each sample_type with at most three bits set, or with at most two bits clear.
TEST(RecordRoundTripTest, EverySmallSetOfFieldsIsWhatWasWritten) {
  Shape shape{.siblings = 1, .callchain = 2, .raw = 5, .has_branches = true, .branches = 1};
  shape.abi_user = shape.abi_intr = 2;
  shape.stack = shape.aux = 8;
  const auto check = [&shape](std::uint64_t sample_type) {
    perf_event_attr attr = attributes(sample_type, PERF_FORMAT_ID, false);
    attr.branch_sample_type = kHwIndex;
    attr.sample_regs_user = 0x11;
    attr.sample_regs_intr = 0x8000000000000001;
    const std::string what = difference(attr, shape, static_cast<unsigned>(sample_type));
    EXPECT_EQ(what, "") << std::hex << sample_type;
  };
  for (unsigned a = 0; a < 25; ++a) {
    for (unsigned b = a; b < 25; ++b) {
      for (unsigned c = b; c < 25; ++c) check(1ULL << a | 1ULL << b | 1ULL << c);
      check(kAllBits & ~(1ULL << a | 1ULL << b));
    }
  }
}

// Every read_format, alone and in groups of one to three events, in samples and in READ records.
TEST(RecordRoundTripTest, EveryReadFormatIsWhatWasWritten) {
  for (std::uint64_t format = 0; format < 32; ++format) {
    for (std::size_t siblings = 0; siblings < 3; ++siblings) {
      Shape shape{.siblings = siblings};
      EXPECT_EQ(difference(attributes(PERF_SAMPLE_READ, format, false), shape, 1), "") << format;
      shape.type = PERF_RECORD_READ;
      EXPECT_EQ(difference(attributes(PERF_SAMPLE_TIME, format, true), shape, 1), "") << format;
    }
  }
}

// Every set of sample_id fields, in every type of record.
TEST(RecordRoundTripTest, EverySampleIdIsWhatWasWritten) {
  constexpr std::uint64_t kFields[]{PERF_SAMPLE_TID, PERF_SAMPLE_TIME,
                                    PERF_SAMPLE_ID,  PERF_SAMPLE_STREAM_ID,
                                    PERF_SAMPLE_CPU, PERF_SAMPLE_IDENTIFIER};
  for (unsigned set = 0; set < 64; ++set) {
    std::uint64_t sample_type = PERF_SAMPLE_IP;
    for (unsigned i = 0; i < 6; ++i) sample_type |= (set >> i & 1) != 0 ? kFields[i] : 0;
    for (std::uint32_t type = 1; type <= record::kCallchainDeferred; ++type) {
      const Shape shape{.type = type, .callchain = 1, .text = 7, .namespaces = 1, .old_len = 5};
      EXPECT_EQ(difference(attributes(sample_type, 0, true), shape, set), "") << type << ' ' << set;
      EXPECT_EQ(difference(attributes(sample_type, 0, false), shape, set), "")
          << type << ' ' << set;
    }
  }
}

// A sample that is cut short is malformed. (Another record that is cut short is still a record if
// it lacks only what a later kernel added.)
TEST(RecordRoundTripTest, ASampleThatIsCutIsMalformed) {
  always([] {
    perf_event_attr attr = any_attributes();
    attr.branch_sample_type &= ~kHwIndex;  // with it, nr = 0 is valid in two lengths (T14)
    Encoded encoded = encode(attr, any_shape(), values(*rc::gen::arbitrary<unsigned>()));
    if (encoded.bytes.size() == sizeof(perf_event_header)) return;
    const std::size_t size =
        *rc::gen::inRange<std::size_t>(sizeof(perf_event_header), encoded.bytes.size());
    encoded.bytes.resize(size);
    const auto header_size = static_cast<std::uint16_t>(size);
    std::memcpy(&encoded.bytes[6], &header_size, sizeof header_size);
    const record::testing::Guarded memory{encoded.bytes};
    const record::Layout layout{attr};
    const record::Any any = record::decode(memory.bytes(), layout);
    RC_ASSERT(std::holds_alternative<record::Malformed>(any));
  });
}

}  // namespace
}  // namespace perfring::proptests
