#ifndef HARNESS_MODEL_FENCES_H_
#define HARNESS_MODEL_FENCES_H_

#include <string>

namespace perfring::model {

// Which of the ring protocol's fences is necessary, and which is sufficient: a table in Markdown.
// The source that ships is explored for each row, under RC11 (6 records, 3 drains), and under
// AArch64 and RISC-V (4 records, 2 drains); under LKMM the protocol word by word (3 records, 3
// drains). The column of x86 is herd7 7.58's verdicts on the same part of the protocol; they are
// not computed here.
std::string fences_table();

}  // namespace perfring::model

#endif  // HARNESS_MODEL_FENCES_H_
