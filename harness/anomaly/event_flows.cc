#include <linux/perf_event.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <functional>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "harness/anomaly/flows.h"
#include "harness/program/privileges.h"
#include "perfring/event/diagnosis/check.h"
#include "perfring/event/event.h"
#include "perfring/event/request.h"
#include "perfring/os/mapping.h"
#include "perfring/os/syscalls.h"
#include "perfring/perfring.h"
#include "perfring/record/sample.h"
#include "perfring/record/tasks.h"
#include "perfring/sampler/group.h"
#include "perfring/sampler/sampler.h"

namespace perfring::anomaly {
namespace {

using namespace event;
using std::chrono::milliseconds;
using Clock = Sampler::Clock;

// Memory whose pages the flow touches one by one. Each first touch is a page fault of this thread.
class Pages {
 public:
  static constexpr std::size_t kCount = 20;

  Pages() {
    const std::size_t length = kCount * os::page_size();
    void* const at =
        ::mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) throw std::runtime_error{"no memory"};
    memory_ = static_cast<volatile char*>(at);
    ::madvise(at, length, MADV_NOHUGEPAGE);
  }
  ~Pages() { ::munmap(const_cast<char*>(memory_), kCount * os::page_size()); }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;

  void touch() const {
    for (std::size_t i = 0; i < kCount; ++i) memory_[i * os::page_size()] = 1;
  }
  bool has(std::uint64_t address) const {
    const auto first = reinterpret_cast<std::uintptr_t>(memory_);
    return address >= first && address - first < kCount * os::page_size();
  }

 private:
  volatile char* memory_ = nullptr;
};

const Event& faults() {
  static const Event kFaults = software(PERF_COUNT_SW_PAGE_FAULTS).kernel(Kernel::Excluded);
  return kFaults;
}

// Counts the samples of page faults in `pages`.
struct Faults {
  const Pages& pages;
  std::uint64_t& found;
  void operator()(const Delivered& each) const {
    const auto* const sample = std::get_if<record::Sample>(&each.record);
    if (sample != nullptr && sample->addr() && pages.has(*sample->addr())) ++found;
  }
};

Account account_of(const Sampler& sampler, std::uint64_t found) {
  // Lost samples may be of other pages, so at most the missing ones count as lost.
  const std::uint64_t missing = Pages::kCount - std::min<std::uint64_t>(found, Pages::kCount);
  return {Pages::kCount, found, std::min(missing, sampler.lost())};
}

Prepared enable(std::span<const std::string>) {
  auto pages = std::make_shared<Pages>();
  return {.run = [pages]() -> FlowResult {
    auto sampler = Sampler::open({.events = {faults()}, .target = this_thread()}, /*starts=*/false);
    if (!sampler) return failure(sampler.error());
    if (const auto started = sampler->start(); !started) return failure(started.error());
    pages->touch();
    std::uint64_t found = 0;
    sampler->flush(Faults{*pages, found});
    return account_of(*sampler, found);
  }};
}

Prepared sample(std::span<const std::string>) {
  auto pages = std::make_shared<Pages>();
  return {.run = [pages]() -> FlowResult {
    auto sampler = Sampler::open(
        {.events = {faults(), changes({.switches = true})}, .target = this_process()});
    if (!sampler) return failure(sampler.error());
    pages->touch();
    std::uint64_t found = 0;
    const auto end = Clock::now() + milliseconds{2};
    // Each wait of this thread writes a switch record, so next() never runs dry: stop by the clock.
    while (Clock::now() < end) {
      if (const auto each = sampler->next(end)) Faults{*pages, found}(*each);
    }
    sampler->wait(Clock::now() + milliseconds{1});
    sampler->flush(Faults{*pages, found});
    return account_of(*sampler, found);
  }};
}

Prepared count(std::span<const std::string>) {
  auto pages = std::make_shared<Pages>();
  return {.run = [pages]() -> FlowResult {
    auto group = Group::open(
        {.events = {faults(), software(PERF_COUNT_SW_TASK_CLOCK).kernel(Kernel::Excluded)},
         .target = this_thread()});
    if (!group) return failure(group.error());
    pages->touch();
    if (const auto stopped = group->stop(); !stopped) return failure(stopped.error());
    const auto counts = group->read();
    if (!counts) return failure(counts.error());
    // This thread may touch other pages as well.
    const std::uint64_t counted = std::min<std::uint64_t>((*counts)[0].value, Pages::kCount);
    return Account{Pages::kCount, counted, 0};
  }};
}

// Returns the child's exit status. Gives a child one minute to end: a longer life is a fault.
std::expected<int, std::string> ending_of(Sampler& sampler,
                                          const std::function<void(const Delivered&)>& each) {
  for (const auto end = Clock::now() + std::chrono::minutes{1}; Clock::now() < end;) {
    const auto status = sampler.child_status();
    sampler.wait(Clock::now() + milliseconds{10});
    sampler.for_each(each);
    if (!status) continue;
    if (*status) return **status;
    return std::unexpected("wait of the child: " + status->error().message());
  }
  return std::unexpected("the child did not end within a minute");
}

// The child's execve() is one record.
Prepared child(std::span<const std::string>) {
  return {.run = []() -> FlowResult {
    auto sampler =
        Sampler::open({.events = {changes({.execs = true})}, .target = event::child({"true"})});
    if (!sampler) return failure(sampler.error());
    Account account{.attempted = 1};
    const auto each = [&](const Delivered& one) {
      const auto* const comm = std::get_if<record::Comm>(&one.record);
      if (comm != nullptr && comm->is_exec()) ++account.delivered;
    };
    if (const auto status = ending_of(*sampler, each); !status)
      return std::unexpected(status.error());
    sampler->flush(each);
    account.lost = std::min(account.attempted - std::min(account.attempted, account.delivered),
                            sampler->lost());
    return account;
  }};
}

// Counts a child. Also tries a command that cannot be run, which must be an error.
Prepared children(std::span<const std::string>) {
  return {.run = []() -> FlowResult {
    const Event clock = software(PERF_COUNT_SW_TASK_CLOCK).kernel(Kernel::Excluded);
    auto refused =
        Group::open({.events = {clock}, .target = event::child({"anomaly-no-such-program"})});
    if (refused) {
      // If its own exec fails with ENOEXEC, execvp(3) runs the file with a shell.
      while (!refused->child_status()) std::this_thread::sleep_for(milliseconds{1});
      return std::unexpected("a command that does not exist was run");
    }
    {
      auto never_started =
          Group::open({.events = {clock}, .target = event::child({"true"})}, /*starts=*/false);
    }
    auto group = Group::open({.events = {clock}, .target = event::child({"true"})});
    if (!group) return failure(group.error());
    for (const auto end = Clock::now() + std::chrono::minutes{1}; !group->child_status();) {
      if (Clock::now() >= end) return std::unexpected("the child did not end within a minute");
      std::this_thread::sleep_for(milliseconds{1});
    }
    const auto counts = group->read();
    if (!counts) return failure(counts.error());
    return Account{1, (*counts)[0].value != 0 ? 1U : 0U, 0};
  }};
}

// ARGUMENT: a copy of this program. A child runs the copy and calls the probed function.
Prepared uprobe(std::span<const std::string> arguments) {
  if (arguments.empty()) throw std::runtime_error{"no copy of this program is given"};
  if (!is_root()) throw std::runtime_error{"no privilege for a uprobe: it takes root"};
  return {.run = [copy = arguments.front()]() -> FlowResult {
    const Event probe = event::uprobe(copy, "anomaly_probed");
    auto sampler = Sampler::open({.events = {probe}, .target = event::child({copy, "probed"})});
    if (!sampler) return failure(sampler.error());
    std::uint64_t hits = 0;
    const auto each = [&](const Delivered& one) {
      hits += std::holds_alternative<record::Sample>(one.record) ? 1 : 0;
    };
    const auto status = ending_of(*sampler, each);
    if (!status) return std::unexpected(status.error());
    sampler->flush(each);
    // The child calls nothing if its file is cut, or if a shell runs it.
    if (*status != 0) return std::unexpected("the command " + copy + " failed");
    const std::uint64_t attempted = 5;
    return Account{attempted, hits,
                   std::min(attempted - std::min(attempted, hits), sampler->lost())};
  }};
}

// The child's flow, which calls the probed function.
Prepared probed(std::span<const std::string>);

Prepared check(std::span<const std::string>) {
  return {.run = []() -> FlowResult {
    const std::vector<Event> events{faults(), tracepoint("sched:sched_switch"),
                                    kprobe("do_nanosleep"), hardware(PERF_COUNT_HW_CPU_CYCLES),
                                    changes({.namespaces = true})};
    std::size_t findings = 0;
    for (const Event& each : events) {
      findings += event::check({.events = {each}, .target = this_process()}).size();
      findings += event::check({.events = {each}, .target = event::system()}).size();
    }
    findings += event::check({.events = {faults().period(0)}, .page_count = 3}).size();
    // The number of findings depends on the machine, but three pages always yield one.
    if (findings == 0) return std::unexpected("nothing was found in a request for three pages");
    return Account{};
  }};
}

// Requests that must fail: each must return an error that explains itself.
Prepared explain(std::span<const std::string>) {
  return {.run = []() -> FlowResult {
    Account account;
    const auto expect_error = [&](const auto& result) {
      ++account.attempted;
      if (!result && !result.error().message().empty() && !result.error().explain().empty())
        ++account.delivered;
    };
    expect_error(PerfBuffer::open(65535));
    expect_error(PerfBuffer::open(0, 3));
    expect_error(Sampler::open(
        {.events = {faults().adjust([](perf_event_attr& attr) { attr.sample_type = ~0ULL; })},
         .target = this_thread()}));
    expect_error(Sampler::open({.events = {tracepoint("no:such")}}));
    expect_error(Sampler::open({.events = {event::uprobe("/no/such/program", "main")}}));
    expect_error(Sampler::open({.events = {faults()}, .target = event::cgroup("/no/such/folder")}));
    expect_error(Sampler::open({.events = {faults()}, .target = event::process(0x3ffffff)}));
    return account;
  }};
}

constexpr Flow kFlows[]{{"enable", enable}, {"sample", sample},     {"count", count},
                        {"child", child},   {"children", children}, {"uprobe", uprobe},
                        {"probed", probed}, {"check", check},       {"explain", explain}};

}  // namespace
}  // namespace perfring::anomaly

extern "C" [[gnu::noinline, gnu::visibility("default")]] void anomaly_probed() {
  asm volatile("");
}

namespace perfring::anomaly {
namespace {

Prepared probed(std::span<const std::string>) {
  return {.run = []() -> FlowResult {
    for (int i = 0; i < 5; ++i) ::anomaly_probed();
    return Account{};
  }};
}

}  // namespace

std::span<const Flow> event_flows() {
  return kFlows;
}

}  // namespace perfring::anomaly
