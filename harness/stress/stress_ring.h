#ifndef HARNESS_STRESS_STRESS_RING_H_
#define HARNESS_STRESS_STRESS_RING_H_

#include <linux/perf_event.h>

#include <cstddef>
#include <system_error>

#include "harness/kernel/perf_event.h"
#include "harness/kernel/ring_memory.h"
#include "harness/stress/setting.h"
#include "perfring/perf_event.h"

namespace perfring::stress {

// One simulated event and its ring, as user space has set it up.
class StressRing {
 public:
  explicit StressRing(const Setting& setting)
      : setting_{setting},
        memory_{setting.pages},
        event_{open(setting)},
        mapping_{map(event_, memory_)} {
    kernel::start_at(mapping_.rb(), setting.start);
  }

  const Setting& setting() const { return setting_; }
  const kernel::perf_file& event() const { return event_; }
  perf_event_mmap_page& page() const { return *mapping_.rb().user_page; }
  Bytes data() const { return memory_.bytes().last(ring_size(setting_)); }

 private:
  static kernel::perf_file open(const Setting& setting) {
    const perf_event_attr attr = kernel::bpf_output_attr(setting.watermark, setting.wakeup_events);
    auto event = kernel::perf_event_open(attr, 0, 1, setting.word);
    if (!event) throw std::system_error{-event.error(), std::generic_category(), "perf_event_open"};
    return *event;
  }
  static kernel::perf_mapping map(const kernel::perf_file& event, kernel::RingMemory& memory) {
    auto mapping = kernel::perf_mmap(event, memory.bytes());
    if (!mapping) throw std::system_error{-mapping.error(), std::generic_category(), "perf_mmap"};
    return *std::move(mapping);
  }

  Setting setting_;
  kernel::RingMemory memory_;
  kernel::perf_file event_;
  kernel::perf_mapping mapping_;
};

}  // namespace perfring::stress

#endif  // HARNESS_STRESS_STRESS_RING_H_
