#ifndef PERFRING_TESTING_FAKE_SYSTEM_H_
#define PERFRING_TESTING_FAKE_SYSTEM_H_

// A machine that consists of files and of a rule for its kernel's answers.

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <expected>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <system_error>
#include <vector>

#include "perfring/event/system.h"

namespace perfring::event::testing {

class FakeSystem final : public System {
 public:
  // A machine with 4 CPUs, the last of them offline, without a PMU; a plain user at paranoid 2.
  FakeSystem() {
    files["/proc/sys/kernel/perf_event_paranoid"] = "2\n";
    files["/proc/sys/kernel/perf_event_max_sample_rate"] = "100000\n";
    files["/proc/sys/kernel/perf_event_max_stack"] = "127\n";
    files["/proc/sys/kernel/perf_event_mlock_kb"] = "516\n";
    files["/proc/self/limits"] =
        "Max open files            64                 4096   files\n"
        "Max locked memory         0                  0      bytes\n";
    for (const char* const task : {"100", "101"}) {
      files[std::string{"/proc/self/task/"} + task + "/comm"] = "x\n";
      files[std::string{"/proc/"} + task + "/comm"] = "x\n";
    }
    files["/proc/77/status"] = "Uid:\t1\t1000\t1\t1\n";
    files["/proc/88/status"] = "Uid:\t0\t0\t0\t0\n";
    files["/sys/devices/system/cpu/online"] = "0-2\n";
    files["/sys/devices/system/cpu/possible"] = "0-3\n";
    device("software", 1);
    device("tracepoint", 2);
    device("breakpoint", 5);
    device("kprobe", 8);
    device("uprobe", 9);
    files["/sys/bus/event_source/devices/kprobe/format/retprobe"] = "config:0\n";
    files["/sys/bus/event_source/devices/uprobe/format/retprobe"] = "config:0\n";
    device("msr", 10);
    files["/sys/bus/event_source/devices/msr/events/tsc"] = "event=0x00\n";
    files["/sys/bus/event_source/devices/msr/events/aperf"] = "event=0x01\n";
    files["/sys/bus/event_source/devices/msr/format/event"] = "config:0-63\n";
    for (const char* const name :
         {"sched/sched_switch", "sched/sched_waking", "irq/irq_handler_entry"}) {
      files[std::string{"/sys/kernel/tracing/events/"} + name + "/id"] = "314\n";
    }
    capabilities(0);
  }

  void device(const std::string& name, unsigned type) {
    files["/sys/bus/event_source/devices/" + name + "/type"] = std::to_string(type) + "\n";
  }
  void capabilities(unsigned long long mask) {
    std::string digits;
    for (int shift = 60; shift >= 0; shift -= 4) digits += "0123456789abcdef"[mask >> shift & 15];
    files["/proc/self/status"] = "Uid:\t1000\t1000\t1000\t1000\nCapEff:\t" + digits + "\n";
  }
  void be_root() { capabilities(0x1ffffffffffULL); }
  void be_perfmon() { capabilities(1ULL << 38); }

  // Returns 0 if the event opens, otherwise an errno.
  std::function<int(OpenArgs&)> answer = [](OpenArgs&) { return 0; };
  std::map<std::string, std::string> files;
  std::map<std::string, FileKind> kinds;
  std::map<std::string, int> errors;  // of files and folders
  std::vector<OpenArgs> calls;

  int open(OpenArgs& args) override {
    calls.push_back(args);
    const int error = answer(args);
    return error != 0 ? -error : ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  }
  std::expected<std::string, std::error_code> read(const std::string& path) override {
    if (const auto bad = errors.find(path); bad != errors.end()) return failed(bad->second);
    const auto file = files.find(path);
    if (file == files.end()) return failed(ENOENT);
    return file->second;
  }
  std::expected<std::vector<std::string>, std::error_code> list(const std::string& path) override {
    if (const auto bad = errors.find(path); bad != errors.end()) return failed(bad->second);
    const std::string folder = path.ends_with('/') ? path : path + "/";
    std::set<std::string> names;
    for (const auto& [name, text] : files) {
      if (!name.starts_with(folder)) continue;
      names.insert(name.substr(folder.size(), name.find('/', folder.size()) - folder.size()));
    }
    if (names.empty()) return failed(ENOENT);
    return std::vector<std::string>{names.begin(), names.end()};
  }
  std::expected<FileKind, std::error_code> look_at(const std::string& path) override {
    if (const auto kind = kinds.find(path); kind != kinds.end()) return kind->second;
    if (list(path)) return FileKind{.type = FileKind::Type::Folder};
    return failed(ENOENT);
  }

 private:
  static std::unexpected<std::error_code> failed(int error) {
    return std::unexpected(std::error_code(error, std::generic_category()));
  }
};

}  // namespace perfring::event::testing

#endif  // PERFRING_TESTING_FAKE_SYSTEM_H_
