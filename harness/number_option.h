#ifndef PERFRING_HARNESS_NUMBER_OPTION_H_
#define PERFRING_HARNESS_NUMBER_OPTION_H_

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <cstdint>
#include <string>

namespace perfring {

// What an option of 64 unsigned bits, such as a seed, may be: CLI11 itself takes -1 for the largest
// of them.
inline CLI::Validator number_from(std::uint64_t least) {
  return CLI::Validator(
      [least](const std::string& text) {
        std::uint64_t value = 0;
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
        if (error == std::errc{} && end == text.data() + text.size() && value >= least) {
          return std::string{};
        }
        return fmt::format("'{}' is not accepted: give a number from {} to {}", text, least,
                           ~std::uint64_t{0});
      },
      "");
}

}  // namespace perfring

#endif  // PERFRING_HARNESS_NUMBER_OPTION_H_
