#ifndef PERFRING_RECORD_SAMPLE_H_
#define PERFRING_RECORD_SAMPLE_H_
#if __cplusplus < 202002L
#error "perfring/record needs C++20: compile with -std=c++20 or later"
#else

// Sample: a PERF_RECORD_SAMPLE. A field is present if the event's sample_type selects it, and named
// as in the uapi's comment; `identifier` is the id of PERF_SAMPLE_IDENTIFIER.
// T: measured facts, in the project's harness/RECORD_FACTS.md.

#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>

#include <linux/perf_event.h>

#include "perfring/perf_event.h"
#include "perfring/record/branch_stack.h"
#include "perfring/record/bytes.h"
#include "perfring/record/callchain.h"
#include "perfring/record/layout.h"
#include "perfring/record/read_values.h"
#include "perfring/record/uapi.h"
#include "perfring/record/view.h"

namespace perfring::record {

// The registers in the mask, lowest bit first; empty if abi is NONE (T10).
class Regs {
 public:
  Regs(std::uint64_t abi, std::uint64_t mask, U64s regs) noexcept
      : abi_{abi}, mask_{mask}, regs_{regs} {}
  std::uint64_t abi() const noexcept { return abi_; }  // enum perf_sample_regs_abi
  std::uint64_t mask() const noexcept { return mask_; }
  U64s regs() const noexcept { return regs_; }
  // The register for a bit of the mask: enum perf_event_x86_regs and the like. nullopt if the mask
  // or the words lack it.
  std::optional<std::uint64_t> reg(unsigned bit) const noexcept {
    if (bit >= 64 || (mask_ >> bit & 1) == 0) return std::nullopt;
    const std::uint64_t below = mask_ & ((std::uint64_t{1} << bit) - 1);
    const auto place = static_cast<std::size_t>(std::popcount(below));
    if (place >= regs_.size()) return std::nullopt;
    return regs_[place];
  }

 private:
  std::uint64_t abi_;
  std::uint64_t mask_;
  U64s regs_;
};

// A copy of the user's stack, of which the first `dyn_size` bytes are valid (T11).
struct StackUser {
  Bytes data;
  std::uint64_t dyn_size;  // 0 if data is empty
  // The valid part of `data`, never more than there is.
  Bytes dumped() const noexcept {
    return data.first(dyn_size < data.size() ? static_cast<std::size_t>(dyn_size) : data.size());
  }
};

class Sample : public View {
  using Place = internal::Place;
  using Walk = internal::Walk;

 public:
  using Word = std::optional<std::uint64_t>;
  using Half = std::optional<std::uint32_t>;

  // From misc: ip is the instruction that caused the event, and not one near it.
  bool exact_ip() const noexcept { return (header().misc & PERF_RECORD_MISC_EXACT_IP) != 0; }

  Word identifier() const noexcept { return fixed(Layout::Fixed::Identifier); }
  Word ip() const noexcept { return fixed(Layout::Fixed::Ip); }
  Half pid() const noexcept { return half(Layout::Fixed::Tid, 0); }
  Half tid() const noexcept { return half(Layout::Fixed::Tid, 4); }
  Word time() const noexcept { return fixed(Layout::Fixed::Time); }
  Word addr() const noexcept { return fixed(Layout::Fixed::Addr); }
  Word id() const noexcept { return fixed(Layout::Fixed::Id); }
  Word stream_id() const noexcept { return fixed(Layout::Fixed::StreamId); }
  Half cpu() const noexcept { return half(Layout::Fixed::Cpu, 0); }
  Half res() const noexcept { return half(Layout::Fixed::Cpu, 4); }
  Word period() const noexcept { return fixed(Layout::Fixed::Period); }

  std::optional<ReadValues> values() const noexcept {
    if (values_.at == 0) return std::nullopt;
    return ReadValues{data() + values_.at, values_.count, layout().read_format()};
  }
  std::optional<Callchain> callchain() const noexcept {
    if (ips_.at == 0) return std::nullopt;
    return Callchain{words(ips_)};
  }
  // As many bytes as `size` states, the kernel's padding included (T2).
  std::optional<Bytes> raw() const noexcept { return some_bytes(raw_); }
  std::optional<BranchStack> branch_stack() const noexcept;
  std::optional<Regs> regs_user() const noexcept {
    return regs(regs_user_, layout().sample_regs_user());
  }
  std::optional<StackUser> stack_user() const noexcept {
    if (stack_.at == 0) return std::nullopt;
    const Bytes data = bytes(stack_);
    if (data.empty()) return StackUser{data, 0};
    return StackUser{data, internal::load_once<std::uint64_t>(data.data() + data.size())};
  }
  // With PERF_SAMPLE_WEIGHT: `full`. With PERF_SAMPLE_WEIGHT_STRUCT: `var1_dw`, `var2_w`, `var3_w`.
  std::optional<perf_sample_weight> weight() const noexcept {
    return some<perf_sample_weight>(weight_);
  }
  std::optional<perf_mem_data_src> data_src() const noexcept {
    return some<perf_mem_data_src>(data_src_);
  }
  Word transaction() const noexcept { return some<std::uint64_t>(transaction_); }
  std::optional<Regs> regs_intr() const noexcept {
    return regs(regs_intr_, layout().sample_regs_intr());
  }
  Word phys_addr() const noexcept { return some<std::uint64_t>(phys_addr_); }
  Word cgroup() const noexcept { return some<std::uint64_t>(cgroup_); }
  Word data_page_size() const noexcept { return some<std::uint64_t>(data_page_size_); }
  Word code_page_size() const noexcept { return some<std::uint64_t>(code_page_size_); }
  // A part of the AUX area, of the size that attr.aux_sample_size asks for.
  std::optional<Bytes> aux() const noexcept { return some_bytes(aux_); }

  // For decode(): like View's, without sample_id. Precondition: there are layout.fixed_end() bytes.
  Sample(const internal::Raw& raw, std::size_t sample_id_size) noexcept
      : View{raw, sample_id_size} {
    end_of(Walk{data(), layout().fixed_end(), bytes().size()});
  }
  const char* parse() noexcept;

 private:
  Word fixed(Layout::Fixed field) const noexcept { return some<std::uint64_t>(layout().at(field)); }
  Half half(Layout::Fixed field, std::size_t offset) const noexcept {
    const std::size_t at = layout().at(field);
    return some<std::uint32_t>(at == 0 ? 0 : at + offset);
  }
  template <class T>
  std::optional<T> some(std::size_t at) const noexcept {
    if (at == 0) return std::nullopt;
    return get<T>(at);
  }
  std::optional<Bytes> some_bytes(Place place) const noexcept {
    if (place.at == 0) return std::nullopt;
    return bytes(place);
  }
  // The registers follow their abi.
  std::optional<Regs> regs(Place place, std::uint64_t mask) const noexcept {
    if (place.at == 0) return std::nullopt;
    return Regs{get<std::uint64_t>(place.at - std::size_t{8}), mask, words(place)};
  }

  bool has(std::uint64_t bit) const noexcept { return layout().has(bit); }
  void parse_before_branches(Walk& walk) noexcept;
  void parse_branches(Walk& walk) noexcept;
  void parse_entries(Walk& walk, std::uint64_t nr, bool hw_idx) noexcept;
  void parse_after_branches(Walk& walk) noexcept;
  std::uint16_t parse_word(Walk& walk, std::uint64_t bit, const char* field) noexcept;
  Place parse_regs(Walk& walk, std::uint64_t mask, const char* field) noexcept;
  Place parse_stack(Walk& walk) noexcept;

  Place values_;
  Place ips_;
  Place raw_;
  Place branches_;
  bool hw_idx_ = false;
  Place regs_user_;
  Place stack_;
  std::uint16_t weight_ = 0;
  std::uint16_t data_src_ = 0;
  std::uint16_t transaction_ = 0;
  Place regs_intr_;
  std::uint16_t phys_addr_ = 0;
  std::uint16_t cgroup_ = 0;
  std::uint16_t data_page_size_ = 0;
  std::uint16_t code_page_size_ = 0;
  Place aux_;
};

inline std::optional<BranchStack> Sample::branch_stack() const noexcept {
  if (branches_.at == 0) return std::nullopt;
  const std::byte* const entries = data() + branches_.at;
  const bool counters = (layout().branch_sample_type() & kBranchCounters) != 0;
  return BranchStack{entries, branches_.count, hw_idx_ ? entries - 8 : nullptr,
                     counters ? entries + branches_.count * sizeof(perf_branch_entry) : nullptr};
}

// The order is perf_output_sample()'s (kernel/events/core.c at v6.18; T1).
inline const char* Sample::parse() noexcept {
  Walk walk{data(), layout().fixed_end(), bytes().size()};
  parse_before_branches(walk);
  constexpr std::uint64_t kBefore =
      Layout::kFixedBits | PERF_SAMPLE_READ | PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_RAW;
  if (!has(~kBefore)) return end_of(walk);
  Walk rest = walk;  // a copy, so that `walk` can stay in registers
  parse_branches(rest);
  return end_of(rest);
}

inline void Sample::parse_before_branches(Walk& walk) noexcept {
  if (has(PERF_SAMPLE_READ)) values_ = ReadValues::pass(walk, layout().read_format());
  if (has(PERF_SAMPLE_CALLCHAIN)) {
    ips_ = walk.units(walk.length<std::uint64_t>("nr"), 8, "ips");
  }
  if (has(PERF_SAMPLE_RAW)) raw_ = walk.units(walk.length<std::uint32_t>("size"), 1, "raw");
}

// The kernel writes nr = 0 alone for a sample that has no branch stack, but nr and hw_idx for an
// empty branch stack (T14). The record's end distinguishes the two; if it does not, because a later
// kernel has added fields, this assumes a branch stack.
inline void Sample::parse_branches(Walk& walk) noexcept {
  std::uint64_t nr = 0;
  if (has(PERF_SAMPLE_BRANCH_STACK)) nr = walk.length<std::uint64_t>("nr");
  const bool hw_idx = has(PERF_SAMPLE_BRANCH_STACK) &&
                      (layout().branch_sample_type() & PERF_SAMPLE_BRANCH_HW_INDEX) != 0;
  if (hw_idx && nr == 0) {
    Sample with = *this;
    Walk walk_with = walk;
    with.parse_entries(walk_with, nr, true);
    Sample without = *this;
    Walk walk_without = walk;
    without.parse_entries(walk_without, nr, false);
    const bool fits = walk_with.too_short() == nullptr;
    const bool fits_without = walk_without.too_short() == nullptr;
    const bool exact = fits_without && walk_without.left() == 0;
    const bool is_there = fits && (walk_with.left() == 0 || !exact);
    *this = is_there || !fits_without ? with : without;
    walk = is_there || !fits_without ? walk_with : walk_without;
    return;
  }
  parse_entries(walk, nr, hw_idx);
}

inline void Sample::parse_entries(Walk& walk, std::uint64_t nr, bool hw_idx) noexcept {
  if (has(PERF_SAMPLE_BRANCH_STACK)) {
    if (hw_idx) walk.pass(8, "hw_idx");
    hw_idx_ = hw_idx;
    branches_ = walk.units(nr, sizeof(perf_branch_entry), "lbr");
    if ((layout().branch_sample_type() & kBranchCounters) != 0) walk.units(nr, 8, "counters");
  }
  parse_after_branches(walk);
}

inline void Sample::parse_after_branches(Walk& walk) noexcept {
  if (has(PERF_SAMPLE_REGS_USER)) {
    regs_user_ = parse_regs(walk, layout().sample_regs_user(), "regs_user");
  }
  if (has(PERF_SAMPLE_STACK_USER)) stack_ = parse_stack(walk);
  weight_ = parse_word(walk, PERF_SAMPLE_WEIGHT_TYPE, "weight");
  data_src_ = parse_word(walk, PERF_SAMPLE_DATA_SRC, "data_src");
  transaction_ = parse_word(walk, PERF_SAMPLE_TRANSACTION, "transaction");
  if (has(PERF_SAMPLE_REGS_INTR)) {
    regs_intr_ = parse_regs(walk, layout().sample_regs_intr(), "regs_intr");
  }
  phys_addr_ = parse_word(walk, PERF_SAMPLE_PHYS_ADDR, "phys_addr");
  cgroup_ = parse_word(walk, PERF_SAMPLE_CGROUP, "cgroup");
  data_page_size_ = parse_word(walk, PERF_SAMPLE_DATA_PAGE_SIZE, "data_page_size");
  code_page_size_ = parse_word(walk, PERF_SAMPLE_CODE_PAGE_SIZE, "code_page_size");
  if (has(PERF_SAMPLE_AUX)) aux_ = walk.units(walk.length<std::uint64_t>("size"), 1, "aux");
}

inline std::uint16_t Sample::parse_word(Walk& walk, std::uint64_t bit, const char* field) noexcept {
  const std::size_t begin = walk.at();
  return has(bit) && walk.pass(8, field) ? static_cast<std::uint16_t>(begin) : std::uint16_t{0};
}

inline internal::Place Sample::parse_regs(Walk& walk, std::uint64_t mask,
                                          const char* field) noexcept {
  const auto abi = walk.length<std::uint64_t>(field);
  const auto count = static_cast<std::uint64_t>(std::popcount(mask));
  return walk.units(abi == PERF_SAMPLE_REGS_ABI_NONE ? 0 : count, 8, field);
}

inline internal::Place Sample::parse_stack(Walk& walk) noexcept {
  const Place data = walk.units(walk.length<std::uint64_t>("size"), 1, "stack_user");
  if (data.count != 0) walk.pass(8, "dyn_size");
  return data;
}

}  // namespace perfring::record

#endif
#endif  // PERFRING_RECORD_SAMPLE_H_
