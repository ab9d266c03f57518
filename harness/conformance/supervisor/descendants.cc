#include "harness/conformance/supervisor/descendants.h"

#include <linux/prctl.h>
#include <signal.h>
#include <sys/prctl.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <set>
#include <system_error>
#include <utility>

#include "perfring/os/process.h"

namespace perfring::conformance {
namespace {

std::set<pid_t> children(std::error_code& error) {
  std::set<pid_t> all;
  for (const auto& task : std::filesystem::directory_iterator{"/proc/self/task", error}) {
    std::ifstream file{task.path() / "children"};
    for (pid_t child = 0; file >> child;) all.insert(child);
  }
  return all;
}

}  // namespace

Descendants::Descendants() {
  std::error_code error;
  for (const pid_t child : children(error)) {
    before_[child] = os::ProcessRef::open(child).value_or(os::ProcessRef{});
  }
  if (error) throw std::system_error{error, "/proc/self/task"};
  if (::prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0) {
    throw std::system_error{errno, std::generic_category(), "PR_SET_CHILD_SUBREAPER"};
  }
}

// A pid alone does not tell: another process may have the pid of a child that was reaped meanwhile.
bool Descendants::is_from_before(pid_t child) const {
  const auto found = before_.find(child);
  if (found == before_.end()) return false;
  return found->second.fd() < 0 || found->second.signal(0).has_value();
}

void Descendants::end() const {
  for (bool any = true; any;) {
    any = false;
    std::error_code none;
    for (const pid_t child : children(none)) {
      if (is_from_before(child)) continue;
      auto adopted = os::Process::adopt(child);
      // Do not wait for a process that may not be signaled, such as another user's.
      any = (adopted && adopted->signal(SIGKILL)) || any;
    }
  }
}

}  // namespace perfring::conformance
