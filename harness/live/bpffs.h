#ifndef HARNESS_LIVE_BPFFS_H_
#define HARNESS_LIVE_BPFFS_H_

#include <sched.h>
#include <sys/mount.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <functional>
#include <string>

#include "harness/live/process.h"
#include "harness/live/testing.h"
#include "harness/program/temporary_folder.h"

namespace perfring::live {

// A LiveTest with a bpffs of its own; skipped where none can be mounted.
class BpffsTest : public LiveTest {
 protected:
  void SetUp() override {
    LiveTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    if (const std::string said = with_bpffs([] { return "mounted"; }); said != "mounted") {
      GTEST_SKIP() << "no bpffs can be mounted in a namespace of one's own: " << said;
    }
  }

  // In a child, with a bpffs mounted at root_ that nobody else sees and that goes with it.
  std::string with_bpffs(const std::function<std::string()>& body) {
    return in_child([&]() -> std::string {
      if (::unshare(CLONE_NEWNS) != 0) return std::string{"unshare: "} + std::strerror(errno);
      if (::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) {
        return std::string{"making / private: "} + std::strerror(errno);
      }
      if (::mount("bpf", root_.path().c_str(), "bpf", 0, nullptr) != 0) {
        return std::string{"mount: "} + std::strerror(errno);
      }
      return body();
    });
  }

  std::filesystem::path path(const char* name) const { return root_.path() / name; }

 private:
  TemporaryFolder root_;
};

}  // namespace perfring::live

#endif  // HARNESS_LIVE_BPFFS_H_
