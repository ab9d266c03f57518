#ifndef FUZZ_SCRIPT_BYTES_H_
#define FUZZ_SCRIPT_BYTES_H_

// Scripts (harness/script) as a fuzzer's bytes: any bytes are a script that can be run.
//
//   u8   bit 0 a 32-bit kernel, 1-2 log2 of the pages, 3 watermark, 4 two events, 5-6 epoll, 7
//        sample_id_all
//   u16  not ForOracle: bits 0-8 sample_type, in the order of the list in script_bytes.cc, RAW
//        inverted; 9 write_backward, 10 overwrite
//   u32  wakeup
//   u64  start, rounded down to a multiple of 8
//   and a step after the other:
//   u8   bits 0-3 the action, 4-5 how deep it is nested (at the most), 6-7 how its number is said
//   u8   if it is nested: at which moment
//   ...  if it has a number, a u8; or 12 bits of a u16; or (of a `tail`) a u64; or a u8 and a u24,
//        which is shifted right by the u8, so that large numbers, which take time, are rare: from
//        24 on it is one near 65536, where header.size wraps

#include <cstddef>
#include <expected>
#include <string>
#include <vector>

#include "fuzz/input.h"
#include "harness/script/script.h"

namespace perfring::fuzz {

// Full: every script of at most 8 pages. ForOracle: of these, the scripts that harness/oracle can
// check; here every byte counts.
enum class Encoding { Full, ForOracle };

// Takes all of the input.
script::Script decode_script(Input input, Encoding encoding);

// The bytes that decode to this script, or why no bytes do.
std::expected<std::vector<std::byte>, std::string> encode_script(const script::Script& script,
                                                                 Encoding encoding);

}  // namespace perfring::fuzz

#endif  // FUZZ_SCRIPT_BYTES_H_
