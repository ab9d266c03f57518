#ifndef HARNESS_PROGRAM_TEMPORARY_FOLDER_H_
#define HARNESS_PROGRAM_TEMPORARY_FOLDER_H_

#include <stdlib.h>

#include <cerrno>
#include <filesystem>
#include <string>
#include <system_error>

namespace perfring {

// A new folder that every user may read, unlike Bazel's test folders. The destructor removes it.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = std::filesystem::temp_directory_path() / "perfring_XXXXXX";
    if (::mkdtemp(name.data()) == nullptr) {
      throw std::system_error{errno, std::generic_category(), "mkdtemp " + name};
    }
    path_ = name;
    std::filesystem::permissions(path_, std::filesystem::perms{0755});
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace perfring

#endif  // HARNESS_PROGRAM_TEMPORARY_FOLDER_H_
