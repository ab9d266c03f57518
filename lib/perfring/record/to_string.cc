#include "perfring/record/to_string.h"

#include <linux/perf_event.h>

#include <array>
#include <charconv>
#include <cstdint>
#include <string_view>
#include <utility>

#include "perfring/perf_event.h"
#include "perfring/record/fields.h"
#include "perfring/record/read_values.h"
#include "perfring/record/uapi.h"

namespace perfring::record {
namespace {

class Text final : public FieldVisitor {
 public:
  explicit Text(std::string text) : text_{std::move(text)} {}
  std::string take() && { return std::move(text_); }

  void number(std::string_view name, std::uint64_t value) override {
    begin(name);
    append(value, 10);
  }
  void address(std::string_view name, std::uint64_t value) override {
    begin(name);
    text_ += "0x";
    append(value, 16);
  }
  void text(std::string_view name, std::string_view value) override {
    begin(name);
    text_ += '"';
    while (!value.empty()) {
      const char c = value.front();
      const std::size_t length = c == '"' || c == '\\' ? 0 : internal::printable_length(value);
      text_ += value.substr(0, length);
      if (length == 0) {
        text_ += "\\x";
        append_byte(static_cast<unsigned char>(c));
      }
      value.remove_prefix(length == 0 ? 1 : length);
    }
    text_ += '"';
  }
  void bytes(std::string_view name, Bytes value) override {
    begin(name);
    if (value.empty()) text_ += '-';
    for (const std::byte byte : value) append_byte(std::to_integer<unsigned char>(byte));
  }
  void begin_object(std::string_view name) override { open(name, '{'); }
  void end_object() override { close('}'); }
  void begin_array(std::string_view name) override { open(name, '['); }
  void end_array() override { close(']'); }

 private:
  void begin(std::string_view name) {
    if (!first_) text_ += ", ";
    first_ = false;
    text_ += name;
    if (!name.empty()) text_ += ' ';
  }
  void open(std::string_view name, char bracket) {
    begin(name);
    text_ += bracket;
    first_ = true;
  }
  void close(char bracket) {
    text_ += bracket;
    first_ = false;
  }
  void append(std::uint64_t value, int base) {
    std::array<char, 20> digits;
    const auto end = std::to_chars(digits.begin(), digits.end(), value, base).ptr;
    text_.append(digits.begin(), end);
  }
  void append_byte(unsigned char byte) {
    constexpr std::string_view kDigits = "0123456789abcdef";
    text_ += kDigits[byte / 16U];
    text_ += kDigits[byte % 16U];
  }

  std::string text_;
  bool first_ = true;
};

std::string number(std::string_view before, unsigned value, int base) {
  std::array<char, 12> digits;
  const auto end = std::to_chars(digits.begin(), digits.end(), value, base).ptr;
  return std::string{before}.append(digits.begin(), end);
}

}  // namespace

std::string to_string(const Any& record) {
  const perf_event_header& header = header_of(record);
  const char* const name = type_name(header.type);
  std::string line = name != nullptr ? name : number("type ", header.type, 10);
  line += number(" misc 0x", header.misc, 16);
  line += number(" size ", header.size, 10);
  const std::size_t before = line.size();
  Text text{line + ": "};
  visit_fields(record, text);
  line = std::move(text).take();
  if (line.size() == before + 2) line.resize(before);  // no field
  return line;
}

std::string to_string(const ReadValues& values) {
  Text text{""};
  visit_fields(values, text);
  return std::move(text).take();
}

const char* type_name(std::uint32_t type) noexcept {
  constexpr std::array names{"",
                             "MMAP",
                             "LOST",
                             "COMM",
                             "EXIT",
                             "THROTTLE",
                             "UNTHROTTLE",
                             "FORK",
                             "READ",
                             "SAMPLE",
                             "MMAP2",
                             "AUX",
                             "ITRACE_START",
                             "LOST_SAMPLES",
                             "SWITCH",
                             "SWITCH_CPU_WIDE",
                             "NAMESPACES",
                             "KSYMBOL",
                             "BPF_EVENT",
                             "CGROUP",
                             "TEXT_POKE",
                             "AUX_OUTPUT_HW_ID",
                             "CALLCHAIN_DEFERRED"};
  static_assert(names.size() == kCallchainDeferred + 1);
  return type != 0 && type < names.size() ? names[type] : nullptr;
}

}  // namespace perfring::record
