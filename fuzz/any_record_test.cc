// The target judges records correctly: each of its checks finds a decoder that breaks it. Its seeds
// are records of every type.

#include "fuzz/any_record.h"

#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <filesystem>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "fuzz/seed_file.h"

namespace perfring::fuzz {
namespace {

std::map<std::string, std::string> decoded_seeds() {
  std::map<std::string, std::string> texts;
  for (const auto& entry : std::filesystem::directory_iterator{"fuzz/record_seeds"}) {
    texts[entry.path().filename()] = AnyRecord<>{Input{read_seed(entry.path())}}.run();
  }
  return texts;
}

TEST(FuzzRecordTest, TheSeedsAreRecordsOfEveryType) {
  if (std::endian::native == std::endian::big) GTEST_SKIP() << "they are in little endian";
  std::set<std::string> types;
  for (const auto& [name, text] : decoded_seeds()) {
    EXPECT_EQ(text.find("malformed"), std::string::npos) << name << ": " << text;
    types.insert(text.substr(0, text.find(' ')));
  }
  // All 22 types but AUX, ITRACE_START and LOST_SAMPLES; and an unknown type, `type`.
  EXPECT_EQ(types.size(), 20U);
}

TEST(FuzzRecordTest, AnEmptyInputIsMalformed) {
  EXPECT_NE(AnyRecord<>{Input{std::string_view{}}}.run().find("malformed"), std::string::npos);
}

// Returns an input with a sample of this sample_type. The words are its fields, in this machine's
// byte order.
std::string sample(std::uint64_t sample_type, const std::vector<std::uint64_t>& words,
                   unsigned flags = 4) {
  std::string input;
  const auto put = [&input](std::uint64_t value, std::size_t size) {
    for (std::size_t i = 0; i < size; ++i) input += static_cast<char>(i < 8 ? value >> 8 * i : 0);
  };
  put(sample_type, 4);
  put(0, 1 + 4 + 8 + 8);  // read_format to sample_regs_intr
  put(flags, 1);
  perf_event_header header{};
  header.type = PERF_RECORD_SAMPLE;
  header.size = static_cast<std::uint16_t>(8 + 8 * words.size());
  input.append(reinterpret_cast<const char*>(&header), sizeof header);
  input.append(reinterpret_cast<const char*>(words.data()), 8 * words.size());
  return input;
}

template <class D = Decoder>
void run(const std::string& input) {
  AnyRecord<D>{Input{input}}.run();
}

// The u32 raw size 4, and 4 bytes of raw data.
const std::uint64_t kRawOf4 = std::endian::native == std::endian::little ? 4 : 4ULL << 32;
const std::string kRaw = sample(PERF_SAMPLE_RAW, {kRawOf4});
const std::string kStack = sample(PERF_SAMPLE_STACK_USER, {16, 1, 2, 8});
const std::string kAux = sample(PERF_SAMPLE_AUX, {8, 1});
const std::string kCallchain =
    sample(PERF_SAMPLE_CALLCHAIN, {3, static_cast<std::uint64_t>(PERF_CONTEXT_USER), 5, 6});
const std::string kNamed = sample(PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP, {77, 5}, /*flags=*/5);
const std::string kLonger = sample(PERF_SAMPLE_IP, {5, 6});

TEST(AnyRecordTest, ARightDecoderHolds) {
  for (const std::string& input : {kRaw, kStack, kAux, kCallchain, kNamed, kLonger}) {
    run(input);
    EXPECT_EQ(AnyRecord<>{Input{input}}.run().find("malformed"), std::string::npos);
  }
}

Bytes longer(Bytes bytes, std::size_t by = 1) {
  return {bytes.data(), bytes.size() + by};
}
Bytes before(Bytes bytes) {
  return {bytes.data() - 1, bytes.size()};
}

// Parts that reach past the end of the record or begin before it.
struct RawTooLong : Decoder {
  static std::optional<Bytes> raw(const record::Sample& sample) { return longer(*sample.raw()); }
};
struct AuxTooLong : Decoder {
  static std::optional<Bytes> aux(const record::Sample& sample) { return longer(*sample.aux()); }
};
struct StackTooLong : Decoder {
  static Bytes dumped(const record::StackUser& stack) { return longer(stack.data); }
};
struct RestTooLong : Decoder {
  template <class View>
  static Bytes rest(const View& view) {
    return longer(view.rest());
  }
};
struct RestTooEarly : Decoder {
  template <class View>
  static Bytes rest(const View& view) {
    return before(view.bytes());
  }
};
struct BytesTooLong : Decoder {
  template <class View>
  static Bytes bytes(const View& view) {
    return longer(view.bytes());
  }
};
struct BytesElsewhere : Decoder {
  template <class View>
  static Bytes bytes(const View& view) {
    return before(view.bytes());
  }
};

TEST(AnyRecordTest, APartOutsideTheRecordIsFound) {
  EXPECT_DEATH(run<RawTooLong>(kRaw), "raw data outside");
  EXPECT_DEATH(run<AuxTooLong>(kAux), "AUX data outside");
  EXPECT_DEATH(run<StackTooLong>(kStack), "more of the stack than there is");
  EXPECT_DEATH(run<RestTooLong>(kLonger), "trailing bytes outside the record");
  EXPECT_DEATH(run<RestTooEarly>(kLonger), "trailing bytes outside the record");
  EXPECT_DEATH(run<BytesTooLong>(kRaw), "a size that is not the header's");
  EXPECT_DEATH(run<BytesElsewhere>(kRaw), "a record outside its bytes");
}

// Decodes bytes past the end, because header.size covers them.
struct IgnoresTheEnd : Decoder {
  template <class Layouts>
  static record::Any decode(Bytes bytes, const Layouts& layouts) {
    return record::decode(longer(bytes, 64), layouts);
  }
};
struct OthersBytes : Decoder {
  template <class Layouts>
  static record::Any decode(Bytes bytes, const Layouts& layouts) {
    record::Any any = record::decode(bytes, layouts);
    auto& bad = std::get<record::Malformed>(any);
    bad.bytes = longer(bad.bytes);
    return any;
  }
};
struct NoField : Decoder {
  static const char* field(const record::Malformed&) { return nullptr; }
};
struct EmptyField : Decoder {
  static const char* field(const record::Malformed&) { return ""; }
};

TEST(AnyRecordTest, AWrongMalformedIsFound) {
  std::string cut = sample(PERF_SAMPLE_IP, {5, 6}, /*flags=*/0);
  cut.resize(cut.size() - 8);
  run(cut);
  EXPECT_NE(AnyRecord<>{Input{cut}}.run().find("malformed"), std::string::npos);
  EXPECT_DEATH(run<IgnoresTheEnd>(cut), "a record outside its bytes");
  EXPECT_DEATH(run<OthersBytes>(cut), "the bytes are not the input's");
  EXPECT_DEATH(run<NoField>(cut), "malformed without a field");
  EXPECT_DEATH(run<EmptyField>(cut), "malformed without a field");
}

// Prints a text that depends on the record's address.
struct SaysWhere : Decoder {
  static std::string words(const record::Any& any) {
    const auto* const sample = std::get_if<record::Sample>(&any);
    const auto at = reinterpret_cast<std::uintptr_t>(sample->bytes().data());
    return to_string(any) + (at % 4096 == 0 ? "" : ".");
  }
};
struct SaysNothing : Decoder {
  static std::string words(const record::Any&) { return ""; }
};
struct TakesTheFirstLayout : Decoder {
  using Decoder::decode;
  static record::Any decode(Bytes bytes, const record::Layouts&) {
    static const record::Layout none;
    return record::decode(bytes, none);
  }
};

TEST(AnyRecordTest, OtherWordsForTheSameBytesAreFound) {
  EXPECT_DEATH(run<SaysWhere>(kRaw), "a record decodes differently at another address");
  EXPECT_DEATH(run<SaysNothing>(kRaw), "a record without text");
  EXPECT_DEATH(run<TakesTheFirstLayout>(kNamed),
               "a record decodes differently among several events");
}

struct MarkersAreFrames : Decoder {
  static std::vector<record::Frame> frames(const record::Callchain& callchain) {
    std::vector<record::Frame> all;
    for (const std::uint64_t ip : callchain.ips()) all.push_back({0, ip});
    return all;
  }
};
struct MoreFrames : Decoder {
  static std::vector<record::Frame> frames(const record::Callchain& callchain) {
    return std::vector<record::Frame>(callchain.ips().size() + 1, record::Frame{0, 5});
  }
};

TEST(AnyRecordTest, WrongFramesAreFound) {
  EXPECT_DEATH(run<MarkersAreFrames>(kCallchain), "a marker as a frame");
  EXPECT_DEATH(run<MoreFrames>(kCallchain), "more frames than entries");
}

}  // namespace
}  // namespace perfring::fuzz
