#include "harness/anomaly/job.h"

#include <fcntl.h>
#include <linux/prctl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <stdexcept>
#include <string_view>
#include <system_error>

#include "harness/anomaly/calls.h"
#include "harness/program/checked.h"
#include "harness/program/read_file.h"
#include "perfring/os/fd.h"
#include "perfring/os/mapping.h"
#include "perfring/os/process.h"

namespace perfring::anomaly {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

std::string text_of(const fs::path& path) {
  return read_file(path).value_or(std::string{});
}

os::Fd memory_file(const char* name) {
  os::Fd file{checked(::memfd_create(name, MFD_CLOEXEC), "memfd_create")};
  checked(::fcntl(file.get(), F_SETFL, O_APPEND), "fcntl");
  return file;
}

std::string text_of(const os::Fd& file) {
  std::string text;
  std::array<char, 4096> piece;
  for (;;) {
    const ssize_t length =
        ::pread(file.get(), piece.data(), piece.size(), static_cast<off_t>(text.size()));
    if (length <= 0) return text;
    text.append(piece.data(), static_cast<std::size_t>(length));
  }
}

// FNV-1a, for comparisons: judge.py computes the same.
std::string hash_of(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char each : text) hash = (hash ^ static_cast<unsigned char>(each)) * 0x100000001b3;
  return std::to_string(hash);
}

// Lists the processes of this namespace except this one and the bystander: "COMM STATE".
std::vector<std::pair<pid_t, std::string> > others(pid_t bystander) {
  std::vector<std::pair<pid_t, std::string> > found;
  for (const auto& entry : fs::directory_iterator{"/proc"}) {
    const std::string name = entry.path().filename();
    pid_t pid = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), pid);
    if (error != std::errc{} || *end != '\0' || pid == ::getpid() || pid == bystander) continue;
    const std::string stat = text_of(entry.path() / "stat");
    const std::size_t after = stat.rfind(')');
    if (after == stat.npos || after + 2 >= stat.size()) continue;
    found.emplace_back(
        pid, stat.substr(stat.find('(') + 1, after - stat.find('(') - 1) + " " + stat[after + 2]);
  }
  return found;
}

// Describes how a process ended, given waitpid(2)'s status.
Json ending(int status) {
  return {{"code", WIFEXITED(status) ? WEXITSTATUS(status) : -1},
          {"signal", WIFSIGNALED(status) ? WTERMSIG(status) : 0}};
}

// Memory that the child writes before it executes the program. A system call cannot carry the
// number: the filter already stops them.
struct Shared {
  int listener;  // -1: not yet written; -2 - errno: the filter could not be installed
};

class Run {
 public:
  Run(const Job& job, std::string folder, pid_t bystander)
      : job_{job}, folder_{std::move(folder)}, bystander_{bystander} {}

  Json result() {
    start();
    const bool hung =
        !serve(Clock::now() + std::chrono::seconds{job_.seconds}, [&] { return has_ended(); });
    if (hung) {
      result_["hung"] = state_of(main_.id());
      end_others();
      serve(Clock::now() + 10s, [&] { return has_ended(); });
    }
    result_.update(ending(status_));
    // A process that was sent a signal may take a while to end.
    Json left = Json::array();
    if (!serve(Clock::now() + 10s, [&] { return reaped_all(); })) {
      for (const auto& [pid, name] : others(bystander_)) left.push_back(name);
      end_others();
      serve(Clock::now() + 10s, [&] { return reaped_all(); });
    }
    result_["left"] = left;
    tell();
    return result_;
  }

 private:
  void start() {
    struct stat program{};
    checked(::stat(job_.command.front().c_str(), &program), job_.command.front().c_str());
    const bool stops = job_.allocation == 0;
    void* const memory =
        ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw std::system_error{errno, std::generic_category(), "mmap"};
    auto* const shared = static_cast<Shared*>(memory);
    shared->listener = -1;
    auto forked = os::Process::fork([&]() -> int { execute(stops ? shared : nullptr); });
    if (!forked) throw std::system_error{forked.error(), "fork"};
    main_ = *std::move(forked);
    if (stops)
      injector_.emplace(job_.injection, listener_of(*shared), program, folder_, main_.id());
    ::munmap(memory, sizeof(Shared));
  }

  [[noreturn]] void execute(Shared* shared) const {
    std::vector<std::string> environment{"PATH=/usr/local/bin:/usr/bin:/bin", "TMPDIR=" + folder_,
                                         "LC_ALL=C"};
    if (job_.allocation != 0) {
      environment.push_back("LD_PRELOAD=" + job_.preload);
      environment.push_back("ANOMALY_PROGRAM=" + fs::canonical(job_.command.front()).string());
      environment.push_back("ANOMALY_COUNT=" + count_file());
      environment.push_back("ANOMALY_ALLOCATION=" + std::to_string(job_.allocation));
      if (job_.injection.marks) environment.push_back("ANOMALY_MARKS=1");
    }
    std::vector<char*> words, variables;
    for (const std::string& each : job_.command) words.push_back(const_cast<char*>(each.c_str()));
    for (const std::string& each : environment)
      variables.push_back(const_cast<char*>(each.c_str()));
    words.push_back(nullptr);
    variables.push_back(nullptr);
    const os::Fd nothing{::open("/dev/null", O_RDONLY | O_CLOEXEC)};
    ::dup2(nothing.get(), STDIN_FILENO);
    ::dup2(out_.get(), STDOUT_FILENO);
    ::dup2(err_.get(), STDERR_FILENO);
    const rlimit none{0, 0};
    ::setrlimit(RLIMIT_CORE, &none);
    ::setsid();
    if (::chdir(folder_.c_str()) != 0) ::_exit(126);
    if (::geteuid() != 0) ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (shared != nullptr) {
      const int listener = install_filter(job_.injection);
      __atomic_store_n(&shared->listener, listener < 0 ? -2 - errno : listener, __ATOMIC_RELEASE);
    }
    ::execve(words[0], words.data(), variables.data());
    ::_exit(126);
  }

  // Returns a copy of the listener. `shared` has its number in the child.
  os::Fd listener_of(const Shared& shared) const {
    int number = -1;
    for (const auto end = Clock::now() + 60s; number == -1 && Clock::now() < end; ::usleep(20)) {
      number = __atomic_load_n(&shared.listener, __ATOMIC_ACQUIRE);
    }
    if (number < 0) throw std::system_error{-2 - number, std::generic_category(), "seccomp(2)"};
    const auto process = os::ProcessRef::open(main_.id());
    if (!process) throw std::system_error{process.error(), "pidfd_open"};
    return os::Fd{static_cast<int>(
        checked(::syscall(SYS_pidfd_getfd, process->fd(), number, 0), "pidfd_getfd"))};
  }

  // Answers calls until then() is true or time is up. Returns the last then().
  template <class Then>
  bool serve(Clock::time_point end, Then then) {
    while (true) {
      if (then()) return true;
      if (Clock::now() >= end) return false;
      // While no call arrives, check each millisecond whether the process has ended.
      std::array<pollfd, 1> watched{{{injector_ ? injector_->fd() : -1, POLLIN, 0}}};
      if (::poll(watched.data(), watched.size(), 1) <= 0) continue;
      if ((watched[0].revents & POLLIN) == 0 || !injector_->answer()) {
        if ((watched[0].revents & POLLHUP) != 0) ::usleep(200);
      }
    }
  }

  void reap() {
    while (const auto any = os::wait_any(WNOHANG).value_or(std::nullopt)) {
      if (any->id != main_.id()) continue;
      main_.set_end(any->status);
      status_ = any->status;
      ended_ = true;
    }
  }
  bool has_ended() {
    reap();
    return ended_;
  }
  bool reaped_all() {
    reap();
    return others(bystander_).empty();
  }
  void end_others() const {
    for (const auto& [pid, name] : others(bystander_)) {
      if (pid == 1) continue;
      if (const auto ref = os::ProcessRef::open(pid)) static_cast<void>(ref->signal(SIGKILL));
    }
  }

  // Describes where each process hangs.
  std::string state_of(pid_t process) const {
    std::string all;
    for (const auto& [pid, name] : others(bystander_)) {
      const std::string folder = "/proc/" + std::to_string(pid);
      all += name + (pid == process ? " (the program)" : "") + ", in call " +
             text_of(folder + "/syscall");
    }
    return all;
  }

  std::string count_file() const { return folder_ + "/.allocations"; }

  void tell() {
    if (injector_) {
      result_["reached"] = injector_->was_reached();
      Json counts = Json::object();
      for (const auto& [call, count] : injector_->counts()) counts[name_of(call)] = count;
      result_["counts"] = counts;
      if (injector_->closed()) result_["closed"] = *injector_->closed();
    } else {
      const std::string word = text_of(count_file());
      std::uint64_t count = 0;
      if (word.size() == sizeof count)
        std::copy(word.begin(), word.end(), reinterpret_cast<char*>(&count));
      result_["reached"] = count >= job_.allocation;
      result_["counts"] = Json{{"malloc", count}};
    }
    injector_.reset();
    const auto contents = [](const os::Fd& file) {
      const std::string text = text_of(file);
      return Json{{"text", text.substr(0, 20000)}, {"hash", hash_of(text)}};
    };
    result_["out"] = contents(out_);
    result_["err"] = contents(err_);
    Json files = Json::object();
    for (const auto& entry : fs::recursive_directory_iterator{folder_}) {
      if (entry.path() == count_file()) continue;
      const std::string name = fs::relative(entry.path(), folder_);
      files[name] = entry.is_regular_file() ? hash_of(text_of(entry.path())) : "no file";
    }
    result_["files"] = files;
  }

  const Job& job_;
  std::string folder_;
  pid_t bystander_;
  os::Fd out_ = memory_file("out");
  os::Fd err_ = memory_file("err");
  os::Process main_;
  int status_ = 0;
  bool ended_ = false;
  std::optional<Injector> injector_;
  Json result_;
};

void empty(const std::string& folder) {
  for (const auto& entry : fs::directory_iterator{folder}) fs::remove_all(entry);
}

}  // namespace

Job job_of(const Json& json) {
  Job job;
  job.command = json.at("command").get<std::vector<std::string> >();
  job.injection.marks = json.value("marks", false);
  job.injection.nth = json.value("nth", std::uint64_t{0});
  job.preload = json.value("preload", "");
  job.then = json.value("then", std::vector<std::string>{});
  job.seconds = json.value("seconds", job.seconds);
  if (json.contains("files")) {
    for (const auto& [name, from] : json["files"].items())
      job.files.emplace_back(name, from.get<std::string>());
  }
  const std::string call = json.value("call", "");
  const std::string action = json.value("action", "count");
  if (call == "malloc") job.allocation = job.injection.nth;
  if (call == "malloc") return job;
  using enum Action;
  constexpr std::array<std::pair<const char*, Action>, 6> kActions{{{"count", Count},
                                                                    {"error", Error},
                                                                    {"one", ShortOne},
                                                                    {"half", ShortHalf},
                                                                    {"cut", Cut},
                                                                    {"empty", Empty}}};
  const auto* const found =
      std::ranges::find_if(kActions, [&](const auto& each) { return each.first == action; });
  if (found == kActions.end()) throw std::invalid_argument{"no action: " + action};
  job.injection.action = found->second;
  job.injection.call = number_of(call);
  job.injection.error = json.value("errno", 0);
  const bool needs_call = found->second != Count && found->second != Cut && found->second != Empty;
  if (needs_call && job.injection.call < 0) throw std::invalid_argument{"no call: " + call};
  return job;
}

Bystander::Bystander() {
  auto forked = os::Process::fork([] {
    ::prctl(PR_SET_NAME, "bystander");
    while (true) ::pause();
    return 0;
  });
  if (!forked) throw std::system_error{forked.error(), "fork"};
  process_ = *std::move(forked);
}

// A bystander that was killed is a zombie, or was reaped.
bool Bystander::is_alive() const {
  const std::string stat = text_of("/proc/" + std::to_string(pid()) + "/stat");
  return stat.find("(bystander) S") != stat.npos || stat.find("(bystander) R") != stat.npos;
}

Json run(const Job& job, const std::string& folder, const Bystander& bystander) {
  empty(folder);
  constexpr std::string_view kText = "text:";
  for (const auto& [name, from] : job.files) {
    if (from.starts_with(kText)) {
      std::ofstream{folder + "/" + name} << from.substr(kText.size());
    } else {
      fs::copy_file(from, folder + "/" + name);
    }
  }
  Json result = Run{job, folder, bystander.pid()}.result();
  result["bystander"] = bystander.is_alive();
  if (!job.then.empty() && bystander.is_alive()) {
    Job then;
    then.command = job.then;
    then.seconds = job.seconds;
    const Json after = Run{then, folder, bystander.pid()}.result();
    result["then"] = after["code"];
  }
  return result;
}

}  // namespace perfring::anomaly
