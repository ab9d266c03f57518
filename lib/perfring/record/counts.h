#ifndef PERFRING_RECORD_COUNTS_H_
#define PERFRING_RECORD_COUNTS_H_
#if __cplusplus < 202002L
#error "perfring/record needs C++20: compile with -std=c++20 or later"
#else

// Records of the event itself: Lost, LostSamples, Throttle, Unthrottle, Read, Aux, ItraceStart,
// AuxOutputHwId, CallchainDeferred; and Unknown. Fields are named as in the uapi's comments.
// decode() constructs these views.
// T: measured facts, in the project's harness/RECORD_FACTS.md.

#include <linux/perf_event.h>

#include <cstddef>
#include <cstdint>

#include "perfring/record/bytes.h"
#include "perfring/record/callchain.h"
#include "perfring/record/read_values.h"
#include "perfring/record/view.h"

namespace perfring::record {

class Lost : public SideBand {
 public:
  std::uint64_t id() const noexcept { return get<std::uint64_t>(8); }  // of the next writer (T16)
  std::uint64_t lost() const noexcept { return get<std::uint64_t>(16); }

  using SideBand::SideBand;
  const char* parse() noexcept {
    internal::Walk walk = this->walk();
    walk.pass(8, "id");
    walk.pass(8, "lost");
    return end_of(walk);
  }
};

// Samples that the hardware dropped.
class LostSamples : public SideBand {
 public:
  std::uint64_t lost() const noexcept { return get<std::uint64_t>(8); }

  using SideBand::SideBand;
  const char* parse() noexcept {
    internal::Walk walk = this->walk();
    walk.pass(8, "lost");
    return end_of(walk);
  }
};

// The fields that Throttle and Unthrottle share. sample_id may repeat them, a little later (T17).
class Throttling : public SideBand {
 public:
  std::uint64_t time() const noexcept { return get<std::uint64_t>(8); }
  std::uint64_t id() const noexcept { return get<std::uint64_t>(16); }
  std::uint64_t stream_id() const noexcept { return get<std::uint64_t>(24); }

  const char* parse() noexcept {
    internal::Walk walk = this->walk();
    walk.pass(8, "time");
    walk.pass(8, "id");
    walk.pass(8, "stream_id");
    return end_of(walk);
  }

  using SideBand::SideBand;
};

class Throttle : public Throttling {
 public:
  using Throttling::Throttling;
};

class Unthrottle : public Throttling {
 public:
  using Throttling::Throttling;
};

// The counts of a task that ends, for an event with inherit_stat.
class Read : public SideBand {
 public:
  std::uint32_t pid() const noexcept { return get<std::uint32_t>(8); }
  std::uint32_t tid() const noexcept { return get<std::uint32_t>(12); }
  ReadValues values() const noexcept {
    return {data() + values_.at, values_.count, layout().read_format()};
  }

  using SideBand::SideBand;
  const char* parse() noexcept {
    internal::Walk walk = this->walk();
    walk.pass(4, "pid");
    walk.pass(4, "tid");
    values_ = ReadValues::pass(walk, layout().read_format());
    return end_of(walk);
  }

 private:
  internal::Place values_;
};

// New data in the AUX area.
class Aux : public SideBand {
 public:
  std::uint64_t aux_offset() const noexcept { return get<std::uint64_t>(8); }
  std::uint64_t aux_size() const noexcept { return get<std::uint64_t>(16); }
  std::uint64_t flags() const noexcept { return get<std::uint64_t>(24); }  // PERF_AUX_FLAG_*

  using SideBand::SideBand;
  const char* parse() noexcept {
    internal::Walk walk = this->walk();
    walk.pass(8, "aux_offset");
    walk.pass(8, "aux_size");
    walk.pass(8, "flags");
    return end_of(walk);
  }
};

class ItraceStart : public SideBand {
 public:
  std::uint32_t pid() const noexcept { return get<std::uint32_t>(8); }
  std::uint32_t tid() const noexcept { return get<std::uint32_t>(12); }

  using SideBand::SideBand;
  const char* parse() noexcept {
    internal::Walk walk = this->walk();
    walk.pass(4, "pid");
    walk.pass(4, "tid");
    return end_of(walk);
  }
};

class AuxOutputHwId : public SideBand {
 public:
  std::uint64_t hw_id() const noexcept { return get<std::uint64_t>(8); }

  using SideBand::SideBand;
  const char* parse() noexcept {
    internal::Walk walk = this->walk();
    walk.pass(8, "hw_id");
    return end_of(walk);
  }
};

// The user's part of the callchains of earlier samples with the same cookie.
class CallchainDeferred : public SideBand {
 public:
  std::uint64_t cookie() const noexcept { return get<std::uint64_t>(8); }
  Callchain callchain() const noexcept { return Callchain{words(ips_)}; }

  using SideBand::SideBand;
  const char* parse() noexcept {
    internal::Walk walk = this->walk();
    walk.pass(8, "cookie");
    ips_ = walk.units(walk.length<std::uint64_t>("nr"), 8, "ips");
    return end_of(walk);
  }

 private:
  internal::Place ips_;
};

// A record of an unknown type, or of an event for which the caller has no layout (layouts.h). Its
// body is rest(); sample_id() is empty if there is no room for it (T19).
class Unknown : public SideBand {
 public:
  using SideBand::SideBand;
  const char* parse() noexcept { return end_of(walk()); }
};

}  // namespace perfring::record

#endif
#endif  // PERFRING_RECORD_COUNTS_H_
