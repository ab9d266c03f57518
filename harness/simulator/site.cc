#include "harness/simulator/site.h"

#include <sys/epoll.h>

#include <memory>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace perfring::simulator {
namespace {

script::Settings ring_of(const RunSettings& settings) {
  const bool watermark = settings.watermark != 0;
  return {.word = settings.word_bits == 32 ? kernel::Word::k32 : kernel::Word::k64,
          .pages = settings.pages,
          .watermark = watermark,
          .wakeup = watermark ? settings.watermark : settings.wakeup_events,
          .start = settings.start};
}

// A payload above kIntactMax is written past its reservation.
bool may_be_poisoned(const World& world) {
  return world.sound_writers && world.settings.hostile == 0 &&
         world.settings.payload_max <= kIntactMax;
}

std::unique_ptr<Judge> judge_of(const RunSettings& settings, const perf_event_mmap_page& page,
                                Bytes data, oracle::Ledger& ledger) {
  if (settings.hostile != 0) return judge_of_hostile_ring(page, data);
  return judge_by_ledger(page, data, ledger);
}

}  // namespace

Site::Site(World& world, int cpu)
    : world_{world},
      cpu_{cpu},
      ring_{ring_of(world.settings), {.cpu = cpu, .ids = {static_cast<std::uint64_t>(cpu) + 1}}},
      ledger_{rb().data_size(), oracle::Ledger::Keep::Records, world.settings.start,
              static_cast<unsigned>(world.settings.word_bits)},
      poison_{data(), may_be_poisoned(world)},
      drains_{page(), data(), judge_of(world.settings, page(), data(), ledger_), poison_,
              world.digest},
      announces_each_{world.settings.wakeup_events == 1 && world.settings.watermark == 0 &&
                      world.settings.hostile == 0} {
  event().waitq.push_back(this);
}

Site::~Site() {
  std::erase(event().waitq, this);
}

void Site::begins(const oracle::Payload& payload) {
  interrupted_ = ledger_.in_progress() != 0;
  ledger_.begins(payload);
}

// perf_output_get_handle() counts itself as a writer, and then notes rb->wakeup. A record that an
// interrupt adds between the two is announced by neither, if the writer is then refused.
void Site::ends(int rc) {
  ledger_.ends(rc);
  if (ledger_.in_progress() == 0 && interrupted_ && rc != 0) gap_before_drain_ = drains_.count();
}

void Site::reserved(std::uint64_t position, std::size_t size) {
  ledger_.reserved(position, size, judge().released());
  poison_.reserved(position, size);
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

// select.c, do_poll(): on the wait queue before the first look, so that no wakeup is missed.
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

void Site::wake() {
  woken_ = true;
  if (waiting_ && consumer_ != nullptr) consumer_->wake();
}

// The next drain sees the records that the kernel failed to announce.
void Site::check_awake() {
  const bool excused = gap_before_drain_ == drains_.count();
  if (!announces_each_ || !waiting_ || woken_ || irq_work_ || excused) return;
  if (consumer_->asleep(world_.scheduler.now()) && readable()) {
    judge().violate(
        oracle::Invariant::awake,
        fmt::format("the consumer waits for a wakeup beside {} records that nobody will announce",
                    ledger_.pending()));
  }
}

}  // namespace perfring::simulator
