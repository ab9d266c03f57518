#ifndef HARNESS_FAULTS_CURSOR_FAULTS_H_
#define HARNESS_FAULTS_CURSOR_FAULTS_H_

// Cursors with one fault each, over any perfring::Memory; and by them, consumers with Ring's
// interface.

#include <linux/perf_event.h>

#include <optional>
#include <utility>

#include "perfring/ring/cursor.h"
#include "perfring/ring/memory.h"
#include "perfring/ring/testing/by_cursor.h"

namespace perfring::faults {

template <class Faulty, class M>
struct AroundCursor : Cursor<M> {
  explicit AroundCursor(const Cursor<M>& sound) : Cursor<M>{sound} {}
  static std::optional<Faulty> over(perf_event_mmap_page& page, Bytes data) {
    return Faulty{*Cursor<M>::over(page, data)};
  }
};

// A record is released when it is handed out, and not when its user says so.
template <class M>
struct ReleasesEarly : AroundCursor<ReleasesEarly<M>, M> {
  using AroundCursor<ReleasesEarly, M>::AroundCursor;
  auto next() {
    auto record = Cursor<M>::next();
    Cursor<M>::release();
    return record;
  }
};

// A release goes on to the end of what was looked at.
template <class M>
struct ReleasesPast : AroundCursor<ReleasesPast<M>, M> {
  using AroundCursor<ReleasesPast, M>::AroundCursor;
  using Cursor<M>::release;
  void release() { this->release_bytes(this->unread()); }
};

template <class M>
using ByReleasesEarly = testing::ByCursor<ReleasesEarly<M>>;
template <class M>
using ByReleasesPast = testing::ByCursor<ReleasesPast<M>>;

}  // namespace perfring::faults

#endif  // HARNESS_FAULTS_CURSOR_FAULTS_H_
