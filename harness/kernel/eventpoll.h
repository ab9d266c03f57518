#ifndef HARNESS_KERNEL_EVENTPOLL_H_
#define HARNESS_KERNEL_EVENTPOLL_H_

// User space's ways to wait for events: poll(2) of fs/select.c, epoll(7) of fs/eventpoll.c at
// v6.18. Nothing here sleeps: each call is one look, as with a timeout of 0; EventfdWaiter is for
// consumers that really sleep.
//
// Threads: an eventpoll belongs to one thread, and so do wakeups, except those of EventfdWaiter.

#include <linux/types.h>
#include <sys/epoll.h>

#include <list>
#include <memory>
#include <span>
#include <vector>

#include "harness/kernel/perf_event.h"

namespace perfring::kernel {

// poll(2) of these: fills revents, returns how many are not 0.
struct pollfd {
  perf_event* event;
  short events;
  short revents;
};
int do_poll(std::span<pollfd> fds);

// An epoll instance, level-triggered unless EPOLLET. Of perf events, and of other instances.
class eventpoll {
 public:
  eventpoll();
  ~eventpoll();
  eventpoll(const eventpoll&) = delete;
  eventpoll& operator=(const eventpoll&) = delete;

  // epoll_ctl(2): 0, or -EEXIST, -ENOENT. The target must outlive its membership.
  int add(perf_event& target, __u32 events, __u64 data);
  int add(eventpoll& target, __u32 events, __u64 data);
  int modify(const void* target, __u32 events, __u64 data);
  int remove(const void* target);

  // epoll_wait(2) with timeout 0: fills `ready` from its beginning, returns how many.
  std::size_t wait(std::span<epoll_event> ready);

 private:
  struct epitem;
  int insert(std::unique_ptr<epitem> item);
  std::list<std::unique_ptr<epitem>>::iterator find(const void* target);
  void make_ready(epitem& item);
  unsigned poll();

  std::list<std::unique_ptr<epitem>> items_;
  std::list<epitem*> rdllist_;
  std::vector<wait_queue_entry*> poll_wait_;  // of the instances that this one is in
};

// Writes 1 to an eventfd(2) whenever a waiter on the event would be woken. The event, which it
// keeps alive, has it on its wait queue while it exists.
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
