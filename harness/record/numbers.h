#ifndef HARNESS_RECORD_NUMBERS_H_
#define HARNESS_RECORD_NUMBERS_H_

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "harness/program/parse.h"

namespace perfring::record {

// The number that a JSON value stands for: 17, -1 (as the u64 of the same bits) or "0x11". nullopt
// for everything else.
inline std::optional<std::uint64_t> number_of(const nlohmann::ordered_json& value) {
  if (value.is_boolean()) return value.get<bool>() ? 1 : 0;
  if (value.is_number_unsigned()) return value.get<std::uint64_t>();
  if (value.is_number_integer()) return static_cast<std::uint64_t>(value.get<std::int64_t>());
  if (!value.is_string()) return std::nullopt;
  const auto& text = value.get_ref<const std::string&>();
  if (!text.starts_with("0x") && !text.starts_with("0X")) return std::nullopt;
  return parse_number(std::string_view{text}.substr(2), 16);
}

}  // namespace perfring::record

#endif  // HARNESS_RECORD_NUMBERS_H_
