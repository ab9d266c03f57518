#include "harness/kernel/eventpoll.h"

#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace perfring::kernel {
namespace {

constexpr __u32 kAlways = EPOLLERR | EPOLLHUP;  // reported even if not requested
constexpr __u32 kPrivateBits = EPOLLONESHOT | EPOLLET | EPOLLWAKEUP | EPOLLEXCLUSIVE;

}  // namespace

// select.c, do_pollfd(): polls first and filters afterwards, so the poll takes the flag even if it
// requested other events.
int do_poll(std::span<pollfd> fds) {
  int ready = 0;
  for (pollfd& fd : fds) {
    const unsigned filter = static_cast<__u16>(fd.events) | kAlways;
    fd.revents = static_cast<short>(perf_poll(*fd.event) & filter);
    if (fd.revents != 0) ++ready;
  }
  return ready;
}

struct eventpoll::epitem final : wait_queue_entry {
  eventpoll* ep = nullptr;
  perf_event* event = nullptr;  // the target: this event, or `inner`
  eventpoll* inner = nullptr;
  __u32 events = 0;
  __u64 data = 0;
  bool linked = false;  // on ep's rdllist

  const void* target() const { return event != nullptr ? static_cast<const void*>(event) : inner; }
  std::vector<wait_queue_entry*>& queue() const {
    return event != nullptr ? event->waitq : inner->poll_wait_;
  }
  // eventpoll.c, ep_item_poll().
  unsigned poll() const {
    return (event != nullptr ? perf_poll(*event) : inner->poll()) & (events | kAlways);
  }
  // eventpoll.c, ep_poll_callback(). An item that ONESHOT has disabled stays disabled. An inner
  // instance wakes with EPOLLIN (ep_poll_safewake()). A perf event wakes without saying for which
  // event.
  void wake() override {
    if ((events & ~kPrivateBits) == 0) return;
    if (inner != nullptr && (events & EPOLLIN) == 0) return;
    ep->make_ready(*this);
  }
};

eventpoll::eventpoll() = default;

eventpoll::~eventpoll() {
  for (const auto& item : items_) std::erase(item->queue(), item.get());
}

void eventpoll::make_ready(epitem& item) {
  if (!item.linked) {
    item.linked = true;
    rdllist_.push_back(&item);
  }
  for (wait_queue_entry* const entry : poll_wait_) entry->wake();
}

// eventpoll.c, __ep_eventpoll_poll(): ready if any listed item is. Drops unready items from the
// list up to the first ready one.
unsigned eventpoll::poll() {
  while (!rdllist_.empty()) {
    epitem& item = *rdllist_.front();
    if (item.poll() != 0) return EPOLLIN | EPOLLRDNORM;
    item.linked = false;
    rdllist_.pop_front();
  }
  return 0;
}

int eventpoll::add(perf_event& target, __u32 events, __u64 data) {
  auto item = std::make_unique<epitem>();
  item->event = &target;
  item->events = events | kAlways;
  item->data = data;
  return insert(std::move(item));
}

int eventpoll::add(eventpoll& target, __u32 events, __u64 data) {
  auto item = std::make_unique<epitem>();
  item->inner = &target;
  item->events = events | kAlways;
  item->data = data;
  return insert(std::move(item));
}

// eventpoll.c, ep_insert(): polls the target, which takes the flag (K28).
int eventpoll::insert(std::unique_ptr<epitem> item) {
  if (find(item->target()) != items_.end()) return -EEXIST;
  epitem& added = *item;
  added.ep = this;
  added.queue().push_back(&added);
  items_.push_back(std::move(item));
  if (added.poll() != 0) make_ready(added);
  return 0;
}

std::list<std::unique_ptr<eventpoll::epitem>>::iterator eventpoll::find(const void* target) {
  return std::ranges::find_if(items_, [=](const auto& item) { return item->target() == target; });
}

// eventpoll.c, ep_modify(): also polls. It wakes no waiter if the item was already on the list.
int eventpoll::modify(const void* target, __u32 events, __u64 data) {
  const auto found = find(target);
  if (found == items_.end()) return -ENOENT;
  epitem& item = **found;
  item.events = events | kAlways;
  item.data = data;
  if (item.poll() != 0 && !item.linked) make_ready(item);
  return 0;
}

int eventpoll::remove(const void* target) {
  const auto found = find(target);
  if (found == items_.end()) return -ENOENT;
  std::erase((*found)->queue(), found->get());
  std::erase(rdllist_, found->get());
  items_.erase(found);
  return 0;
}

// eventpoll.c, ep_send_events(). A level-triggered item is reported and put back on the list. The
// next call polls it again and finds the flag gone (K27).
std::size_t eventpoll::wait(std::span<epoll_event> ready) {
  std::list<epitem*> txlist = std::exchange(rdllist_, {});
  std::size_t count = 0;
  while (!txlist.empty() && count < ready.size()) {
    epitem& item = *txlist.front();
    txlist.pop_front();
    item.linked = false;
    const unsigned revents = item.poll();
    if (revents == 0) continue;
    ready[count].events = revents;
    ready[count].data.u64 = item.data;
    ++count;
    if ((item.events & EPOLLONESHOT) != 0) {
      item.events &= kPrivateBits;
    } else if ((item.events & EPOLLET) == 0) {
      item.linked = true;
      rdllist_.push_back(&item);
    }
  }
  rdllist_.splice(rdllist_.begin(), txlist);  // items for which `ready` had no room
  return count;
}

EventfdWaiter::EventfdWaiter(perf_file event, int eventfd)
    : event_{std::move(event)}, eventfd_{eventfd} {
  event_->waitq.push_back(this);
}

EventfdWaiter::~EventfdWaiter() {
  std::erase(event_->waitq, this);
}

void EventfdWaiter::wake() {
  const __u64 one = 1;
  // write() fails only if the counter is full, and then the waiter is awake.
  [[maybe_unused]] const ssize_t written = ::write(eventfd_, &one, sizeof(one));
}

}  // namespace perfring::kernel
