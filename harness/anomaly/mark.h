#ifndef HARNESS_ANOMALY_MARK_H_
#define HARNESS_ANOMALY_MARK_H_

/* The call by which a flow says that it begins and ends: prctl(2) of an option that no kernel has.
   What is outside, as its own looks at what is left, is not made to fail. In C, for allocations.c.
 */
#define ANOMALY_MARK 0x616e6f6d

#endif /* HARNESS_ANOMALY_MARK_H_ */
