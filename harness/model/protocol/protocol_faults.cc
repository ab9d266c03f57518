#include <algorithm>
#include <array>

#include "harness/model/protocol/protocol.h"

namespace perfring::model {
namespace {

using B = Protocol::Barrier;
using C = Protocol::Commit;
using S = Protocol::Space;
using P = Protocol;

const std::array kFaults = {
    ProtocolFault{"no_acquire_fence", [](P& p) { p.after_head_load = B::None; }, true, true},
    ProtocolFault{"acquire_fence_first",
                  [](P& p) { p.after_head_load = B::None, p.fence_before_head_load = true; }, true,
                  true},
    ProtocolFault{"head_read_again", [](P& p) { p.head_read_again = true; }, true, true},
    ProtocolFault{"no_control_dependency", [](P& p) { p.control_dependency = false; }, false,
                  false},
    ProtocolFault{"no_full_fence", [](P& p) { p.before_tail_store = B::None; }, false, true},
    ProtocolFault{"release_for_full", [](P& p) { p.before_tail_store = B::Release; }, false, false},
    ProtocolFault{"acquire_for_full", [](P& p) { p.before_tail_store = B::Acquire; }, false, true},
    ProtocolFault{"store_store_for_full", [](P& p) { p.before_tail_store = B::StoreStore; }, false,
                  true},
    ProtocolFault{"no_smp_wmb", [](P& p) { p.before_head_store = B::None; }, true, true},
    ProtocolFault{"store_store_for_release", [](P& p) { p.before_head_store = B::StoreStore; },
                  false, false},
    ProtocolFault{"space_off_by_8", [](P& p) { p.space = S::AllOfIt; }, false, false},
    ProtocolFault{"full_ring_modulo", [](P& p) { p.space = S::AllOfIt, p.modulo_size = true; },
                  true, true},
    ProtocolFault{"ignores_tail", [](P& p) { p.space = S::Unchecked; }, true, true},
    ProtocolFault{"one_record_too_many", [](P& p) { p.space = S::OneTooMany; }, true, true},
    ProtocolFault{"commits_first", [](P& p) { p.commit = C::BeforeBatch; }, true, true},
    ProtocolFault{"commits_early", [](P& p) { p.commit = C::AfterEachHeader; }, true, true},
    ProtocolFault{"commits_each", [](P& p) { p.commit = C::AfterEachRecord; }, false, false},
    ProtocolFault{"commits_each_unfenced",
                  [](P& p) { p.commit = C::AfterEachRecord, p.before_tail_store = B::None; }, false,
                  true},
    ProtocolFault{"publishes_first", [](P& p) { p.head_first = true; }, true, true},
    ProtocolFault{"aya_until_2026",
                  [](P& p) { p.after_head_load = B::None, p.commit = C::AfterEachRecord; }, true,
                  true},
    // The kernel itself races then: user space cannot prevent it.
    ProtocolFault{"oversize", [](P& p) { p.oversize = true; }, false, true},
    ProtocolFault{"header_read_twice", [](P& p) { p.oversize = p.header_read_twice = true; }, true,
                  true},
};

}  // namespace

std::span<const ProtocolFault> protocol_faults() {
  return kFaults;
}

const ProtocolFault* find_protocol_fault(const std::string& name) {
  const auto* const found = std::ranges::find(kFaults, name, &ProtocolFault::name);
  return found == kFaults.end() ? nullptr : found;
}

}  // namespace perfring::model
