#ifndef PERFRING_RING_TESTING_RING_OVER_H_
#define PERFRING_RING_TESTING_RING_OVER_H_

#include "perfring/ring/ring.h"
#include "perfring/ring/testing/fake_ring.h"
#include "perfring/ring/testing/known_ring.h"

namespace perfring::testing {

// The consumer's end of what a test writes to.
template <class M = DefaultMemory>
Ring<M> ring_over(const FakeRing& fake) {
  return *Ring<M>::over(fake.page(), fake.data());
}

template <class M = DefaultMemory>
Ring<M> ring_over(KnownRing& known) {
  return ring_over<M>(known.fake());
}

}  // namespace perfring::testing

#endif  // PERFRING_RING_TESTING_RING_OVER_H_
