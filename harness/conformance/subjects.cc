// The consumers that run in this program.

#include "harness/conformance/subjects.h"

#include <linux/perf_event.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <functional>
#include <memory>
#include <stdexcept>
#include <utility>
#include <variant>

#include "harness/faults/planted.h"
#include "harness/rig/simulated_ring.h"
#include "harness/rig/watched_cpu.h"
#include "perfring/control_flow.h"
#include "perfring/perf_event.h"
#include "perfring/record/decode.h"
#include "perfring/record/layout.h"
#include "perfring/record/sample.h"
#include "perfring/record/whole.h"
#include "perfring/ring/cursor.h"
#include "perfring/ring/memory.h"
#include "perfring/ring/ring.h"

namespace perfring::conformance {
namespace {

using Kind = Wanted::Kind;
using Take = std::function<void(const PerfEvent&)>;

class Consumer {
 public:
  virtual ~Consumer() = default;
  virtual void drain(const Take& take) = 0;
};
using Make = std::unique_ptr<Consumer> (*)(const Vector&, const RingImage&);

template <class C>
class Of final : public Consumer {
 public:
  Of(perf_event_mmap_page& page, Bytes data) : consumer_{*C::over(page, data)} {}
  void drain(const Take& take) override {
    static_cast<void>(consumer_.try_fold(Unit{}, [&](Unit, const PerfEvent& event) {
      take(event);
      return ControlFlow<>{Continue{}};
    }));
  }

 private:
  C consumer_;
};

template <class C>
std::unique_ptr<Consumer> make(const Vector&, const RingImage& image) {
  return std::unique_ptr<Consumer>{new Of<C>(image.page(), image.data())};
}

// Reads with a Cursor, and decodes samples with lib/perfring/record.
class Decoding final : public Consumer {
 public:
  Decoding(const Vector& vector, const RingImage& image)
      : layout_{rig::attr_of(vector.of->settings)},
        cursor_{*Cursor<rig::CheckedMemory>::over(image.page(), image.data())} {}

  void drain(const Take& take) override {
    cursor_.look();
    while (const auto one = cursor_.next()) {
      const bool sample = one->header().type == PERF_RECORD_SAMPLE;
      if (!sample || one->size() != one->header().size) {
        take(one->event());
        continue;
      }
      const Bytes bytes = record::whole(one->head(), one->tail(), scratch_);
      const record::Any any = record::decode(bytes, layout_);
      const auto* const decoded = std::get_if<record::Sample>(&any);
      const auto raw = decoded == nullptr ? std::nullopt : decoded->raw();
      if (raw) {
        take(in_ring(*raw, static_cast<std::size_t>(raw->data() - bytes.data()), *one));
      } else {
        take(Malformed{Defect::BadSample, one->head(), one->tail()});
      }
    }
    cursor_.release();
  }

 private:
  // Returns the raw bytes, which begin at offset `at` in the record, as slices of the ring.
  static Sample in_ring(Bytes raw, std::size_t at, const Cursor<rig::CheckedMemory>::Record& one) {
    if (one.tail().empty()) return {raw, {}};
    const std::size_t before_end = one.head().size();
    if (at >= before_end) return {one.tail().subspan(at - before_end, raw.size()), {}};
    const std::size_t in_head = std::min(raw.size(), before_end - at);
    return {one.head().subspan(at, in_head), one.tail().first(raw.size() - in_head)};
  }

  record::Layout layout_;
  Cursor<rig::CheckedMemory> cursor_;
  std::array<std::byte, record::kRecordMax> scratch_{};
};

// Collects the events that a drain delivers. Checks that the drain stays in the ring and ends.
class Collector final : public rig::MemoryObserver {
 public:
  struct Endless {};

  Collector(const RingImage& image, Cell& cell) : image_{image}, cell_{cell} {}

  std::vector<Event> events;

  void take(const PerfEvent& event) {
    if (events.size() > image_.data().size() / 8) throw Endless{};
    if (const auto* const lost = std::get_if<Lost>(&event)) {
      events.push_back({.kind = Kind::Lost, .lost = lost->count});
    } else if (const auto* const sample = std::get_if<Sample>(&event)) {
      events.push_back({.payload = copy(sample->head, sample->tail)});
    } else {
      const auto& bad = std::get<Malformed>(event);
      copy(bad.head, bad.tail);
      events.push_back({.kind = Kind::Bad});
    }
  }
  void on_read(const std::byte* address, std::size_t size) override {
    const auto* const base = reinterpret_cast<const std::byte*>(&image_.page());
    const auto offset =
        reinterpret_cast<std::uintptr_t>(address) - reinterpret_cast<std::uintptr_t>(base);
    const std::size_t all = 4096 + image_.data().size();
    const bool page = offset < 4096 && is_tail(offset);
    if (page || (offset >= 4096 && offset <= all && size <= all - offset)) return;
    cell_.worsen(CaseOutcome::OutOfBounds, "a read outside the ring");
  }
  void on_commit(SharedPosition) override {}

 private:
  static bool is_tail(std::size_t offset) {
    return offset == offsetof(perf_event_mmap_page, data_tail);
  }
  std::vector<std::byte> copy(Bytes head, Bytes tail) {
    const Bytes data = image_.data();
    for (const Bytes part : {head, tail}) {
      const auto offset = reinterpret_cast<std::uintptr_t>(part.data()) -
                          reinterpret_cast<std::uintptr_t>(data.data());
      if (part.empty() || (offset <= data.size() && part.size() <= data.size() - offset)) continue;
      cell_.worsen(CaseOutcome::OutOfBounds, "a slice that extends outside the ring");
      return {};
    }
    const Sample joined{head, tail};
    std::vector<std::byte> all(joined.size());
    joined.copy_to(all);
    return all;
  }

  const RingImage& image_;
  Cell& cell_;
};

Cell run_in_process(const Vector& vector, Make make_consumer) {
  Cell cell;
  std::vector<RingImage> images = images_of(vector);
  std::vector<std::unique_ptr<Consumer>> consumers;
  for (const RingImage& image : images) consumers.push_back(make_consumer(vector, image));
  std::vector<std::vector<Event>> so_far(images.size());
  const auto turn = [&](const Turn& of) {
    RingImage& image = images[of.cpu];
    image.apply(of);
    const std::uint64_t before = image.page().data_tail;
    Collector collector{image, cell};
    const rig::ObserverScope observing{collector};
    consumers[of.cpu]->drain([&](const PerfEvent& event) { collector.take(event); });
    judge_turn(*vector.of, so_far[of.cpu], of.expected, collector.events, cell);
    judge_tail(*vector.of, {before, image.page().data_head, image.page().data_tail}, cell);
  };
  try {
    for (const Turn& each : vector.turns) turn(each);
    // No event may be delivered again.
    if (!cell.accepted.empty()) return cell;
    for (const Turn& each : vector.once_more()) turn(each);
  } catch (const Collector::Endless&) {
    cell.worsen(CaseOutcome::Hangs, "more events than the ring can hold");
  }
  return cell;
}

struct Planted {
  std::string_view name;
  Make make = nullptr;
};

const std::vector<Planted>& planted() {
  static const auto all = [] {
    auto each = faults::plant_all<Planted>(
        []<template <class> class F>(faults::Named<F>) { return Planted{}; },
        []<template <class> class F>(faults::Named<F> fault) {
          return Planted{fault.name, make<Ring<F<rig::CheckedMemory>>>};
        },
        []<template <class> class F>(faults::Named<F> fault) {
          return Planted{fault.name, make<F<rig::CheckedMemory>>};
        });
    std::erase_if(each, [](const Planted& one) { return one.make == nullptr; });
    return each;
  }();
  return all;
}

bool raw_alone(const Vector& vector) {
  return vector.of->settings.sample_type == PERF_SAMPLE_RAW;
}

}  // namespace

Cell run_perfring(const Vector& vector) {
  if (raw_alone(vector)) return run_in_process(vector, make<Ring<rig::CheckedMemory>>);
  return run_in_process(vector, [](const Vector& of, const RingImage& image) {
    return std::unique_ptr<Consumer>{std::make_unique<Decoding>(of, image)};
  });
}

std::span<const std::string_view> planted_faults() {
  static const auto names = [] {
    std::vector<std::string_view> all;
    for (const Planted& each : planted()) all.push_back(each.name);
    return all;
  }();
  return names;
}

Cell run_fault(std::string_view name, const Vector& vector) {
  const auto found = std::ranges::find(planted(), name, &Planted::name);
  if (found == planted().end()) throw std::logic_error{"no fault " + std::string{name}};
  if (!raw_alone(vector)) {
    Cell cell;
    cell.worsen(CaseOutcome::NotRun, "the planted consumers support only RAW");
    cell.unsupported = true;
    return cell;
  }
  return run_in_process(vector, found->make);
}

}  // namespace perfring::conformance
