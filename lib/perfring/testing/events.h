#ifndef PERFRING_TESTING_EVENTS_H_
#define PERFRING_TESTING_EVENTS_H_

// Shared by the tests of lib/perfring/event.

#include <gtest/gtest.h>
#include <linux/perf_event.h>
#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <ostream>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "perfring/event/diagnosis/check.h"
#include "perfring/event/event.h"
#include "perfring/event/request.h"
#include "perfring/event/system.h"
#include "perfring/os/cpus.h"
#include "perfring/record/tasks.h"
#include "perfring/sampler/sampler.h"
#include "perfring/testing/fake_kernel.h"
#include "perfring/testing/fake_system.h"

namespace perfring::event::testing {

inline const Event kFaults = software(PERF_COUNT_SW_PAGE_FAULTS);
inline const Event kSwitch = tracepoint("sched:sched_switch");
constexpr std::uint64_t kKernelAddress = 0xffffffff81000000;

// Answers like a kernel with perf_event_paranoid = 2 to a plain user (kernel/events/core.c:
// perf_allow_kernel(), perf_allow_cpu()).
inline int paranoid2(const OpenArgs& args) {
  if (args.attr.exclude_kernel == 0) return EACCES;
  return args.pid == -1 || (args.flags & PERF_FLAG_PID_CGROUP) != 0 ? EACCES : 0;
}

// The name of a parameterized test: that of its row.
constexpr auto row_name = [](const auto& info) { return info.param.name; };

constexpr auto kRefused = Finding::Severity::Refused;
constexpr auto kSilent = Finding::Severity::Silent;

// A change to a correct request, and check()'s finding on it.
struct CheckRow {
  std::string name;
  std::string field;
  Finding::Severity severity;
  std::string message;  // a part of the finding's text
  std::function<void(OpenArgs&, FakeSystem&)> change;
  std::string also = {};  // the fields of all other findings, each followed by a space
};

inline void PrintTo(const CheckRow& row, std::ostream* out) {
  *out << row.name;
}

// A correct request of a plain user: the switches of this thread.
inline OpenArgs right() {
  OpenArgs args;
  args.attr = changes({.switches = true}).kernel(Kernel::Excluded).attr().value();
  args.attr.watermark = args.attr.wakeup_watermark = 1;
  return args;
}

inline void expect_finding(const CheckRow& row) {
  FakeSystem machine;
  OpenArgs args = right();
  ASSERT_TRUE(check(args, machine).empty()) << check(args, machine).front().says;
  row.change(args, machine);
  const auto found = check(args, machine);
  const auto it = std::ranges::find_if(found, [&](const Finding& each) {
    return each.field == row.field && each.says.find(row.message) != std::string::npos;
  });
  std::string all;
  for (const Finding& each : found) all += each.field + ": " + each.says + "\n";
  ASSERT_NE(it, found.end()) << all;
  EXPECT_EQ(it->severity, row.severity) << all;
  EXPECT_FALSE(it->advice.empty());
  std::string others;
  for (auto each = found.begin(); each != found.end(); ++each) {
    if (each != it) others += each->field + " ";
  }
  EXPECT_EQ(others, row.also) << all;
}

// Changes for a row. as() requests an event with the event's own attributes, as root.
inline auto as(Event event) {
  return [event = std::move(event)](OpenArgs& args, FakeSystem& machine) {
    machine.be_root();
    static std::vector<Event> kept;  // own the strings to which the attributes refer
    kept.push_back(event);
    args.attr = event.attr(machine).value();
  };
}
inline auto as(Event event, void (*change)(OpenArgs&)) {
  return [put = as(std::move(event)), change](OpenArgs& args, FakeSystem& machine) {
    put(args, machine);
    change(args);
  };
}
inline auto set(void (*change)(perf_event_attr&)) {
  return [change](OpenArgs& args, FakeSystem&) { change(args.attr); };
}
inline auto put(void (*change)(OpenArgs&)) {
  return [change](OpenArgs& args, FakeSystem&) { change(args); };
}

// A Sampler on the kernel's stand-in, and its first ring for the test to write to.
class SamplerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!os::online_cpus()) GTEST_SKIP() << "sysfs, which lists the online CPUs, is not mounted";
  }
  static Request request(Target target = this_thread()) {
    return {.events = {kFaults}, .target = std::move(target), .page_count = 1};
  }
  Sampler open(const Request& requested = request(), bool starts = true) {
    return Sampler::open(requested, starts).value();
  }
  // Publishes a COMM with this name and time on the first event's ring; with another type, a FORK
  // or an EXIT, which are as long.
  void write(const Sampler& sampler, const std::string& name, std::uint64_t time,
             std::uint32_t type = PERF_RECORD_COMM) {
    struct {
      perf_event_header header{0, 0, sizeof *this};
      std::uint32_t pid = 1;
      std::uint32_t tid = 2;
      char comm[16]{};
      std::uint64_t tid_of_id = 0;
      std::uint64_t time = 0;
      std::uint64_t cpu = 0;
      std::uint64_t identifier = 0;
    } record;
    record.header.type = type;
    std::memcpy(record.comm, name.data(), std::min(name.size(), sizeof record.comm - 1));
    record.time = time;
    record.identifier = sampler.events()[0].ids[0];
    publish(sampler, &record, sizeof record);
  }
  // Publishes a sample that contains this id and otherwise zeros.
  void write_sample(const Sampler& sampler, std::uint64_t id) {
    constexpr std::uint16_t kSize = 512;
    std::array<std::uint64_t, kSize / 8> sample{};
    const perf_event_header header{PERF_RECORD_SAMPLE, 0, kSize};
    std::memcpy(sample.data(), &header, sizeof header);
    sample[1] = id;
    publish(sampler, sample.data(), kSize);
  }
  void publish(const Sampler& sampler, const void* record, std::size_t size) {
    const auto fd = static_cast<int>(sampler.events()[0].ids[0]);  // the stand-in's ids are fds
    const std::uint64_t page = perfring::testing::page_size();
    ASSERT_EQ(::pwrite(fd, record, size, static_cast<off_t>(page + head_)),
              static_cast<ssize_t>(size));
    head_ += size;
    ASSERT_EQ(::pwrite(fd, &head_, 8, offsetof(perf_event_mmap_page, data_head)), 8);
  }
  static std::string name_of(const Delivered& each) {
    const auto* const comm = std::get_if<record::Comm>(&each.record);
    return comm == nullptr ? "another record " : std::string{comm->comm()} + " ";
  }

  perfring::testing::FakeKernel kernel_;
  std::uint64_t head_ = 0;
};

}  // namespace perfring::event::testing

#endif  // PERFRING_TESTING_EVENTS_H_
