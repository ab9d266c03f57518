#ifndef PROPTESTS_SIMULATED_RING_H_
#define PROPTESTS_SIMULATED_RING_H_

#include <linux/bpf.h>
#include <linux/perf_event.h>

#include <cstddef>
#include <memory>
#include <stdexcept>
#include <utility>
#include <vector>

#include "harness/kernel/perf_event.h"
#include "harness/kernel/perf_event_array.h"
#include "perfring/perf_event.h"
#include "proptests/plan.h"

namespace perfring::proptests {

// The kernel's half of a ring as PerfBuffer::open() would have it, but for the settings.
class SimulatedRing {
 public:
  explicit SimulatedRing(const Settings& settings)
      : memory_(4096 + settings.size()), event_{open(settings)}, mapping_{map(event_, memory_)} {
    kernel::start_at(mapping_.rb(), settings.start);
    if (array_.update_elem(0, event_) != 0) throw std::logic_error{"update_elem"};
  }

  perf_event_mmap_page& page() { return *mapping_.rb().user_page; }
  Bytes data() const { return Bytes{memory_}.subspan(4096); }
  kernel::perf_event& event() { return *event_; }
  kernel::perf_buffer& rb() { return mapping_.rb(); }
  const kernel::bpf_array& array() const { return array_.map(); }

 private:
  static kernel::perf_file open(const Settings& settings) {
    perf_event_attr attr{};
    attr.size = sizeof(attr);
    attr.type = PERF_TYPE_SOFTWARE;
    attr.config = PERF_COUNT_SW_BPF_OUTPUT;
    attr.sample_type = PERF_SAMPLE_RAW;
    attr.sample_period = 1;
    attr.watermark = settings.wakeup_watermark.has_value();
    attr.wakeup_events = settings.wakeup_watermark.value_or(settings.wakeup_events);
    return kernel::perf_event_open(attr, 0, settings.word).value();
  }
  static kernel::perf_mapping map(const kernel::perf_file& event, std::vector<std::byte>& memory) {
    return std::move(kernel::perf_mmap(event, memory)).value();
  }

  std::vector<std::byte> memory_;
  kernel::perf_file event_;
  kernel::perf_mapping mapping_;
  kernel::bpf_map_file array_{std::make_shared<kernel::bpf_array>(1)};
};

}  // namespace perfring::proptests

#endif  // PROPTESTS_SIMULATED_RING_H_
