// The stand-alone driver: runs a fuzz target on files, for compilers without libFuzzer. Ignores
// libFuzzer's options ("-runs=0"), so that the same command line works for both.

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

#include "harness/program/read_file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

namespace fs = std::filesystem;

// Returns the files named on the command line and the files in the folders named there.
std::vector<fs::path> files_of(int argc, char** argv) {
  std::vector<fs::path> files;
  for (int i = 1; i < argc; ++i) {
    if (argv[i][0] == '-') continue;
    if (!fs::is_directory(argv[i])) {
      files.emplace_back(argv[i]);
      continue;
    }
    for (const auto& entry : fs::directory_iterator{argv[i]}) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<fs::path> files = files_of(argc, argv);
  for (const fs::path& file : files) {
    const std::optional<std::string> bytes = perfring::read_file(file);
    if (!bytes) {
      std::fprintf(stderr, "%s: cannot be read\n", file.c_str());
      return 2;
    }
    // Print the name before the run, because nothing is printed after a crash.
    std::fprintf(stderr, "Running: %s\n", file.c_str());
    LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(bytes->data()), bytes->size());
  }
  std::fprintf(stderr, "Ran %zu inputs.\n", files.size());
  return files.empty() ? 2 : 0;
}
