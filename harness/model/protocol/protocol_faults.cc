#include <algorithm>
#include <array>

#include "harness/model/engine/trace.h"
#include "harness/model/protocol/protocol.h"

namespace perfring::model {
namespace {

using B = Protocol::Barrier;
using C = Protocol::Commit;
using S = Protocol::Space;
using P = Protocol;

constexpr const char* kOtherWord = "intact: a word differs from what was written there";
constexpr const char* kPastDataHead = "in_ring: a record is taken to end past data_head";

const std::array kFaults = {
    ProtocolFault{"no_acquire_fence", [](P& p) { p.after_head_load = B::None; }, kOtherWord,
                  kDataRace},
    ProtocolFault{"acquire_fence_first",
                  [](P& p) { p.after_head_load = B::None, p.fence_before_head_load = true; },
                  kOtherWord, kDataRace},
    ProtocolFault{"head_read_again", [](P& p) { p.head_read_again = true; }, kOtherWord, kDataRace},
    ProtocolFault{"no_control_dependency", [](P& p) { p.control_dependency = false; }, nullptr,
                  nullptr},
    ProtocolFault{"no_full_fence", [](P& p) { p.before_tail_store = B::None; }, nullptr, kDataRace},
    ProtocolFault{"release_for_full", [](P& p) { p.before_tail_store = B::Release; }, nullptr,
                  nullptr},
    ProtocolFault{"acquire_for_full", [](P& p) { p.before_tail_store = B::Acquire; }, nullptr,
                  kDataRace},
    ProtocolFault{"store_store_for_full", [](P& p) { p.before_tail_store = B::StoreStore; },
                  nullptr, kDataRace},
    ProtocolFault{"no_smp_wmb", [](P& p) { p.before_head_store = B::None; }, kOtherWord, kDataRace},
    ProtocolFault{"store_store_for_release", [](P& p) { p.before_head_store = B::StoreStore; },
                  nullptr, nullptr},
    ProtocolFault{"space_off_by_8", [](P& p) { p.space = S::AllOfIt; }, nullptr, nullptr},
    ProtocolFault{"full_ring_modulo", [](P& p) { p.space = S::AllOfIt, p.modulo_size = true; },
                  "no_loss: not all that was written was delivered",
                  "no_loss: not all that was written was delivered"},
    ProtocolFault{"ignores_tail", [](P& p) { p.space = S::Unchecked; }, kOtherWord, kOtherWord},
    ProtocolFault{"one_record_too_many", [](P& p) { p.space = S::OneTooMany; }, kOtherWord,
                  kOtherWord},
    ProtocolFault{"commits_first", [](P& p) { p.commit = C::BeforeBatch; }, kOtherWord, kDataRace},
    ProtocolFault{"commits_early", [](P& p) { p.commit = C::AfterEachHeader; }, kOtherWord,
                  kDataRace},
    ProtocolFault{"commits_by_record", [](P& p) { p.commit = C::AfterEachRecord; }, nullptr,
                  nullptr},
    ProtocolFault{"commits_by_record_unfenced",
                  [](P& p) { p.commit = C::AfterEachRecord, p.before_tail_store = B::None; },
                  nullptr, kDataRace},
    ProtocolFault{"publishes_first", [](P& p) { p.head_first = true; }, kOtherWord, kDataRace},
    ProtocolFault{"aya_until_2026",
                  [](P& p) { p.after_head_load = B::None, p.commit = C::AfterEachRecord; },
                  kOtherWord, kDataRace},
    // The kernel itself races then: user space cannot prevent it.
    ProtocolFault{"oversize", [](P& p) { p.oversize = true; }, nullptr, kDataRace},
    ProtocolFault{"header_read_twice", [](P& p) { p.oversize = p.header_read_twice = true; },
                  kPastDataHead, kPastDataHead},
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
