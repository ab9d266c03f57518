#ifndef FUZZ_SCRIPT_BYTES_H_
#define FUZZ_SCRIPT_BYTES_H_

// Scripts (harness/script) as a fuzzer's bytes: any bytes are a script that can be run.
//
//   u8   bit 0 a 32-bit kernel, 1-2 log2 of the pages, 3 watermark, 4 two events, 5-6 epoll, 7
//        sample_id_all
//   u16  bits 0-8 sample_type, in the order of the list in script_bytes.cc, RAW inverted; 9
//        write_backward, 10 overwrite
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

// Takes all of the input.
script::Script decode_script(Input input);

// The bytes of which this is the script. An error, if there are none.
std::expected<std::vector<std::byte>, std::string> encode_script(const script::Script& script);

// What kernel_script makes of a script: RAW samples, forward, not overwriting, by a consumer that
// is honest. That is as much as the oracle understands.
script::Script understood(script::Script script);

}  // namespace perfring::fuzz

#endif  // FUZZ_SCRIPT_BYTES_H_
