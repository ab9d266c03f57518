#ifndef PERFRING_HARNESS_CLI_GROUPED_H_
#define PERFRING_HARNESS_CLI_GROUPED_H_

#include <cmath>
#include <cstdint>
#include <string>

namespace perfring::cli {

// 4210331 as "4,210,331".
inline std::string grouped(std::uint64_t number) {
  std::string text = std::to_string(number);
  for (std::size_t i = text.size(); i > 3; i -= 3) text.insert(i - 3, 1, ',');
  return text;
}

// "1 record", "4,210,331 records".
inline std::string counted(std::uint64_t number, const std::string& what) {
  return grouped(number) + " " + what + (number == 1 ? "" : "s");
}

inline std::string grouped(double number) {
  return grouped(static_cast<std::uint64_t>(std::llround(number)));
}

}  // namespace perfring::cli

#endif  // PERFRING_HARNESS_CLI_GROUPED_H_
