// Built with -fno-exceptions and -fno-rtti, as are the library's own sources here (see
// BUILD.bazel): all of the library can be used. headers_test.sh builds this program with libc++.

#include <linux/perf_event.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <variant>

#include "perfring/event/event.h"
#include "perfring/event/tracepoint_fields.h"
#include "perfring/merge/key_at.h"
#include "perfring/merge/merge.h"
#include "perfring/perfring.h"
#include "perfring/record/decode.h"
#include "perfring/record/layout.h"
#include "perfring/record/layouts.h"
#include "perfring/record/tasks.h"
#include "perfring/record/to_string.h"
#include "perfring/record/whole.h"
#include "perfring/rings/ring_set.h"
#include "perfring/sampler/group.h"
#include "perfring/sampler/sampler.h"
#include "perfring/wait/waiter.h"

#if (defined(__cpp_exceptions) || defined(__cpp_rtti)) && !defined(_LIBCPP_VERSION)
int main() {
  std::puts("FAILED: this is built with exceptions or RTTI");
  return 1;
}
#else
namespace {

bool decodes_a_record() {
  namespace record = perfring::record;
  perf_event_attr attr{};
  attr.sample_type = PERF_SAMPLE_IDENTIFIER;
  attr.sample_id_all = 1;
  const record::Layout layout{attr};
  const std::array<record::Layouts::Entry, 1> entries{{{5, &layout}}};
  const auto layouts = record::Layouts::over(entries);
  const perf_event_header header{PERF_RECORD_SWITCH, 0, 16};
  const std::uint64_t id = 5;
  std::array<std::byte, 16> bytes{};
  std::memcpy(bytes.data(), &header, sizeof header);
  std::memcpy(bytes.data() + 8, &id, sizeof id);
  std::array<std::byte, 16> scratch{};
  const perfring::Bytes all{bytes};
  const perfring::Bytes joined = record::whole(all.first(8), all.subspan(8), scratch);
  const record::Any any = record::decode(joined, *layouts);
  const auto* const change = std::get_if<record::Switch>(&any);
  return change != nullptr && change->sample_id().identifier() == 5 &&
         record::to_string(any) == "SWITCH misc 0x0 size 16: sample_id {identifier 5}";
}

}  // namespace

int main() {
  perfring::Ring<> ring = perfring::Ring<>::empty();
  int events = 0;
  ring.for_each([&](const perfring::PerfEvent& event) { events += event.index() == 0; });
  ring.for_each(perfring::Overloaded{
      [&](const perfring::Sample& sample) { events += sample.as<int>().value_or(1); },
      [&](const auto&) { ++events; }});
  events += !ring.for_each_while([](const perfring::PerfEvent&) { return false; });
  events = ring.fold(events, [](int n, const perfring::PerfEvent& event) {
    return std::holds_alternative<perfring::Lost>(event) ? n + 1 : n;
  });
  using Flow = perfring::ControlFlow<int, int>;
  const Flow flow = ring.try_fold(events, [](int n, const perfring::PerfEvent& event) -> Flow {
    if (std::holds_alternative<perfring::Malformed>(event)) return perfring::Break{n};
    return perfring::Continue{n + 1};
  });
  events += flow.is_continue() ? flow.continue_value() : 1;
  perf_event_mmap_page page{};
  alignas(8) static constexpr std::byte data[8]{};
  auto cursor = perfring::Cursor<>::over(page, data);
  events += !cursor || cursor->look() != 0 || cursor->next();
  perfring::Merge<> merge;
  events += merge.add(page, data) != 0U;
  const auto count_ordered = [&](const perfring::Ordered&) { ++events; };
  merge.run(perfring::KeyAt{}, [] { return std::uint64_t{1}; }, count_ordered);
  merge.flush(perfring::KeyAt{}, count_ordered);
  const auto buffer = perfring::PerfBuffer::open(0, 3);
  const bool refused = !buffer && !buffer.error().message().empty();
  const auto array = perfring::PerfEventArray::from_fd(-1);
  const bool unknown = !array && !array.error().explain().empty();
  auto waiter = perfring::Waiter::create();
  if (waiter) waiter->stop();
  events += !waiter || waiter->wait() != perfring::Woken::Stop;
  const auto sampler = perfring::event::Sampler::open({.events = {}});
  const auto group = perfring::event::Group::open({.events = {}});
  events += sampler || group || sampler.error().explain().empty();
  events += perfring::event::TracepointFormat::parse("").has_value();
  events += perfring::event::by_name("no such event").has_value();
  const auto cpus = perfring::online_cpus();
  const bool explained = cpus || !cpus.error().explain().empty();
  return events == 0 && refused && unknown && explained && decodes_a_record() ? 0 : 1;
}
#endif
