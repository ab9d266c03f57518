#ifndef PERFRING_HARNESS_USER_FOLDER_H_
#define PERFRING_HARNESS_USER_FOLDER_H_

#include <unistd.h>

#include <cstdlib>

namespace perfring {

// `bazel run` starts a program in a folder of its own. Goes back to the user's, to which the paths
// that he gives are relative. For the beginning of main().
inline void enter_user_folder() {
  const char* const folder = std::getenv("BUILD_WORKING_DIRECTORY");
  // If it is gone, relative paths are not found, and are reported.
  if (folder != nullptr && ::chdir(folder) != 0) return;
}

}  // namespace perfring

#endif  // PERFRING_HARNESS_USER_FOLDER_H_
