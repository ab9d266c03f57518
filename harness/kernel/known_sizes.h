#ifndef HARNESS_KERNEL_KNOWN_SIZES_H_
#define HARNESS_KERNEL_KNOWN_SIZES_H_

#include <cstddef>
#include <cstdint>

namespace perfring::kernel {

// K1, the table's numbers: the sizes of a sample's record and of its raw data. Tests check both the
// live kernel and the simulated one against them.
struct KnownSize {
  std::size_t payload;
  std::uint16_t size;
  std::uint32_t raw;
};
inline constexpr KnownSize kKnownSizes[] = {
    {0, 16, 4},
    {1, 16, 4},
    {3, 16, 4},
    {4, 16, 4},
    {5, 24, 12},
    {8, 24, 12},
    {12, 24, 12},
    {13, 32, 20},
    {100, 112, 100},
    {4096, 4112, 4100},
    {65507, 65520, 65508},
    {65508, 65520, 65508},
    {65515, 65528, 65516},
    {65516, 65528, 65516},
};

}  // namespace perfring::kernel

#endif  // HARNESS_KERNEL_KNOWN_SIZES_H_
