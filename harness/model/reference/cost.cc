#include "harness/model/reference/cost.h"

#include <cstddef>
#include <vector>

namespace perfring::model::reference {
namespace {

template <class F>
void for_each_op(const std::vector<Op>& ops, F f) {
  for (const Op& op : ops) {
    f(op);
    for_each_op(op.body, f);
  }
}

}  // namespace

std::uint64_t cost(const LitmusText& text) {
  constexpr std::uint64_t kMany = std::uint64_t{1} << 32;
  std::vector<std::uint64_t> stored(text.locations.size(), 1);
  for (const auto& thread : text.threads) {
    for_each_op(thread, [&](const Op& op) {
      const bool copies = op.kind == Op::Kind::FetchAdd || op.kind == Op::Kind::WriteRegister;
      if (op.stores()) stored[op.location] += copies ? 3 : 1;  // of any value read
    });
  }
  std::uint64_t product = 1;
  for (const std::uint64_t stores : stored) {
    for (std::uint64_t i = 2; i < stores && product < kMany; ++i) product *= i;
  }
  for (const auto& thread : text.threads) {
    for_each_op(thread, [&](const Op& op) {
      if (op.reads() && product < kMany) product *= stored[op.location];
    });
  }
  return product;
}

}  // namespace perfring::model::reference
