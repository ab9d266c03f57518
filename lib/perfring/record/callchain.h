#ifndef PERFRING_RECORD_CALLCHAIN_H_
#define PERFRING_RECORD_CALLCHAIN_H_
#if __cplusplus < 202002L
#error "perfring/record needs C++20: compile with -std=c++20 or later"
#else

// Callchain: the addresses of a callchain, innermost first. Markers (PERF_CONTEXT_*) among them
// name the context of the addresses that follow. Markers are not addresses, and neither is the
// cookie after PERF_CONTEXT_USER_DEFERRED (T15).
// T: measured facts, in the project's harness/RECORD_FACTS.md.

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>

#include "perfring/record/bytes.h"
#include "perfring/record/uapi.h"

namespace perfring::record {

struct Frame {
  std::uint64_t context;  // PERF_CONTEXT_KERNEL, _USER...; 0 before the first marker
  std::uint64_t ip;
  bool operator==(const Frame&) const = default;
};

constexpr bool is_context(std::uint64_t ip) noexcept {
  return ip >= kContextMax;
}

// The frames of a callchain. A loop over them ends after ips.size() steps, whatever they contain.
class Frames {
 public:
  class Iterator {
   public:
    using difference_type = std::ptrdiff_t;
    using value_type = Frame;

    Iterator(U64s ips, std::size_t at) noexcept : ips_{ips}, at_{at} { find_address(); }
    Frame operator*() const noexcept { return frame_; }
    Iterator& operator++() noexcept {
      ++at_;
      find_address();
      return *this;
    }
    void operator++(int) noexcept { ++*this; }
    bool operator==(const Iterator& other) const noexcept { return at_ == other.at_; }

   private:
    // Advances to the next address.
    void find_address() noexcept {
      while (at_ < ips_.size()) {
        const auto entry = internal::load_once<std::uint64_t>(ips_.address(at_));
        if (!is_context(entry)) {
          frame_.ip = entry;
          return;
        }
        frame_.context = entry;
        ++at_;
        if (entry == kContextUserDeferred && at_ < ips_.size()) ++at_;
      }
    }

    U64s ips_;
    std::size_t at_;
    Frame frame_{};
  };

  explicit Frames(U64s ips) noexcept : ips_{ips} {}
  Iterator begin() const noexcept { return {ips_, 0}; }
  Iterator end() const noexcept { return {ips_, ips_.size()}; }

 private:
  U64s ips_;
};

class Callchain {
 public:
  explicit Callchain(U64s ips) noexcept : ips_{ips} {}

  // The words as the kernel wrote them, markers included.
  U64s ips() const noexcept { return ips_; }
  Frames frames() const noexcept { return Frames{ips_}; }
  // The cookie of the CALLCHAIN_DEFERRED that has the user's part of this sample's callchain.
  std::optional<std::uint64_t> deferred_cookie() const noexcept {
    for (std::size_t i = 0; i + 1 < ips_.size(); ++i) {
      if (ips_[i] == kContextUserDeferred) return ips_[i + 1];
    }
    return std::nullopt;
  }

 private:
  U64s ips_;
};

}  // namespace perfring::record

#endif
#endif  // PERFRING_RECORD_CALLCHAIN_H_
