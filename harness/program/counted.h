#ifndef HARNESS_PROGRAM_COUNTED_H_
#define HARNESS_PROGRAM_COUNTED_H_

// Numbers in messages and tables.

#include <cmath>
#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>

namespace perfring {

// 4210331 as "4,210,331". Any integer: std::size_t is another type on 32-bit hosts.
inline std::string grouped(std::integral auto number) {
  std::string text = std::to_string(number);
  for (std::size_t i = text.size(); i > 3; i -= 3) text.insert(i - 3, 1, ',');
  return text;
}
inline std::string grouped(std::floating_point auto number) {
  return grouped(static_cast<std::uint64_t>(std::llround(number)));
}

// "1 record", "4,210,331 records".
inline std::string counted(std::uint64_t number, std::string_view what) {
  return grouped(number) + " " + std::string{what} + (number == 1 ? "" : "s");
}

}  // namespace perfring

#endif  // HARNESS_PROGRAM_COUNTED_H_
