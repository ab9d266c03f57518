#include "fuzz/script_run.h"

#include <fmt/format.h>

#include <cstring>
#include <stdexcept>

#include "harness/script/simulated_kernel.h"

namespace perfring::fuzz {
namespace {

using script::Action;
using script::Script;
using script::Step;

constexpr std::size_t kPage = 4096;

// Kept from one run to the next.
std::span<std::byte> memory(std::size_t pages) {
  static std::vector<std::byte> bytes;  // aligned, as whatever operator new returns
  bytes.assign((1 + pages) * kPage, std::byte{});
  return bytes;
}

std::vector<kernel::perf_file> open_events(const script::Settings& settings) {
  std::vector<kernel::perf_file> events;
  for (std::uint64_t i = 0; i < settings.events; ++i) {
    events.push_back(kernel::perf_event_open(script::attr_of(settings), 0, settings.word).value());
  }
  return events;
}

Bytes data_of(const kernel::perf_mapping& mapping) {
  return {mapping.rb().data_pages, static_cast<std::size_t>(mapping.rb().data_size())};
}

}  // namespace

ScriptRun::ScriptRun(const Script& script)
    : script_{script},
      events_{open_events(script.settings)},
      mapping_{
          kernel::perf_mmap(events_[0], memory(static_cast<std::size_t>(script.settings.pages)))
              .value()},
      ledger_{mapping_.rb().data_size(), oracle::Ledger::Keep::Records,
              (kernel::start_at(mapping_.rb(), script.settings.start), script.settings.start),
              script.settings.word == kernel::Word::k32 ? 32U : 64U},
      checker_{*mapping_.rb().user_page, data_of(mapping_), ledger_},
      ring_{*Ring<WatchedMemory>::over(*mapping_.rb().user_page, data_of(mapping_))},
      done_(script.steps.size()) {
  cpu_.run = this;
  WatchedMemory::run = this;
  for (std::uint32_t i = 0; i < events_.size(); ++i) {
    const bool good =
        (i == 0 || kernel::perf_event_set_output(*events_[i], events_[0].get()) == 0) &&
        map_.update_elem(i, events_[i]) == 0 &&
        epoll_.add(*events_[i], script::epoll_events(script.settings.epoll), i) == 0;
    if (!good) throw std::logic_error{"an event's registration"};
  }
}

ScriptRun::~ScriptRun() {
  WatchedMemory::run = nullptr;
}

std::optional<std::string> ScriptRun::run() {
  for (std::size_t i = 0; i < script_.steps.size() && !stopped(); ++i) {
    if (script_.steps[i].depth == 0) perform(i);
  }
  if (!stopped()) settle();
  if (violation_ || !checker_.violation()) return violation_;
  const oracle::Violation& violation = *checker_.violation();
  return fmt::format("{}: {}", to_string(violation.invariant), violation.message);
}

void ScriptRun::perform(std::size_t index) {
  const std::vector<Step>& steps = script_.steps;
  std::size_t end = index + 1;
  while (end < steps.size() && steps[end].depth > steps[index].depth) ++end;
  frames_[depth_++] = {.step = index, .end = end};
  act(steps[index]);
  nested(std::nullopt);
  --depth_;
}

// Carries out what is nested in the step under way and waits for this moment; or, without one, for
// any.
void ScriptRun::nested(std::optional<std::uint64_t> moment) {
  Frame& frame = frames_[depth_ - 1];
  const std::uint64_t depth = script_.steps[frame.step].depth + 1;
  for (std::size_t i = frame.step + 1; i < frame.end && !stopped(); ++i) {
    const Step& step = script_.steps[i];
    if (step.depth != depth || done_[i] || (moment && step.at != *moment)) continue;
    done_[i] = true;
    frame.interrupted = true;
    perform(i);
  }
}

void ScriptRun::moment() {
  Frame& frame = frames_[depth_ - 1];
  const std::uint64_t moment = frame.moment++;
  if (frame.step + 1 != frame.end) nested(moment);  // most steps have nothing nested in them
}

void ScriptRun::act(const Step& step) {
  switch (step.action) {
    case Action::Output:
      return output(step);
    case Action::Drain:
    case Action::Throw:
      return drain(step);
    case Action::Poll:
      return poll(step.second);
    case Action::Epoll: {
      std::array<epoll_event, 2> ready{};
      epoll_.wait(ready);
      readable_.reset();
      return;
    }
    case Action::Rearm:
      epoll_.modify(events_[0].get(), script::epoll_events(script_.settings.epoll), 0);
      readable_.reset();
      return;
    case Action::Pause:
    case Action::Resume:
      kernel::perf_event_pause_output(*events_[0], step.action == Action::Pause);
      return;
    case Action::Disable:
      return kernel::perf_event_disable(*events_[0]);
    case Action::Enable:
      return kernel::perf_event_enable(*events_[0]);
    case Action::Tail:
      break;
  }
  throw std::logic_error{"a step that no honest consumer takes"};
}

void ScriptRun::output(const Step& step) {
  static std::array<std::vector<std::byte>, script::kDepthMax + 1> buffers;
  std::vector<std::byte>& buffer = buffers[depth_ - 1];
  if (buffer.empty()) buffer.resize(script::kOutputMax);
  const auto bytes = std::span{buffer}.first(static_cast<std::size_t>(step.number));
  const oracle::Payload payload{sequence_++, 0, static_cast<std::uint32_t>(step.number)};
  oracle::fill(bytes, payload);
  ledger_.begins(payload);
  const int rc = emit(map_.map(), step.second ? 1 : 0, bytes);
  ledger_.ends(rc);
  if (readable_ == true) return;
  // With these settings each record is told of (K30). Who interrupts another leaves it to that one,
  // which tells of it even if it is refused itself; and what is told may be taken in between.
  const bool told = script_.settings.wakeup == 1 && !script_.settings.watermark;
  const bool alone = depth_ == 1 && !frames_[0].interrupted;
  if (!alone) {
    readable_.reset();
  } else if (rc == 0) {
    readable_ = told ? std::optional{true} : std::nullopt;
  }
}

int ScriptRun::emit(const kernel::bpf_array& map, __u64 index, std::span<const std::byte> payload) {
  return kernel::bpf_perf_event_output(cpu_, map, index, payload);
}

bool ScriptRun::readable() const {
  return ring_.readable();
}

void ScriptRun::try_fold(const Visit& visit) {
  static_cast<void>(ring_.try_fold(Unit{}, visit));
}

void ScriptRun::drain(const Step& step) {
  if (checker_.in_drain() || step.number == 0) return;
  std::uint64_t events = 0;
  checker_.drain_begins();
  try {
    try_fold([&](Unit, const PerfEvent& event) -> ControlFlow<> {
      deliver(event);
      if (stopped()) return Break{};
      if (++events != step.number) return Continue{};
      if (step.action == Action::Throw) throw Thrown{};
      return Break{};
    });
  } catch (const Thrown&) {
  }
  checker_.drain_ends();
}

void ScriptRun::deliver(const PerfEvent& event) {
  checker_.delivered(event);
  if (stopped()) return;
  moment();
  checker_.finished_with(event);
}

void ScriptRun::poll(bool second) {
  kernel::pollfd fd{events_[second ? 1 : 0].get(), EPOLLIN | EPOLLRDNORM, 0};
  kernel::do_poll({&fd, 1});
  const bool in = fd.revents != 0;
  const bool output_under_way = ledger_.in_progress() != 0;  // which may have told already
  if (!output_under_way && readable_ && in != *readable_) {
    violate(fmt::format("awake: poll says {}, which is not so", in ? "IN" : "nothing"));
  }
  readable_ = false;
}

// The writer is done. Is everything there?
void ScriptRun::settle() {
  const Step all{.action = Action::Drain, .number = ~std::uint64_t{0}};
  frames_[depth_++] = {.step = script_.steps.size() - 1};  // in which nothing is nested
  for (int drains = 0; !script_.steps.empty() && readable() && !stopped(); ++drains) {
    if (drains == 2) violate("bounded: two drains of an idle ring have not emptied it");
    drain(all);
  }
  --depth_;
  checker_.settle();
}

void ScriptRun::refused() {
  const Frame& frame = frames_[depth_ - 1];
  const auto why = ledger_.unfounded({.length = script_.steps[frame.step].number,
                                      .unread = frame.unread,
                                      .paused = mapping_.rb().paused.load(),
                                      .interrupted = frame.interrupted});
  if (why) violate("no_loss: " + *why);
  ledger_.refused();
}

void ScriptRun::published(std::uint64_t data_head) {
  if (data_head % 8 != 0) violate(fmt::format("data_head {:#x} was published", data_head));
  ledger_.published(data_head);
}

void ScriptRun::read(const std::byte* address, std::size_t size) {
  const auto& data_tail = mapping_.rb().user_page->data_tail;
  if (address != reinterpret_cast<const std::byte*>(&data_tail)) checker_.reads(address, size);
}

void ScriptRun::violate(std::string message) {
  if (!violation_) violation_ = std::move(message);
}

}  // namespace perfring::fuzz
