#include "harness/live/emitter.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <stdexcept>
#include <system_error>
#include <thread>
#include <utility>

#include "harness/live/bpf/emit_object.h"
#include "harness/live/bpf_object.h"
#include "harness/program/affinity.h"

namespace perfring::live {
namespace {

int run(const os::Fd& program, std::uint32_t cpu, std::size_t size, std::uint64_t index,
        std::uint64_t first = 0, std::uint64_t count = 0) {
  if (size > Emitter::kPayloadMax) throw std::invalid_argument("Emitter: payload too large");
  std::array<std::uint64_t, EMIT_ARGUMENTS> arguments{};
  arguments[EMIT_FLAGS] = index;
  arguments[EMIT_SIZE] = size;
  arguments[EMIT_FIRST] = first;
  arguments[EMIT_COUNT] = count;
  const auto returned = test_run(program.get(), cpu, arguments);
  if (!returned) throw std::system_error(returned.error(), "BPF_PROG_TEST_RUN");
  return *returned;
}

}  // namespace

OnCpu::OnCpu(std::uint32_t cpu) {
  if (::sched_getaffinity(0, sizeof(before_), &before_) != 0) {
    throw std::system_error(errno, std::generic_category(), "sched_getaffinity");
  }
  if (!run_on(cpu)) {
    throw std::system_error(errno, std::generic_category(), "sched_setaffinity");
  }
}

OnCpu::~OnCpu() {
  ::sched_setaffinity(0, sizeof(before_), &before_);
}

void await_wakeups() {
  // A sleep also ends with a decrementer interrupt, which makes pending wakeups first (K58).
  if constexpr (kWakeupsComeLater) std::this_thread::sleep_for(std::chrono::microseconds{1});
}

std::expected<Emitter, std::string> Emitter::create(std::uint32_t max_entries) {
  auto object = BpfObject::open(emit_object(), "emit");
  if (!object) return std::unexpected(object.error());
  if (max_entries != 0) {
    if (const auto set = object->set_max_entries("events", max_entries); !set) {
      return std::unexpected(set.error());
    }
  }
  if (const auto loaded = object->load(); !loaded) return std::unexpected(loaded.error());

  auto emit = object->program("emit");
  auto emit_many = object->program("emit_many");
  auto events = object->map("events");
  auto emission = object->map("emission");
  for (const auto* taken : {&emit, &emit_many, &events, &emission}) {
    if (!*taken) return std::unexpected(taken->error());
  }
  auto mapping = os::Mapping::map(emission->get(), sizeof(struct emission));
  if (!mapping) return std::unexpected("mapping the payload: " + mapping.error().message());
  return Emitter{*std::move(emit), *std::move(emit_many), *std::move(events), *std::move(mapping)};
}

emission& Emitter::shared() {
  return *reinterpret_cast<emission*>(emission_.bytes().data());
}

std::span<std::byte> Emitter::payload() {
  return std::as_writable_bytes(std::span(shared().payload));
}

int Emitter::emit(std::uint32_t cpu, std::size_t size, std::uint64_t index) {
  return run(emit_, cpu, size, index);
}

Emitted Emitter::emit_many(std::uint32_t cpu, std::size_t size, std::uint32_t count,
                           std::uint64_t first, std::uint64_t index) {
  shared().accepted = 0;
  shared().refused = 0;
  int last_rc = 0;
  for (std::uint32_t done = 0; done < count;) {
    const std::uint32_t share = std::min<std::uint32_t>(count - done, EMIT_RUN_MAX);
    last_rc = run(emit_many_, cpu, size, index, first + done, share);
    done += share;
  }
  return {shared().accepted, shared().refused, last_rc};
}

}  // namespace perfring::live
