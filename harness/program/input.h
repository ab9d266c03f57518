#ifndef HARNESS_PROGRAM_INPUT_H_
#define HARNESS_PROGRAM_INPUT_H_

#include <cstddef>
#include <expected>
#include <string>
#include <string_view>

namespace perfring {

inline constexpr std::size_t kMiB = std::size_t{1} << 20;

enum class Content { Text, Binary };

// The whole text of a file, or of stdin for "-". An error names `option`, the file, what the system
// said, and what is accepted: files that cannot be read, are larger than `limit`, or, where text is
// wanted, empty or binary. A file without an end costs no more than `limit`; a pipe is waited for,
// and signals end that.
std::expected<std::string, std::string> read_input(std::string_view option, const std::string& path,
                                                   std::size_t limit = kMiB,
                                                   Content content = Content::Text);

// Writes a file, or stdout for "-". An error names `option`, the file and what the system said.
std::expected<void, std::string> write_output(std::string_view option, const std::string& path,
                                              std::string_view text);

}  // namespace perfring

#endif  // HARNESS_PROGRAM_INPUT_H_
