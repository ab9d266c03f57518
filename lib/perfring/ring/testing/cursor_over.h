#ifndef PERFRING_RING_TESTING_CURSOR_OVER_H_
#define PERFRING_RING_TESTING_CURSOR_OVER_H_

#include <vector>

#include "perfring/ring/cursor.h"
#include "perfring/ring/testing/fake_ring.h"
#include "perfring/ring/testing/seen.h"

namespace perfring::testing {

template <class M = DefaultMemory>
Cursor<M> cursor_over(const FakeRing& fake) {
  return *Cursor<M>::over(fake.page(), fake.data());
}

// All that next() hands out; nothing is released.
template <class M>
std::vector<typename Cursor<M>::Record> take(Cursor<M>& cursor) {
  std::vector<typename Cursor<M>::Record> records;
  while (const auto record = cursor.next()) records.push_back(*record);
  return records;
}

template <class M>
std::vector<Seen> events(Cursor<M>& cursor) {
  std::vector<Seen> seen;
  for (const auto& record : take(cursor)) seen.push_back(copy(record.event()));
  return seen;
}

}  // namespace perfring::testing

#endif  // PERFRING_RING_TESTING_CURSOR_OVER_H_
