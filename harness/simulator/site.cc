#include "harness/simulator/site.h"

#include <sys/epoll.h>

#include <memory>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "harness/oracle/invariant.h"
#include "harness/oracle/payload.h"
#include "harness/simulator/settings.h"
#include "perfring/perf_event.h"

namespace perfring::simulator {
namespace {

// A payload above kIntactMax is written past its reservation.
bool may_be_poisoned(const World& world) {
  return world.sound_writers && world.settings.hostile == 0 &&
         world.settings.payload_max <= kIntactMax;
}

// `keys`: the keys of the ring's payloads. Sets `merged` if the result is the judge of a merge.
std::unique_ptr<Judge> judge_of(World& world, const perf_event_mmap_page& page, Bytes data,
                                oracle::Ledger& ledger, const std::vector<std::uint64_t>& keys,
                                MergeJudge*& merged) {
  if (world.settings.hostile != 0) return judge_of_hostile_ring(page, data);
  if (world.settings.rings != kMerged) return judge_by_ledger(page, data, ledger);
  MergeClock clock{
      [&world] { return world.clock(); },
      [&keys](std::uint64_t sequence) { return keys[static_cast<std::size_t>(sequence)]; }};
  auto judge = judge_of_merge(page, data, ledger, world.order, std::move(clock));
  merged = judge.get();
  return judge;
}

std::uint64_t draw_clock_lag(World& world) {
  if (world.settings.skew_max == 0) return 0;
  return world.scheduler.random().between(0, static_cast<std::uint32_t>(world.settings.skew_max));
}

}  // namespace

Site::Site(World& world, int cpu)
    : world_{world},
      cpu_{cpu},
      ring_{world.settings.ring, {.cpu = cpu, .ids = {static_cast<std::uint64_t>(cpu) + 1}}},
      ledger_{rb().data_size(), oracle::Ledger::Keep::Records, world.settings.ring.start,
              world.settings.ring.word == kernel::Word::k32 ? 32U : 64U},
      poison_{data(), may_be_poisoned(world)},
      drains_{page(), data(), judge_of(world, page(), data(), ledger_, keys_, merged_), poison_,
              world.digest},
      clock_lag_{draw_clock_lag(world)},
      waking_event_{ring_.file()},
      announces_each_{announces_each(world.settings) && world.settings.hostile == 0} {
  event().waitq.push_back(this);
  if (world.settings.latency != 0) quiet_event_ = open_beside(/*quiet=*/true);
}

Site::~Site() {
  std::erase(event().waitq, this);
}

void Site::begin_attempt(const oracle::Payload& payload) {
  interrupted_ = ledger_.in_progress() != 0;
  ledger_.begin_attempt(payload);
}

void Site::stamp_next_payload() {
  const std::uint64_t now = world_.clock();
  keys_.push_back(now > clock_lag_ ? now - clock_lag_ : 0);
}

// perf_output_get_handle() counts itself as a writer, and then notes rb->wakeup. If an interrupt
// adds a record in between and the writer is then refused, neither announces that record.
void Site::end_attempt(int rc) {
  ledger_.end_attempt(rc);
  if (ledger_.in_progress() == 0 && interrupted_ && rc != 0) gap_before_drain_ = drains_.count();
}

void Site::note_reservation(std::uint64_t position, std::size_t size) {
  ledger_.note_reservation(position, size, judge().released());
  poison_.note_reservation(position, size);
}

void Site::run_irq_work() {
  if (!std::exchange(irq_work_, false)) return;
  kernel::perf_pending_irq(event());
}

void Site::stop_consumer() {
  for (;;) consumer_->sleep_until(kNever);
}

bool Site::readable() const {
  return static_cast<std::uint32_t>(page().data_head) !=
         static_cast<std::uint32_t>(page().data_tail);
}

// select.c, do_poll(): joins the wait queue before the first poll, so that no wakeup is missed.
void Site::wait(std::uint64_t timeout) {
  const std::uint64_t deadline = timeout == 0 ? kNever : world_.scheduler.now() + timeout;
  waiting_ = true;
  while (!world_.consumers_end()) {
    woken_ = false;
    consumer_step();
    if (kernel::perf_poll(event()) != 0) {
      ++wakeups_;
      break;
    }
    consumer_step();
    if (world_.scheduler.now() >= deadline) break;
    if (!woken_) consumer_->sleep_until(deadline);
  }
  waiting_ = false;
}

void Site::begin_sleep(std::uint64_t deadline) {
  waiting_ = true;
  sleep_deadline_ = deadline;
}

bool Site::poll() {
  consumer_step();
  if (kernel::perf_poll(event()) == 0) return false;
  ++wakeups_;
  return true;
}

kernel::perf_file Site::open_beside(bool quiet) {
  perf_event_attr attr = event().attr;
  if (quiet) {
    attr.watermark = 1;
    attr.wakeup_watermark = 1;  // any value: the ring keeps its own watermark, half its size (K30)
  }
  const std::uint64_t id = static_cast<std::uint64_t>(cpu_) + 1 + world_.settings.cpus * ++opened_;
  return ring_.open_beside(attr, id);
}

void Site::fill_entry(Wakeups wakeups) {
  entry_ = wakeups;
  entered_at_ = world_.scheduler.now();
  if (!offline_) ring_.enter(wakeups == Wakeups::None ? quiet_event_ : waking_event_);
}

void Site::go_offline() {
  run_irq_work();
  kernel::perf_event_exit_cpu(*waking_event_);
  if (quiet_event_ != nullptr) kernel::perf_event_exit_cpu(*quiet_event_);
  offline_ = changed_ = true;
  wake();
}

void Site::come_online() {
  offline_ = false;
  changed_ = true;
  wake();
}

void Site::revive() {
  waking_event_ = open_beside(/*quiet=*/false);
  if (quiet_event_ != nullptr) quiet_event_ = open_beside(/*quiet=*/true);
  fill_entry(entry_);
}

void Site::wake() {
  woken_ = true;
  if (waiting_ && consumer_ != nullptr) consumer_->wake();
}

// A record in the kernel's gap excuses the kernel until the next drain, which sees the record.
void Site::check_awake() {
  const bool excused = gap_before_drain_ == drains_.count();
  if (!announces_each_ || !waiting_ || woken_ || irq_work_ || excused) return;
  if (!consumer_->asleep(world_.scheduler.now())) return;
  if (world_.settings.latency != 0) return check_deadline();
  const bool unseen = merged_ == nullptr ? readable() : drains_.has_unseen_data();
  if (unseen) {
    judge().violate(
        oracle::Invariant::awake,
        fmt::format(
            "the consumer waits for a wakeup although {} unread records will not be announced",
            ledger_.pending()));
  }
  if (merged_ != nullptr && merged_->has_undelivered() && sleep_deadline_ == kNever) {
    judge().violate(oracle::Invariant::awake,
                    "the consumer waits for a wakeup although it holds records back");
  }
}

// Without wakeups the consumer must come by itself within the latency. It must also do so if
// wakeups were enabled less than the latency ago, because a program may have read the map entry
// earlier (W28).
void Site::check_deadline() {
  const std::uint64_t now = world_.scheduler.now();
  const std::uint64_t latency = world_.settings.latency;
  const bool needs_deadline = entry_ == Wakeups::None || now - entered_at_ < latency;
  if (!needs_deadline || !readable() || sleep_deadline_ <= now + latency) return;
  judge().violate(oracle::Invariant::awake,
                  fmt::format("the consumer sleeps for {} steps more although an unread record "
                              "will not be announced, with a latency of {}",
                              sleep_deadline_ - now, latency));
}

}  // namespace perfring::simulator
