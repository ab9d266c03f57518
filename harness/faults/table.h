#ifndef HARNESS_FAULTS_TABLE_H_
#define HARNESS_FAULTS_TABLE_H_

// The rows of the catalogue. Each says what is expected of scripts, simulator, stress,
// ThreadSanitizer and model checker, in this order, and of the properties.

#include <array>
#include <span>

#include "harness/faults/catalogue.h"

namespace perfring::faults {

inline constexpr AnyInvariant kFound;
inline constexpr DataRace kRace;
inline constexpr Holds kHolds;

std::span<const Fault> faults_of_a_kernel();
// Of its memory, too; and the variants.
std::span<const Fault> faults_of_a_consumer();
std::span<const Fault> faults_of_many_rings();

}  // namespace perfring::faults

#endif  // HARNESS_FAULTS_TABLE_H_
