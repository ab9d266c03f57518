#ifndef PERFRING_RECORD_WHOLE_H_
#define PERFRING_RECORD_WHOLE_H_
#if __cplusplus < 202002L
#error "perfring/record needs C++20: compile with -std=c++20 or later"
#else

// whole(): a record in one piece. Once per lap of a ring, a record straddles the ring's end, and
// the ring cannot be mapped twice in a row (K36): only that record is copied (T20).
// K: measured facts, in the project's harness/KERNEL_FACTS.md.
// T: measured facts, in the project's harness/RECORD_FACTS.md.

#include <cstddef>
#include <span>

#include "perfring/perf_event.h"

namespace perfring::record {

// Room for any record: header.size is a u16.
inline constexpr std::size_t kRecordMax = 65535;

// Returns `head` and `tail` in one piece: head itself if tail is empty, otherwise a copy in the
// caller's `scratch`, which must outlive all views of it. Returns an empty span if scratch is too
// small. If scratch overlaps them: like Sample::copy_to().
inline Bytes whole(Bytes head, Bytes tail, std::span<std::byte> scratch) noexcept {
  if (tail.empty()) return head;
  if (scratch.size() < head.size() || scratch.size() - head.size() < tail.size()) return {};
  return scratch.first(perfring::internal::join(head, tail, scratch));
}

}  // namespace perfring::record

#endif
#endif  // PERFRING_RECORD_WHOLE_H_
