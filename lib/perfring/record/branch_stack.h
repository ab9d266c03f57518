#ifndef PERFRING_RECORD_BRANCH_STACK_H_
#define PERFRING_RECORD_BRANCH_STACK_H_
#if __cplusplus < 202002L
#error "perfring/record needs C++20: compile with -std=c++20 or later"
#else

// BranchStack: the last branches that the CPU took, the latest first.

#include <cstddef>
#include <cstdint>
#include <optional>

#include <linux/perf_event.h>

#include "perfring/record/bytes.h"

namespace perfring::record {

class BranchStack {
 public:
  std::size_t size() const noexcept { return nr_; }
  // The kernel's own bit fields, in this machine's order. Ends the program if i is not below size()
  // (bytes.h).
  perf_branch_entry operator[](std::size_t i) const noexcept {
    internal::expect_index(i, nr_);
    return internal::load<perf_branch_entry>(entries_ + i * sizeof(perf_branch_entry));
  }
  // The place of the latest branch in the hardware's stack, if branch_sample_type has HW_INDEX.
  // Absent from a sample without a branch stack.
  std::optional<std::uint64_t> hw_idx() const noexcept {
    if (hw_idx_ == nullptr) return std::nullopt;
    return internal::load<std::uint64_t>(hw_idx_);
  }
  // A word for each branch, if branch_sample_type has COUNTERS; otherwise empty.
  U64s counters() const noexcept { return counters_ == nullptr ? U64s{} : U64s{counters_, nr_}; }

 private:
  friend class Sample;
  BranchStack(const std::byte* entries, std::size_t nr, const std::byte* hw_idx,
              const std::byte* counters) noexcept
      : entries_{entries}, hw_idx_{hw_idx}, counters_{counters}, nr_{nr} {}

  const std::byte* entries_;
  const std::byte* hw_idx_;
  const std::byte* counters_;
  std::size_t nr_;
};

}  // namespace perfring::record

#endif
#endif  // PERFRING_RECORD_BRANCH_STACK_H_
