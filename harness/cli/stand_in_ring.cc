#include "harness/cli/stand_in_ring.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <span>
#include <thread>
#include <utility>

#include "harness/cli/producer.h"
#include "harness/kernel/bpf_output.h"
#include "harness/oracle/payload.h"

namespace perfring::cli {
namespace {

constexpr auto kPauseWhenFull = std::chrono::microseconds{50};

script::Settings settings_of(const LiveOptions& options, std::uint32_t watermark) {
  script::Settings settings{.pages = options.pages};
  settings.watermark = watermark != 0;
  if (settings.watermark) settings.wakeup = watermark;
  return settings;
}

}  // namespace

StandInRing::StandInRing(std::uint32_t cpu, const LiveOptions& options, std::uint32_t watermark,
                         int eventfd)
    : cpu_id_{cpu},
      // Long enough to say who they are.
      payload_{std::max<std::uint32_t>(options.payload.min, oracle::kSelfDescribing),
               std::max<std::uint32_t>(options.payload.max, oracle::kSelfDescribing)},
      simulated_{settings_of(options, watermark), {.cpu = static_cast<int>(cpu), .ids = {cpu + 1}}},
      waiter_{simulated_.file(), eventfd},
      ledger_{simulated_.rb().data_size(), oracle::Ledger::Keep::Totals},
      checker_{simulated_.page(), simulated_.data(), cpu},
      ring_{*Ring<>::over(simulated_.page(), simulated_.data())},
      cpu_{ledger_},
      buffer_(payload_.max) {
  cpu_.id = static_cast<int>(cpu);
}

void StandInRing::start() {
  thread_ = std::async(std::launch::async, [this] { write(); });
}

void StandInRing::stop() {
  stopping_ = true;
  if (thread_.valid()) thread_.get();
}

int StandInRing::output() {
  const std::uint32_t span = payload_.max - payload_.min + 1;
  const auto length = payload_.min + static_cast<std::uint32_t>(sequence_ * 2654435761 % span);
  const oracle::Payload payload{sequence_++, cpu_id_, length};
  const std::span<std::byte> bytes = std::span{buffer_}.first(length);
  oracle::fill(bytes, payload);
  ledger_.begins(payload);
  const int rc = kernel::bpf_perf_event_output(cpu_, simulated_.map(), BPF_F_CURRENT_CPU, bytes);
  ledger_.ends(rc);
  return rc;
}

// When the ring is full it pauses for a moment, as the live kernel's producers do: a busy producer
// would leave the consumer no time to catch up.
void StandInRing::write() {
  run_on({cpu_id_});
  while (!stopping_.load(std::memory_order_relaxed)) {
    if (output() == -ENOSPC) std::this_thread::sleep_for(kPauseWhenFull);
  }
}

void StandInRing::flush() {
  if (ledger_.unreported() != 0) output();
}

std::uint64_t StandInRing::drain() {
  const std::uint64_t before = checker_.received().bytes;
  checker_.drain_begins();
  ring_.for_each([this](const PerfEvent& event) { checker_.delivered(event); });
  checker_.drain_ends();
  return checker_.received().bytes - before;
}

}  // namespace perfring::cli
