#ifndef HARNESS_PROGRAM_READ_FILE_H_
#define HARNESS_PROGRAM_READ_FILE_H_

#include <array>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>

namespace perfring {

// Returns the bytes of a file; nothing if it cannot be read to its end: it does not exist, it is a
// folder, or it is a file of a process (proc(5)) that has ended meanwhile. Throws only
// std::bad_alloc.
//
// Do not use std::istreambuf_iterator for this: it throws where read(2) fails, because it reads
// past the stream.
inline std::optional<std::string> read_file(const std::filesystem::path& path) {
  std::ifstream file{path, std::ios::binary};
  if (!file) return std::nullopt;
  std::string bytes;
  std::array<char, 4096> part{};
  while (file.read(part.data(), part.size()), file.gcount() > 0) {
    bytes.append(part.data(), static_cast<std::size_t>(file.gcount()));
  }
  if (file.bad()) return std::nullopt;
  return bytes;
}

}  // namespace perfring

#endif  // HARNESS_PROGRAM_READ_FILE_H_
