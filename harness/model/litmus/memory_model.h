#ifndef HARNESS_MODEL_LITMUS_MEMORY_MODEL_H_
#define HARNESS_MODEL_LITMUS_MEMORY_MODEL_H_

#include <array>
#include <cstdint>
#include <string_view>

namespace perfring::model {

enum class MemoryModel : std::uint8_t {
  Rc11,     // C++, as in harness/model/engine/rc11.h
  AArch64,  // Arm's, as in herd7's aarch64.cat
  RiscV,    // RVWMO, as in herd7's riscv.cat
  Lkmm,     // the Linux kernel's: tools/memory-model/linux-kernel.cat, v6.12
};

struct MemoryModelName {
  MemoryModel model;
  std::string_view name;
};

inline constexpr std::array<MemoryModelName, 4> kMemoryModels = {{{MemoryModel::Rc11, "rc11"},
                                                                  {MemoryModel::AArch64, "aarch64"},
                                                                  {MemoryModel::RiscV, "riscv"},
                                                                  {MemoryModel::Lkmm, "lkmm"}}};

constexpr std::string_view to_string(MemoryModel model) {
  for (const MemoryModelName& each : kMemoryModels) {
    if (each.model == model) return each.name;
  }
  return "";
}
// Returns the model's name for people.
constexpr std::string_view title(MemoryModel model) {
  switch (model) {
    case MemoryModel::Rc11:
      return "RC11";
    case MemoryModel::AArch64:
      return "AArch64";
    case MemoryModel::RiscV:
      return "RISC-V";
    case MemoryModel::Lkmm:
      break;
  }
  return "LKMM";
}

}  // namespace perfring::model

#endif  // HARNESS_MODEL_LITMUS_MEMORY_MODEL_H_
