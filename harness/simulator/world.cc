#include "harness/simulator/world.h"

#include <sys/epoll.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "harness/simulator/sanitizers.h"

namespace perfring::simulator {
namespace {

kernel::perf_file open_event(const Settings& settings, int cpu) {
  const perf_event_attr attr = kernel::bpf_output_attr(static_cast<__u32>(settings.watermark),
                                                       static_cast<__u32>(settings.wakeup_events));
  const auto word = settings.word_bits == 32 ? kernel::Word::k32 : kernel::Word::k64;
  auto event = kernel::perf_event_open(attr, cpu, word);
  if (!event) throw std::logic_error{"perf_event_open of the simulated kernel"};
  (*event)->id = static_cast<__u64>(cpu) + 1;  // the same in every run
  return *std::move(event);
}

kernel::perf_mapping map_ring(const kernel::perf_file& event, const kernel::RingMemory& memory,
                              std::uint64_t start) {
  auto mapping = kernel::perf_mmap(event, memory.bytes());
  if (!mapping) throw std::logic_error{"perf_mmap of the simulated kernel"};
  kernel::start_at(mapping->rb(), start);
  return *std::move(mapping);
}

// One array of entries for each CPU, as programs with BPF_F_CURRENT_CPU have them.
std::shared_ptr<kernel::bpf_array> borrowed(kernel::bpf_array& map) {
  return {std::shared_ptr<kernel::bpf_array>{}, &map};
}

}  // namespace

Site::Site(World& in, int number)
    : world{in},
      cpu{number},
      map{static_cast<__u32>(number) + 1},
      map_file{borrowed(map)},
      memory{static_cast<std::size_t>(world.settings.pages), kernel_page_size},
      event{open_event(world.settings, number)},
      mapping{map_ring(event, memory, world.settings.start)},
      ledger{mapping.rb().data_size(), oracle::Ledger::Keep::Records, world.settings.start,
             static_cast<unsigned>(world.settings.word_bits)},
      checker{page(), data(), ledger},
      watch_{page(), data()} {
  map_file.update_elem(static_cast<__u32>(cpu), event);
  event->waitq.push_back(this);
  if (poisons()) poison(data().data(), data().size());
}

Site::~Site() {
  std::erase(event->waitq, this);
  unpoison(data().data(), data().size());
}

bool Site::poisons() const {
  return kPoisons && world.sound_writers && !hostile() && world.settings.payload_max <= 65516;
}

void Site::begins(const oracle::Payload& payload) {
  interrupted_ = ledger.in_progress() != 0;
  ledger.begins(payload);
}

// perf_output_get_handle() counts itself as a writer, and then notes rb->wakeup. A record that an
// interrupt adds between the two is announced by neither, if the writer is then refused.
void Site::ends(int rc) {
  ledger.ends(rc);
  if (ledger.in_progress() == 0 && interrupted_ && rc != 0) unannounced_ = true;
}

void Site::reserved(std::uint64_t position, std::size_t size) {
  ledger.reserved(position, size, checker.released());
  if (!poisons()) return;
  const auto from = static_cast<std::size_t>(position % data().size());
  const std::size_t before_end = std::min<std::size_t>(size, data().size() - from);
  unpoison(data().data() + from, before_end);
  unpoison(data().data(), size - before_end);
}

void Site::run_irq_work() {
  if (!std::exchange(irq_work_, false)) return;
  kernel::perf_pending_irq(*event);
}

void Site::drain_begins() {
  ++world.drains;
  reads_ = 0;
  unannounced_ = false;
  head_seen_.reset();
  tail_before_ = checker.released();
  hostile() ? watch_.begins() : checker.drain_begins();
}

void Site::saw_head(std::uint32_t head) {
  if (!head_seen_) head_seen_ = head;
}

void Site::delivered(const PerfEvent& given) {
  reads_ = 0;
  if (hostile()) {
    watch_.event(given);
    hostile_.delivered += std::holds_alternative<Sample>(given) ? 1 : 0;
    hostile_.malformed += std::holds_alternative<Malformed>(given) ? 1 : 0;
  } else {
    checker.delivered(given);
  }
  if (!violation()) note(given);
}

// Of a hostile ring's bytes, or spoiled ones, only how many they are: what they say is another
// thing on a machine of the other byte order.
void Site::note(const PerfEvent& given) {
  Digest& digest = world.digest;
  const bool unknown = hostile() || checker.astray();
  digest.add(given.index());
  if (const auto* sample = std::get_if<Sample>(&given)) {
    digest.add(sample->head.size());
    digest.add(sample->tail.size());
    if (const auto claim = unknown ? std::nullopt : oracle::claimed(*sample)) {
      digest.add(claim->sequence);
    }
  } else if (const auto* bad = std::get_if<Malformed>(&given)) {
    digest.add(static_cast<std::uint64_t>(bad->defect));
    digest.add(bad->head.size());
    digest.add(bad->tail.size());
  } else if (!unknown) {
    digest.add(std::get<Lost>(given).count);
  }
}

void Site::drain_ends() {
  reads_ = 0;
  const std::uint64_t tail = page().data_tail;
  world.digest.add(tail);
  if (hostile()) {
    const auto available = static_cast<std::uint32_t>(head_seen_.value_or(0) - watch_.tail());
    watch_.ends(head_seen_ ? std::optional{available} : std::nullopt);
    // Of ring: an impossible position is skipped to, however far off.
    hostile_.bytes += std::min<std::uint64_t>(watch_.moved(), data().size());
    return;
  }
  checker.drain_ends();
  // A writer may still be at work on what a faulty consumer has released.
  if (!poisons() || violation()) return;
  const auto size =
      static_cast<std::size_t>(std::min<std::uint64_t>(tail - tail_before_, data().size()));
  const auto from = static_cast<std::size_t>(tail_before_ % data().size());
  const std::size_t before_end = std::min(size, data().size() - from);
  poison(data().data() + from, before_end);
  poison(data().data(), size - before_end);
}

void Site::stop_endless_consumer() {
  violate(oracle::Invariant::bounded, "the consumer has read " + std::to_string(reads_ - 1) +
                                          " times without delivering an event");
  for (;;) consumer->sleep_until(kNever);
}

bool Site::readable() const {
  return static_cast<std::uint32_t>(page().data_head) !=
         static_cast<std::uint32_t>(page().data_tail);
}

// select.c, do_poll(): on the wait queue before the first look, so that no wakeup is missed.
void Site::wait(std::uint64_t timeout) {
  const std::uint64_t deadline = timeout == 0 ? kNever : world.scheduler.now() + timeout;
  waiting_ = true;
  while (!world.closing && !world.stopping) {
    woken_ = false;
    consumer_step();
    if (kernel::perf_poll(*event) != 0) {
      ++world.wakeups;
      break;
    }
    consumer_step();
    if (world.scheduler.now() >= deadline) break;
    if (!woken_) consumer->sleep_until(deadline);
  }
  waiting_ = false;
}

void Site::wake() {
  woken_ = true;
  if (waiting_ && consumer != nullptr) consumer->wake();
}

void Site::check_awake() {
  if (!waiting_ || woken_ || irq_work_ || unannounced_ || hostile()) return;
  const Settings& settings = world.settings;
  const bool told_of_each = settings.wakeup_events == 1 && settings.watermark == 0;
  if (told_of_each && consumer->asleep(world.scheduler.now()) && readable()) {
    violate(oracle::Invariant::awake, "the consumer waits for a wakeup beside " +
                                          std::to_string(ledger.pending()) +
                                          " records that nobody will announce");
  }
}

void Site::violate(oracle::Invariant invariant, std::string message) {
  if (!violation_) violation_ = oracle::Violation{invariant, std::move(message)};
}

const std::optional<oracle::Violation>& Site::violation() const {
  if (violation_) return violation_;
  return hostile() ? watch_.violation() : checker.violation();
}

}  // namespace perfring::simulator
