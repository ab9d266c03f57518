#ifndef HARNESS_LIVE_EVENT_TESTING_H_
#define HARNESS_LIVE_EVENT_TESTING_H_

// Shared by the tests of events.

#include <gtest/gtest.h>
#include <linux/perf_event.h>
#include <linux/prctl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "harness/live/live_testing.h"
#include "perfring/event/diagnosis/check.h"
#include "perfring/event/diagnosis/event_error.h"
#include "perfring/event/event.h"
#include "perfring/event/request.h"
#include "perfring/event/system.h"
#include "perfring/os/fd.h"
#include "perfring/sampler/sampler.h"

namespace perfring::event::testing {

using Attr = perf_event_attr;

inline const Event kFaults = software(PERF_COUNT_SW_PAGE_FAULTS);
inline constexpr int kPerfmon = 38;  // CAP_PERFMON

class LiveEventTest : public live::RootTest {};
class LiveEventCallersTest : public live::RootTest {};

inline bool has_pmu(const char* name) {
  return internal::Facts{real_system()}.pmu_type(name).has_value();
}

// Touches N new pages. Returns their address.
inline std::uint64_t fault(int pages) {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const std::size_t length = page * static_cast<std::size_t>(pages);
  auto* const memory = static_cast<volatile char*>(
      ::mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ::madvise(const_cast<char*>(memory), length, MADV_NOHUGEPAGE);
  for (std::size_t at = 0; at < length; at += page) memory[at] = 1;
  ::munmap(const_cast<char*>(memory), length);
  return reinterpret_cast<std::uintptr_t>(memory);
}

// Runs `body` in a child as the user nobody, with these capabilities.
inline std::string as_nobody(std::vector<int> capabilities,
                             const std::function<std::string()>& body) {
  return live::in_child([&] {
    live::become(live::kNobody, capabilities);
    ::prctl(PR_SET_DUMPABLE, 1);  // else root owns the child's own /proc
    return body();
  });
}

inline std::string fields(const std::vector<Cause>& causes) {
  std::string all;
  for (const Cause& each : causes) all += (all.empty() ? "" : ", ") + each.field;
  return all;
}

// Returns the errno and the fields of the causes.
inline std::string refusal_of(const EventError& error) {
  const int number = error.io_error.value();
  return std::string{number == 0 ? "-" : ::strerrorname_np(number)} + " " + fields(error.causes);
}

inline std::function<std::string()> sampled(Request request) {
  return [request = std::move(request)]() -> std::string {
    const auto sampler = Sampler::open(request, false);
    if (!sampler) return refusal_of(sampler.error());
    return sampler->notes().empty() ? "opens" : "opens without the kernel";
  };
}
inline std::function<std::string()> sampled(const Event& event) {
  return sampled(Request{.events = {event}, .target = this_thread()});
}
inline std::function<std::string()> with(const std::function<void(Attr&)>& change) {
  return sampled(kFaults.adjust(change));
}
// Opens the event with one system call.
inline std::function<std::string()> opened_with(const std::function<void(OpenArgs&)>& change) {
  return [=]() -> std::string {
    OpenArgs args = internal::dummy();
    change(args);
    OpenArgs answered_args = args;
    const os::Fd fd{real_system().open(answered_args)};
    if (fd.get() >= 0) return "opens";
    return refusal_of(
        EventError::at_failure(EventError::Step::Open, -fd.get(), args, "", real_system()));
  };
}

// A request, and the kernel's answer to each caller.
struct Row {
  const char* what;
  std::function<std::string()> attempt;
  const char* root;
  const char* user = nullptr;     // nullptr: the same as for root
  const char* perfmon = nullptr;  // nullptr: the same as for the user
};

inline void expect(const std::vector<Row>& rows) {
  for (const Row& row : rows) {
    const char* const user = row.user == nullptr ? row.root : row.user;
    EXPECT_EQ(live::in_child(row.attempt), row.root) << row.what << ", as root";
    EXPECT_EQ(as_nobody({}, row.attempt), user) << row.what << ", as a user";
    EXPECT_EQ(as_nobody({kPerfmon}, row.attempt), row.perfmon == nullptr ? user : row.perfmon)
        << row.what << ", with CAP_PERFMON";
  }
}

inline bool is_paranoid_2() {
  return real_system().read("/proc/sys/kernel/perf_event_paranoid") == "2\n";
}

// The rows are those of x86-64 with Linux 6.12 and later. Other kernels answer some of them
// differently.
inline constexpr const char* kNoRows =
    "perf_event_paranoid is not 2, or this is not x86-64 at 6.12";
inline bool has_rows() {
#if defined(__x86_64__)
  return live::is_linux(6, 12) && is_paranoid_2();
#else
  return false;
#endif
}

}  // namespace perfring::event::testing

#endif  // HARNESS_LIVE_EVENT_TESTING_H_
