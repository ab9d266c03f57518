#ifndef HARNESS_KERNEL_REPORTS_H_
#define HARNESS_KERNEL_REPORTS_H_

// For tests of eventpoll: what a wait reports.

#include <gtest/gtest.h>

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "harness/kernel/eventpoll.h"
#include "harness/kernel/testing.h"

namespace perfring::kernel {

using Reports = std::vector<std::pair<__u64, __u32>>;  // data, events

inline Reports wait(eventpoll& epoll, std::size_t room = 8) {
  std::vector<epoll_event> ready(room + 1, epoll_event{.events = 0xdead, .data{.u64 = 0xdead}});
  const std::size_t count = epoll.wait(std::span{ready}.first(room));
  EXPECT_LE(count, room);
  EXPECT_EQ(ready[room].events, 0xdeadu);
  Reports reports;
  for (std::size_t i = 0; i < count; ++i) {
    const __u64 data = ready[i].data.u64;  // not aligned: epoll_event is packed
    reports.emplace_back(data, __u32{ready[i].events});
  }
  return reports;
}

inline const Reports kNothing;
inline Reports report(__u64 data, __u32 events = kReadable) {
  return {{data, events}};
}

}  // namespace perfring::kernel

#endif  // HARNESS_KERNEL_REPORTS_H_
