// A planted bug, which must be found: a raw size with its highest bit set is taken for one without.

#include "fuzz/hostile_drain.h"

namespace perfring::fuzz {
namespace {

struct DropsTheSign : WatchedMemory {
  template <class T>
  static T read(const std::byte* address) {
    const T value = WatchedMemory::read<T>(address);
    if constexpr (sizeof(T) == 4) return value & 0x7fff'ffff;
    return value;
  }
};

}  // namespace
}  // namespace perfring::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace perfring::fuzz;
  const HostileRing ring{Input{data, size}};
  HostileDrain<DropsTheSign>{ring}.run();
  return 0;
}
