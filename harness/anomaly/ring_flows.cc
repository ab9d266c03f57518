#include <bpf/bpf.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <expected>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "harness/anomaly/flows.h"
#include "harness/live/emitter.h"
#include "harness/live/live_kernel.h"
#include "perfring/os/cpus.h"
#include "perfring/os/syscalls.h"
#include "perfring/perfring.h"
#include "perfring/rings/ring_set.h"
#include "perfring/rings/ring_set_options.h"
#include "perfring/snapshot/overwritable_ring.h"
#include "perfring/wait/waiter.h"

namespace perfring::anomaly {
namespace {

using std::chrono::milliseconds;
using Clock = Waiter::Clock;

// The payload's size. A hundred of these overflow a ring of one page.
constexpr std::size_t kSize = 64;

// BPF programs that output. They take the place of a tool's own programs.
struct Output {
  live::Emitter emitter;
  std::vector<std::uint32_t> cpus;
  PerfEventArray array;
  std::uint64_t attempted = 0;
  // CPUs whose map entries outlive the flow, as PerfEventArrayBuffer and RingSet document.
  std::vector<std::uint32_t> may_stay{};

  std::uint32_t cpu() const { return cpus.front(); }
  void stays(std::uint32_t of) {
    const Outside nothing_fails;
    may_stay.push_back(of);
  }
  void emit(std::uint32_t on, std::uint32_t count) {
    const Outside nothing_fails;
    emitter.emit_many(on, kSize, count, attempted);
    attempted += count;
  }
  void emit(std::uint32_t count) { emit(cpu(), count); }

  void forget() { attempted = 0; }
  // Lists and deletes the events left in the map. An output to a CPU without an entry returns
  // -ENOENT; one to a dead event returns -EOPNOTSUPP.
  std::string entries() {
    std::string found;
    for (const std::uint32_t each : cpus) {
      const bool may = std::ranges::find(may_stay, each) != may_stay.end();
      if (emitter.emit(each, kSize) != -ENOENT && !may)
        found += "entry of CPU " + std::to_string(each) + " ";
      ::bpf_map_delete_elem(emitter.map_fd(), &each);
    }
    return found;
  }
};

std::shared_ptr<Output> output() {
  if (const auto why = live::why_no_live_kernel()) throw std::runtime_error{*why};
  auto emitter = live::Emitter::create();
  if (!emitter) throw std::runtime_error{emitter.error()};
  auto cpus = os::online_cpus();
  if (!cpus) throw std::runtime_error{cpus.error().message()};
  auto array = PerfEventArray::from_fd(emitter->map_fd());
  if (!array) throw std::runtime_error{array.error().message()};
  return std::make_shared<Output>(Output{*std::move(emitter), *std::move(cpus), *std::move(array)});
}

Prepared prepared(const std::shared_ptr<Output>& output, std::function<FlowResult()> run) {
  return {.run = std::move(run), .left = [output] { return output->entries(); }};
}

// Adds up the events that a drain delivers.
struct Tally {
  Account& account;
  void operator()(const PerfEvent& event) const {
    if (std::holds_alternative<Sample>(event)) ++account.delivered;
    if (const auto* const lost = std::get_if<Lost>(&event)) account.lost += lost->count;
  }
  void operator()(std::uint32_t, const PerfEvent& event) const { (*this)(event); }
};

// Outputs more than the ring has room for, then one more, so that the kernel reports the lost
// count.
template <class Drain>
Account overflow(Output& out, Drain drain) {
  Account account;
  out.forget();
  out.emit(200);
  drain(Tally{account});
  out.emit(1);
  drain(Tally{account});
  account.attempted = out.attempted;
  return account;
}

Prepared open(std::span<const std::string>) {
  auto out = output();
  return prepared(out, [out]() -> FlowResult {
    auto buffer = PerfBuffer::open(out->cpu(), 1);
    if (!buffer) return failure(buffer.error());
    {
      const Outside nothing_fails;
      const auto put = os::bpf_map_update(out->emitter.map_fd(), out->cpu(),
                                          static_cast<std::uint32_t>(buffer->fd()));
      if (!put) throw std::runtime_error{"the map is refused"};
      out->stays(out->cpu());
    }
    return overflow(*out, [&](const Tally& tally) { buffer->for_each(tally); });
  });
}

Prepared map(std::span<const std::string> arguments) {
  auto out = output();
  const std::string pin = arguments.empty() ? "" : arguments.front() + "/pin";
  if (pin.empty()) throw std::runtime_error{"no folder of a bpffs is given"};
  auto flow = prepared(out, [out, pin]() -> FlowResult {
    const auto first = PerfEventArray::from_fd(out->emitter.map_fd());
    if (!first) return failure(first.error());
    if (const auto pinned = first->pin(pin.c_str()); !pinned) return failure(pinned.error());
    auto second = PerfEventArray::from_pin(pin.c_str());
    if (!second) return failure(second.error());
    auto buffer = second->open(out->cpu(), 1);
    if (!buffer) return failure(buffer.error());
    out->stays(out->cpu());
    return overflow(*out, [&](const Tally& tally) { buffer->for_each(tally); });
  });
  flow.left = [left = flow.left, pin] {
    ::unlink(pin.c_str());  // the flow is meant to leave the pin
    return left();
  };
  return flow;
}

Prepared enlist(std::span<const std::string>) {
  auto out = output();
  return prepared(out, [out]() -> FlowResult {
    std::vector<PerfEventArrayBuffer> buffers;
    for (const std::uint32_t cpu : out->cpus) {
      auto buffer =
          out->array.open(cpu, PerfBufferOptions{.page_count = 1, .wakeup_watermark = 512});
      if (!buffer) return failure(buffer.error());
      out->stays(cpu);
      buffers.push_back(*std::move(buffer));
    }
    return overflow(*out, [&](const Tally& tally) {
      for (PerfEventArrayBuffer& each : buffers) each.for_each(tally);
    });
  });
}

Prepared wait(std::span<const std::string>) {
  auto out = output();
  auto opened = out->array.open(out->cpu(), 8);
  if (!opened) throw std::runtime_error{opened.error().message()};
  auto buffer = std::make_shared<PerfEventArrayBuffer>(*std::move(opened));
  return {.run = [out, buffer]() -> FlowResult {
    auto waiter = Waiter::create(milliseconds{100});
    if (!waiter) return failure(waiter.error());
    if (const auto added = waiter->add(buffer->fd()); !added) return failure(added.error());
    Account account;
    out->forget();
    for (int round = 0; round < 3; ++round) {
      out->emit(5);
      waiter->wait(Clock::now() + milliseconds{5});
      buffer->for_each(Tally{account});
    }
    waiter->stop();
    if (waiter->wait() != Woken::Stop)
      return std::unexpected("a wait after stop() did not return Stop");
    buffer->for_each(Tally{account});
    account.attempted = out->attempted;
    return account;
  }};
}

Prepared drain(std::span<const std::string>) {
  auto out = output();
  auto opened = out->array.open(out->cpu(), 1);
  if (!opened) throw std::runtime_error{opened.error().message()};
  auto buffer = std::make_shared<PerfEventArrayBuffer>(*std::move(opened));
  return {.run = [out, buffer]() -> FlowResult {
    return overflow(*out, [&](const Tally& tally) { buffer->for_each(tally); });
  }};
}

// Returns the CPUs of a set, without a CPU that has just gone offline. The entries of all stay.
std::vector<std::uint32_t> own(Output& out, const RingSet& set) {
  const Outside nothing_fails;
  std::vector<std::uint32_t> cpus;
  for (std::size_t i = 0; i < set.rings(); ++i) cpus.push_back(set.cpu(i));
  out.may_stay = cpus;
  return cpus;
}

Prepared flush(std::span<const std::string>) {
  auto out = output();
  return prepared(out, [out]() -> FlowResult {
    auto set = RingSet::open(out->array, {.page_count = 1});
    if (!set) return failure(set.error());
    const std::vector<std::uint32_t> cpus = own(*out, *set);
    Account account;
    out->forget();
    for (const std::uint32_t count : {200U, 1U}) {
      for (const std::uint32_t cpu : cpus) out->emit(cpu, count);
      const auto flushed = set->flush(Flush::Complete, Tally{account});
      if (!flushed) return failure(flushed.error());
    }
    account.attempted = out->attempted;
    return account;
  });
}

// A tool's event loop, while a CPU goes offline and comes back.
Prepared revive(std::span<const std::string>) {
  auto out = output();
  return prepared(out, [out]() -> FlowResult {
    auto set = RingSet::open(out->array, {.page_count = 1, .latency = milliseconds{1}});
    if (!set) return failure(set.error());
    const std::vector<std::uint32_t> cpus = own(*out, *set);
    if (cpus.empty()) return Account{};
    Account account;
    out->forget();
    const auto round = [&](std::uint32_t count) {
      out->emit(cpus.front(), count);
      set->wait(Clock::now() + milliseconds{2});
      set->drain(Tally{account});
    };
    round(200);
    if (const auto gone = set->cpu_changed(cpus.front(), false); !gone)
      return failure(gone.error());
    round(5);
    if (const auto back = set->cpu_changed(cpus.front(), true); !back) {
      // The ring continues with its old event.
      round(1);
      if (account.delivered + account.lost != out->attempted)
        return std::unexpected("records are lost by a failure");
      return failure(back.error());
    }
    round(200);
    round(1);
    account.attempted = out->attempted;
    return account;
  });
}

Prepared snapshot(std::span<const std::string>) {
  auto out = output();
  return prepared(out, [out]() -> FlowResult {
    auto ring = OverwritableRing::open(out->array, out->cpu(), 8);
    if (!ring) return failure(ring.error());
    out->stays(out->cpu());
    Account account;
    out->forget();
    out->emit(10);
    const auto quick = ring->snapshot(Settle::Quickly, Tally{account});
    if (!quick) return failure(quick.error());
    out->emit(10);
    const auto complete = ring->snapshot(Settle::Completely, Tally{account});
    if (!complete) return failure(complete.error());
    // A margin of three records.
    out->emit(10);
    if (!ring->copy(3 * 2 * kSize, Tally{account})) return std::unexpected("a copy of nothing");
    account.attempted = out->attempted;
    return account;
  });
}

constexpr Flow kFlows[]{{"open", open},     {"map", map},          {"register", enlist},
                        {"wait", wait},     {"drain", drain},      {"flush", flush},
                        {"revive", revive}, {"snapshot", snapshot}};

}  // namespace

std::span<const Flow> ring_flows() {
  return kFlows;
}

}  // namespace perfring::anomaly
