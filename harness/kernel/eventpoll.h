#ifndef HARNESS_KERNEL_EVENTPOLL_H_
#define HARNESS_KERNEL_EVENTPOLL_H_

// How user space waits for events: poll(2) from fs/select.c and epoll(7) from fs/eventpoll.c, at
// v6.18. No call sleeps: each acts as with a timeout of 0. EventfdWaiter is for consumers that
// really sleep.
//
// Threads: an eventpoll belongs to one thread. Wakeups must come from that thread too, except for
// those of an EventfdWaiter.

#include <linux/types.h>
#include <sys/epoll.h>

#include <cstddef>
#include <list>
#include <memory>
#include <span>
#include <vector>

#include "harness/kernel/perf_event.h"

namespace perfring::kernel {

// poll(2): fills revents and returns the number of entries with nonzero revents.
struct pollfd {
  perf_event* event;
  short events;
  short revents;
};
int do_poll(std::span<pollfd> fds);

// An epoll instance for perf events and other epoll instances. Level-triggered unless EPOLLET.
class eventpoll {
 public:
  eventpoll();
  ~eventpoll();
  eventpoll(const eventpoll&) = delete;
  eventpoll& operator=(const eventpoll&) = delete;

  // epoll_ctl(2): returns 0, -EEXIST or -ENOENT. The target must outlive its membership.
  int add(perf_event& target, __u32 events, __u64 data);
  int add(eventpoll& target, __u32 events, __u64 data);
  int modify(const void* target, __u32 events, __u64 data);
  int remove(const void* target);

  // epoll_wait(2) with timeout 0: fills the front of `ready` and returns the number of entries
  // filled.
  std::size_t wait(std::span<epoll_event> ready);

 private:
  struct epitem;
  int insert(std::unique_ptr<epitem> item);
  std::list<std::unique_ptr<epitem>>::iterator find(const void* target);
  void make_ready(epitem& item);
  unsigned poll();

  std::list<std::unique_ptr<epitem>> items_;
  std::list<epitem*> rdllist_;
  std::vector<wait_queue_entry*> poll_wait_;  // entries of the instances that contain this one
};

// Writes 1 to an eventfd(2) whenever a waiter on the event would be woken. It keeps the event
// alive, and is on the event's wait queue as long as it exists.
class EventfdWaiter final : public wait_queue_entry {
 public:
  EventfdWaiter(perf_file event, int eventfd);
  ~EventfdWaiter();
  EventfdWaiter(const EventfdWaiter&) = delete;
  EventfdWaiter& operator=(const EventfdWaiter&) = delete;
  void wake() override;

 private:
  perf_file event_;
  int eventfd_;
};

}  // namespace perfring::kernel

#endif  // HARNESS_KERNEL_EVENTPOLL_H_
