// room FOLDER: reads jobs from stdin, one JSON object per line, and answers each with a line of
// JSON. Jobs run in namespaces where they can do no harm: PID, mount and, unless this is root,
// user. FOLDER gets a file system of its own. `room --calls` prints the names of the calls that it
// can make fail.
//
// Exit codes: 0, 2 for a bad job, 3 if the system does not allow such namespaces.

#include <fcntl.h>
#include <linux/prctl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iostream>
#include <optional>
#include <string>
#include <string_view>

#include "harness/anomaly/calls.h"
#include "harness/anomaly/job.h"
#include "harness/program/json.h"
#include "harness/program/run_program.h"
#include "harness/program/verdict.h"
#include "perfring/os/process.h"

namespace perfring::anomaly {
namespace {

int refused(const char* what) {
  std::fprintf(stderr, "room: %s: %s\n", what, std::strerror(errno));
  return kNotShown;
}

bool write_file(const char* path, const std::string& text) {
  std::ofstream file{path};
  file << text << std::flush;
  return file.good();
}

// The namespace maps this user and group only, to the same numbers.
bool enter_user_namespace() {
  const std::string user = std::to_string(::getuid()), group = std::to_string(::getgid());
  if (::unshare(CLONE_NEWUSER) != 0) return false;
  return write_file("/proc/self/uid_map", user + " " + user + " 1") &&
         write_file("/proc/self/setgroups", "deny") &&
         write_file("/proc/self/gid_map", group + " " + group + " 1");
}

int serve(const std::string& folder) {
  std::optional<Bystander> bystander;
  for (std::string line; std::getline(std::cin, line);) {
    if (!bystander || !bystander->is_alive()) bystander.emplace();
    const Job job = job_of(Json::parse(line));
    std::cout
        << run(job, folder + "/run", *bystander).dump(-1, ' ', true, Json::error_handler_t::replace)
        << std::endl;
  }
  return kHolds;
}

// Runs as process 1 of the namespace: no signal from inside the namespace can kill it.
int furnish(const std::string& folder) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0)
    return refused("a mount namespace");
  if (::mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, nullptr) != 0)
    return refused("/proc");
  if (::mount("anomaly", folder.c_str(), "tmpfs", MS_NOSUID | MS_NODEV, "mode=0755") != 0)
    return refused("a tmpfs");
  if (::mkdir((folder + "/run").c_str(), 0755) != 0) return refused("a folder");
  if (::mkdir((folder + "/bpf").c_str(), 0755) != 0) return refused("a folder");
  // If bpffs cannot be mounted, the flow that needs it reports so.
  static_cast<void>(::mount("bpf", (folder + "/bpf").c_str(), "bpf", 0, nullptr));
  return serve(folder);
}

int enter(int argc, char** argv) {
  if (argc == 2 && std::string_view{argv[1]} == "--calls") {
    for (const Call& each : calls()) std::puts(each.name);
    return kHolds;
  }
  if (argc != 2) {
    std::fputs("usage: room FOLDER | room --calls\n", stderr);
    return kUsageOrEnvironment;
  }
  if (::geteuid() != 0 && !enter_user_namespace()) return refused("a user namespace");
  if (::unshare(CLONE_NEWPID | CLONE_NEWNS) != 0) return refused("namespaces");
  auto first = os::Process::fork([&] {
    return run_program("room", [](int, char** words) { return furnish(words[1]); }, argc, argv);
  });
  if (!first) return errno = first.error().value(), refused("fork");
  const auto status = first->wait();
  return status && WIFEXITED(*status) ? WEXITSTATUS(*status) : kNotShown;
}

}  // namespace
}  // namespace perfring::anomaly

int main(int argc, char** argv) {
  return perfring::run_program("room", perfring::anomaly::enter, argc, argv);
}
