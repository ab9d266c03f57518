#ifndef HARNESS_RECORD_ENCODER_H_
#define HARNESS_RECORD_ENCODER_H_

// The kernel's side of records: each output function of kernel/events/core.c (at v6.18) again, in
// its order of statements and by its name. Nothing here is of lib. Together with the bytes it says
// what they are, by the uapi's names, as vectors.h does.

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

// The variable parts of a record. Each record takes those that it has use for.
struct Shape {
  std::uint32_t type = PERF_RECORD_SAMPLE;
  std::uint16_t misc = 0;
  std::size_t siblings = 0;   // of a group, besides the leader
  std::size_t callchain = 0;  // its entries
  std::size_t raw = 0;        // bytes that the tracepoint or program wrote
  bool has_branches = false;  // the CPU had a branch stack
  std::size_t branches = 0;
  std::uint64_t abi_user = 0;
  std::uint64_t abi_intr = 0;
  std::size_t stack = 0;  // a multiple of 8
  std::size_t aux = 0;    // a multiple of 8
  std::size_t text = 0;   // characters of a name
  std::size_t namespaces = 0;
  std::size_t old_len = 0;
  std::size_t new_len = 0;
  bool has_build_id = false;  // the mapped file has one, of 1 to 20 bytes
  std::size_t build_id = 20;
  // Bytes that a later kernel adds before sample_id; of what the kernel makes too long those behind
  // it, which nobody writes (R28).
  std::size_t future = 0;
};

struct Encoded {
  std::vector<std::byte> bytes;
  Json fields;
};

// The record that an event with these attributes writes; fields that are mere values are drawn from
// `value`.
Encoded encode(const perf_event_attr& attr, const Shape& shape,
               const std::function<std::uint64_t()>& value);

// Bytes as perf_output_put() appends them, each field with its name.
class Output {
 public:
  explicit Output(const std::function<std::uint64_t()>& value) : value_{value} {}

  // A field with any value, and with this one.
  void u64(const char* name) { put<std::uint64_t>(name, value_()); }
  void u32(const char* name) { put(name, static_cast<std::uint32_t>(value_())); }
  void u16(const char* name) { put(name, static_cast<std::uint16_t>(value_())); }
  template <class T>
  void put(const char* name, T value) {
    field(name, value);
    add(value);
  }
  // Bytes without a name: padding, and lengths of what is named by itself.
  template <class T>
  void add(T value) {
    const auto* const first = reinterpret_cast<const std::byte*>(&value);
    bytes_.insert(bytes_.end(), first, first + sizeof value);
  }
  // Writes `size` bytes of any value.
  void data(const char* name, std::size_t size) {
    std::string hex;
    for (std::size_t i = 0; i < size; ++i) {
      // Never small: data is not taken for a length.
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

// Parts of encode() (encoder.h).

void output_read(Output& out, std::uint64_t read_format, std::size_t siblings);
void output_ips(Output& out, std::size_t nr);
void output_sample(Output& out, const perf_event_attr& attr, const Shape& shape);

}  // namespace perfring::record

#endif  // HARNESS_RECORD_ENCODER_H_
