#ifndef HARNESS_RECORD_ENCODER_H_
#define HARNESS_RECORD_ENCODER_H_

// A second implementation of the record output functions in kernel/events/core.c (v6.18), with the
// kernel's names and order of statements. It includes nothing from lib. It returns the bytes of a
// record together with their meaning as JSON, under the uapi's field names, as vectors.h does.

#include <linux/perf_event.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "harness/program/json.h"

namespace perfring::record {

// The variable parts of a record. Each record type uses only the members that apply to it.
struct Shape {
  std::uint32_t type = PERF_RECORD_SAMPLE;
  std::uint16_t misc = 0;
  std::size_t siblings = 0;   // members of the group, without the leader
  std::size_t callchain = 0;  // number of entries
  std::size_t raw = 0;        // bytes that the tracepoint or BPF program wrote
  bool has_branches = false;  // whether the CPU had a branch stack
  std::size_t branches = 0;
  std::uint64_t abi_user = 0;
  std::uint64_t abi_intr = 0;
  std::size_t stack = 0;  // a multiple of 8
  std::size_t aux = 0;    // a multiple of 8
  std::size_t text = 0;   // length of a name, without the NUL
  std::size_t namespaces = 0;
  std::size_t old_len = 0;
  std::size_t new_len = 0;
  bool has_build_id = false;  // whether the mapped file has a build id (1 to 20 bytes)
  std::size_t build_id = 20;
  // Number of bytes that a future kernel adds before sample_id. In a record that the kernel makes
  // too long (R28), the number of bytes after sample_id, which the kernel never writes.
  std::size_t future = 0;
};

struct Encoded {
  std::vector<std::byte> bytes;
  Json fields;
};

// Returns the record that an event with these attributes writes. Every field that needs no
// particular value gets the next result of `value`.
Encoded encode(const perf_event_attr& attr, const Shape& shape,
               const std::function<std::uint64_t()>& value);

// The bytes of a record, appended as perf_output_put() does, and its fields by name.
class Output {
 public:
  explicit Output(const std::function<std::uint64_t()>& value) : value_{value} {}

  // u64(), u32() and u16() write a field with an arbitrary value, put() one with the given value.
  void u64(const char* name) { put<std::uint64_t>(name, value_()); }
  void u32(const char* name) { put(name, static_cast<std::uint32_t>(value_())); }
  void u16(const char* name) { put(name, static_cast<std::uint16_t>(value_())); }
  template <class T>
  void put(const char* name, T value) {
    field(name, value);
    add(value);
  }
  // Writes bytes without a name: padding, or the length of a field that has its own name.
  template <class T>
  void add(T value) {
    const auto* const first = reinterpret_cast<const std::byte*>(&value);
    bytes_.insert(bytes_.end(), first, first + sizeof value);
  }
  // Writes `size` bytes of arbitrary values, each at least 0x80.
  void data(const char* name, std::size_t size) {
    std::string hex;
    for (std::size_t i = 0; i < size; ++i) {
      // A decoder that takes data for a length must see a large one.
      const auto byte = static_cast<std::uint8_t>(value_() | 0x80U);
      constexpr const char* kDigits = "0123456789abcdef";
      hex += kDigits[byte / 16];
      hex += kDigits[byte % 16];
      add(byte);
    }
    field(name, hex);
  }
  // Writes a name of `size` characters, its NUL, and zeroes up to a multiple of 8.
  void text(const char* name, std::size_t size) {
    std::string value;
    for (std::size_t i = 0; i < size; ++i) value += static_cast<char>('a' + value_() % 26);
    for (const char c : value) add(c);
    do add('\0');
    while (bytes_.size() % 8 != 0);
    field(name, value);
  }
  void align() {
    while (bytes_.size() % 8 != 0) add('\0');
  }

  void field(const char* name, Json value) {
    Json& into = open_.back().second;
    if (into.is_array()) {
      into.push_back(std::move(value));
    } else {
      into[name] = std::move(value);
    }
  }
  void begin(const char* name, Json empty = Json::object()) {
    open_.emplace_back(name, std::move(empty));
  }
  void end() {
    auto [name, json] = std::move(open_.back());
    open_.pop_back();
    field(name, std::move(json));
  }

  std::uint64_t value() { return value_(); }
  std::vector<std::byte>& bytes() { return bytes_; }
  const Json& fields() const { return open_.front().second; }

 private:
  std::function<std::uint64_t()> value_;
  std::vector<std::byte> bytes_;
  std::vector<std::pair<const char*, Json>> open_{{"", Json::object()}};
};

// Parts of encode().

void output_read(Output& out, std::uint64_t read_format, std::size_t siblings);
void output_ips(Output& out, std::size_t nr);
void output_sample(Output& out, const perf_event_attr& attr, const Shape& shape);

}  // namespace perfring::record

#endif  // HARNESS_RECORD_ENCODER_H_
