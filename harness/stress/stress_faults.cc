#include "harness/stress/stress_faults.h"

#include <algorithm>

#include "harness/faults/consumer_faults.h"
#include "harness/faults/kernel_faults.h"
#include "harness/faults/planted.h"
#include "harness/kernel/cpu.h"
#include "harness/stress/processes.h"
#include "harness/stress/sleepers.h"
#include "harness/stress/stress_consumer.h"
#include "harness/stress/threads.h"
#include "perfring/ring/default_memory.h"
#include "perfring/ring/ring.h"

namespace perfring::stress {
namespace {

using Right = kernel::HardwareCpu;

constexpr auto plant_kernel = []<template <class> class F>(faults::Named<F> fault) {
  return StressFault{fault.name, {{"threads", threads<F<Right>>}}};
};
constexpr auto plant_memory = []<template <class> class F>(faults::Named<F> fault) {
  return StressFault{fault.name,
                     {{"threads", threads<Right, StressConsumer<Ring<F<DefaultMemory>>>>}}};
};
constexpr auto plant_consumer = []<template <class> class F>(faults::Named<F> fault) {
  return StressFault{fault.name, {{"threads", threads<Right, StressConsumer<F<DefaultMemory>>>}}};
};

std::vector<StressFault> make_planted() {
  auto all = faults::plant_all<StressFault>(plant_kernel, plant_memory, plant_consumer);
  const auto parts = [&](std::string_view name) -> auto& {
    return std::ranges::find(all, name, &StressFault::name)->parts;
  };
  // Only a consumer that sleeps can miss a wakeup or get one too early.
  parts("wakes_nobody") = {{"sleepers", sleepers<faults::WakesNobody<Right>>}};
  parts("wakes_every_second_time") = {{"sleepers", sleepers<faults::WakesEverySecondTime<Right>>}};
  parts("wakes_one_record_late") = {{"sleepers", sleepers<faults::WakesOneRecordLate<Right>>}};
  parts("wakes_before_publishing") = {{"sleepers", sleepers<faults::WakesBeforePublishing<Right>>}};
  parts("sleeps_after_break") = {
      {"sleepers", sleepers<Right, Waits::Documented, faults::SleepsAfterBreak<DefaultMemory>>}};
  all.push_back({"no_first_drain", {{"sleepers", sleepers<Right, Waits::NoFirstDrain>}}});
  all.push_back({"clears_after_drain", {{"sleepers", sleepers<Right, Waits::ClearsAfterDrain>}}});
  parts("publishes_before_writing")
      .push_back({"processes", processes<faults::PublishesBeforeWriting<Right>>});
  parts("publishes_nested").push_back({"processes", processes<faults::PublishesNested<Right>>});
  return all;
}

}  // namespace

std::span<const StressFault> planted_faults() {
  static const std::vector<StressFault> all = make_planted();
  return all;
}

const StressFault* find_planted(std::string_view name) {
  return faults::find_planted(planted_faults(), name);
}

}  // namespace perfring::stress
