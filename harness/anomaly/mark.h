#ifndef HARNESS_ANOMALY_MARK_H_
#define HARNESS_ANOMALY_MARK_H_

/* The prctl(2) option, unknown to any kernel, by which a flow marks where it begins and ends.
   Nothing is made to fail outside of the marks, such as the flow's own check of what is left.
   This file is C because allocations.c includes it. */
#define ANOMALY_MARK 0x616e6f6d

#endif /* HARNESS_ANOMALY_MARK_H_ */
