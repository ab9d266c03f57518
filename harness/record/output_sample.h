#ifndef HARNESS_RECORD_OUTPUT_SAMPLE_H_
#define HARNESS_RECORD_OUTPUT_SAMPLE_H_

// Parts of encode() (encoder.h).

#include <linux/perf_event.h>

#include "harness/record/encoder.h"
#include "harness/record/output.h"

namespace perfring::record {

void output_read(Output& out, std::uint64_t read_format, std::size_t siblings);
void output_ips(Output& out, std::size_t nr);
void output_sample(Output& out, const perf_event_attr& attr, const Shape& shape);

}  // namespace perfring::record

#endif  // HARNESS_RECORD_OUTPUT_SAMPLE_H_
