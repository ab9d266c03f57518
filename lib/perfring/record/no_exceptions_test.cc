// Built with -fno-exceptions -fno-rtti, as are the library's own sources here (see BUILD.bazel):
// the whole of record can be used.

#include <array>
#include <cstdio>
#include <cstring>

#include "perfring/record/layouts.h"
#include "perfring/record/to_string.h"
#include "perfring/record/whole.h"

int main() {
#if defined(__cpp_exceptions) || defined(__cpp_rtti)
  std::puts("FAILED: this is built with exceptions or RTTI");
  return 1;
#else
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
  const bool right = change != nullptr && change->sample_id().identifier() == 5 &&
                     record::to_string(any) == "SWITCH misc 0x0 size 16: sample_id {identifier 5}";
  return right ? 0 : 1;
#endif
}
