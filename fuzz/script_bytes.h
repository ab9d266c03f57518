#ifndef FUZZ_SCRIPT_BYTES_H_
#define FUZZ_SCRIPT_BYTES_H_

// Scripts (harness/script) as a fuzzer's bytes. Any bytes are a script that can be run:
//
//   u8   bit 0: 32-bit kernel, 1-2: log2 of the pages, 3: watermark, 4: two events, 5-6: epoll,
//        7: sample_id_all
//   u16  (not ForOracle) bits 0-8: sample_type, in the order of the list in script_bytes.cc, RAW
//        inverted; 9: write_backward, 10: overwrite
//   u32  wakeup
//   u64  start, rounded down to a multiple of 8
//   then each step:
//   u8   bits 0-3: action, 4-5: depth of nesting (a maximum), 6-7: form of the number
//   u8   (a nested step) moment
//   ...  (an action with a number) one of these forms:
//          u8
//          u16, of which 12 bits count
//          u64 (`tail` only)
//          u8 shift, u24 number: the number is shifted right, so that large numbers, which take
//          time, are rare. A shift of 24 or more: a number near 65536, where header.size wraps

#include <cstddef>
#include <expected>
#include <string>
#include <vector>

#include "fuzz/input.h"
#include "harness/script/script.h"

namespace perfring::fuzz {

// Full encodes every script of at most 8 pages. ForOracle encodes only scripts that harness/oracle
// can check; every byte of it has an effect.
enum class Encoding { Full, ForOracle };

// Decodes the whole input.
script::Script decode_script(Input input, Encoding encoding);

// Returns the bytes that decode to this script, or the reason if there are none.
std::expected<std::vector<std::byte>, std::string> encode_script(const script::Script& script,
                                                                 Encoding encoding);

}  // namespace perfring::fuzz

#endif  // FUZZ_SCRIPT_BYTES_H_
