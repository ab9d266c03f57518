// The only program in a guest. As process 1 it is the system, and runs itself again as the tests.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <expected>
#include <fstream>
#include <iostream>
#include <string>
#include <string_view>
#include <vector>

#include "perfring/os/process.h"

namespace {

constexpr const char* kReport = "/tmp/report.xml";

void mount_at(const char* type, const char* path) {
  ::mkdir(path, 0755);
  if (::mount(type, path, type, 0, nullptr) != 0) {
    std::cout << "guest: mount " << type << " at " << path << ": " << std::strerror(errno) << "\n";
  }
}

// Returns the words of the kernel's command line that start with `name`, without `name`.
std::vector<std::string> parameters(const std::string& name) {
  std::vector<std::string> values;
  std::ifstream line{"/proc/cmdline"};
  for (std::string word; line >> word;) {
    if (word.starts_with(name)) values.push_back(word.substr(name.size()));
  }
  return values;
}

void describe() {
  utsname name{};
  ::uname(&name);
  std::cout << "guest: machine=" << name.machine << " kernel=" << name.release
            << " bits=" << 8 * sizeof(void*)
            << " order=" << (std::endian::native == std::endian::little ? "little" : "big")
            << " cpus=" << ::sysconf(_SC_NPROCESSORS_ONLN) << std::endl;
}

int run_tests() {
  std::vector<std::string> words{"/proc/self/exe", std::string{"--gtest_output=xml:"} + kReport};
  for (const std::string& flag : parameters("perfring.flag=")) words.push_back(flag);
  ::setenv("PERFRING_REQUIRE_LIVE", "1", 1);
  ::setenv("PERFRING_OFFLINE_CPU", "1", 1);  // nothing else runs there
  auto tests = perfring::os::Command::fork(words, [] { return 0; });
  const auto started = tests ? tests->start() : std::unexpected(tests.error());
  if (!started) {
    std::cout << "guest: the tests: " << started.error().message() << std::endl;
    return 127 << 8;
  }
  // Process 1 reaps orphans, too.
  for (;;) {
    const auto ended = perfring::os::wait_any(0);
    if (!ended || !*ended) return 127 << 8;
    if ((*ended)->id != tests->process().id()) continue;
    tests->process().set_end((*ended)->status);
    return (*ended)->status;
  }
}

// Prints the report with a mark on each line, because the kernel writes to this console too.
void print_report() {
  std::ifstream report{kReport};
  for (std::string line; std::getline(report, line);) std::cout << "xml:" << line << "\n";
}

// Acts as /bin/true, the command of the tests.
int open_each(const std::vector<const char*>& files) {
  for (const char* const file : files) ::close(::open(file, O_RDONLY | O_CLOEXEC));
  return 0;
}

int be_the_system() {
  mount_at("proc", "/proc");
  mount_at("sysfs", "/sys");
  mount_at("devtmpfs", "/dev");
  mount_at("tmpfs", "/tmp");
  ::chmod("/tmp", 01777);
  // Debian's own value 3 requires CAP_SYS_ADMIN where CAP_PERFMON would do.
  std::ofstream{"/proc/sys/kernel/perf_event_paranoid"} << 2;
  describe();
  const int status = run_tests();
  print_report();
  std::cout << "guest: ended status=" << status << std::endl;
  ::sync();
  ::sleep(1);  // the console is slower than the power switch
  ::reboot(RB_POWER_OFF);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (::getpid() == 1) return be_the_system();
  if (std::string_view{argv[0]}.ends_with("true")) return open_each({argv + 1, argv + argc});
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
