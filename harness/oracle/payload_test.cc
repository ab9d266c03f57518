#include <gtest/gtest.h>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "harness/oracle/payload.h"
#include "perfring/perf_event.h"

namespace perfring::oracle {
namespace {

std::vector<std::byte> filled(const Payload& payload, std::size_t padding) {
  std::vector<std::byte> bytes(payload.length);
  fill(bytes, payload);
  bytes.resize(payload.length + padding, std::byte{0xee});
  return bytes;
}

Sample split(const std::vector<std::byte>& bytes, std::size_t at) {
  return {Bytes{bytes}.first(at), Bytes{bytes}.subspan(at)};
}

// K1: payload, raw, size.
TEST(OraclePayloadTest, SizesAreTheKernels) {
  const std::uint64_t table[][3] = {{0, 4, 16},         {4, 4, 16},           {5, 12, 24},
                                    {12, 12, 24},       {13, 20, 32},         {100, 100, 112},
                                    {4096, 4100, 4112}, {65516, 65516, 65528}};
  for (const auto& [length, raw, size] : table) {
    EXPECT_EQ(raw_size(length), raw);
    EXPECT_EQ(record_size(length), size);
  }
}

TEST(OraclePayloadTest, EveryLengthHoldsWhereverItIsSplit) {
  for (std::uint32_t length = 0; length < 70; ++length) {
    const Payload payload{1000 + length, 7, length};
    const auto bytes = filled(payload, static_cast<std::size_t>(raw_size(length)) - length);
    for (std::size_t at = 0; at <= bytes.size(); ++at) {
      EXPECT_TRUE(holds(split(bytes, at), payload)) << length << " split at " << at;
    }
  }
}

TEST(OraclePayloadTest, EveryChangedByteIsFoundButNotPadding) {
  for (const std::uint32_t length : {1U, 3U, 4U, 7U, 8U, 9U, 15U, 16U, 17U, 45U}) {
    const Payload payload{5, 2, length};
    const auto bytes = filled(payload, static_cast<std::size_t>(raw_size(length)) - length);
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      auto changed = bytes;
      changed[i] ^= std::byte{1};
      for (std::size_t at = 0; at <= bytes.size(); ++at) {  // slices of any lengths
        EXPECT_EQ(holds(split(changed, at), payload), i >= length)
            << "byte " << i << " of " << length << ", split at " << at;
      }
    }
  }
}

TEST(OraclePayloadTest, AnotherIdentityHasOtherBytes) {
  std::set<std::string> all;
  const auto body = [](const std::vector<std::byte>& bytes) {
    return std::string{reinterpret_cast<const char*>(bytes.data()) + 16, 44};
  };
  for (std::uint64_t sequence = 0; sequence < 20; ++sequence) {
    for (std::uint32_t stream = 0; stream < 5; ++stream) {
      all.insert(body(filled({sequence, stream, 60}, 0)));
    }
  }
  for (std::uint32_t length = 61; length < 81; ++length) {
    all.insert(body(filled({0, 0, length}, 0)));
  }
  EXPECT_EQ(all.size(), 120U);
}

TEST(OraclePayloadTest, ARawSizeOfAnotherLengthDoesNotHold) {
  const Payload payload{5, 2, 44};
  EXPECT_FALSE(holds(split(filled(payload, 8), 10), payload));
}

TEST(OraclePayloadTest, ASampleClaimsThePayloadThatItHolds) {
  const Payload payload{0x1122334455667788, 0xaabbccdd, 21};
  const auto bytes = filled(payload, 7);
  for (std::size_t at = 0; at <= bytes.size(); ++at)
    EXPECT_EQ(claimed_payload(split(bytes, at)), payload);
  EXPECT_EQ(claimed_payload(split(filled({1, 2, 12}, 0), 3)), std::nullopt);
}

// Machines of one byte order write the same bytes: sequence, length, stream, then a body.
TEST(OraclePayloadTest, IdentityIsWrittenInGivenByteOrder) {
  const std::vector<int> little{2, 1, 0, 0, 0, 0, 0, 0, 20, 0, 0, 0, 3, 0, 0, 0};
  const std::vector<int> big{1, 2, 0, 0, 0, 0, 0, 0, 0, 20, 0, 0, 0, 0, 0, 3};
  for (const auto& [order, head] :
       {std::pair{std::endian::little, little}, {std::endian::big, big}}) {
    std::vector<std::byte> bytes(20);
    fill(bytes, {0x0102, 0x03, 20}, order);
    for (std::size_t i = 0; i < head.size(); ++i) {
      EXPECT_EQ(std::to_integer<int>(bytes[i]), head[i]) << i;
    }
  }
}

// Returns the header field, raw size or type that a reader finds at ring position `at`. The payload
// starts at position 12, in the record that starts at 0.
std::uint64_t field(const std::vector<std::byte>& payload, std::size_t at, std::size_t size,
                    std::endian order) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < size; ++i) {
    const std::size_t from_low = order == std::endian::little ? size - 1 - i : i;
    value = value << 8 | std::to_integer<std::uint64_t>(payload[at - 12 + from_low]);
  }
  return value;
}

// A consumer that walks through spilled payloads takes the same path on every machine.
TEST(OraclePayloadTest, PayloadsOfBothByteOrdersAreRecognized) {
  for (const std::uint32_t length : {20U, 24U, 400U}) {
    const Payload payload{0x0123456789abcdef, 0xfedcba98, length};
    std::vector<std::byte> little(length);
    std::vector<std::byte> big(length);
    fill(little, payload, std::endian::little);
    fill(big, payload, std::endian::big);
    EXPECT_NE(little, big);
    std::vector<std::byte> native(length);
    fill(native, payload);
    EXPECT_EQ(native, std::endian::native == std::endian::little ? little : big);
    for (std::size_t at = 12; at + 4 <= 12 + length; at += 4) {
      // Either 4 bytes (a type or a raw size), or 2 and 2 (misc and size).
      const std::size_t size = at % 8 == 0 ? 4 : 2;
      for (std::size_t i = at; i < at + 4; i += size) {
        EXPECT_EQ(field(little, i, size, std::endian::little),
                  field(big, i, size, std::endian::big))
            << size << " bytes at " << i << " of " << length;
      }
    }
  }
}

}  // namespace
}  // namespace perfring::oracle
