#include <algorithm>
#include <array>

#include "harness/model/protocol/protocol.h"

namespace perfring::model {
namespace {

using B = Protocol::Barrier;
using C = Protocol::Commit;
using S = Protocol::Space;
using P = Protocol;

const std::array kMutants = {
    ProtocolMutant{"no_acquire_fence", "no acquire fence after data_head is read",
                   [](P& p) { p.after_head_load = B::None; }, true, true},
    ProtocolMutant{"acquire_fence_first", "the acquire fence before data_head is read",
                   [](P& p) { p.after_head_load = B::None, p.fence_before_head_load = true; }, true,
                   true},
    ProtocolMutant{"head_read_again", "data_head read again, without a fence",
                   [](P& p) { p.head_read_again = true; }, true, true},
    ProtocolMutant{"no_full_fence", "no fence before data_tail is written",
                   [](P& p) { p.before_tail_store = B::None; }, false, true},
    ProtocolMutant{"release_for_full", "a release fence before data_tail is written",
                   [](P& p) { p.before_tail_store = B::Release; }, false, false},
    ProtocolMutant{"acquire_for_full", "an acquire fence before data_tail is written",
                   [](P& p) { p.before_tail_store = B::Acquire; }, false, true},
    ProtocolMutant{"store_store_for_full", "a store-store fence before data_tail is written",
                   [](P& p) { p.before_tail_store = B::StoreStore; }, false, true},
    ProtocolMutant{"no_smp_wmb", "no smp_wmb()", [](P& p) { p.before_head_store = B::None; }, true,
                   true},
    ProtocolMutant{"store_store_for_release", "smp_wmb() a store-store fence",
                   [](P& p) { p.before_head_store = B::StoreStore; }, false, false},
    ProtocolMutant{"full_ring", "a completely full ring, with positions that run free",
                   [](P& p) { p.space = S::AllOfIt; }, false, false},
    ProtocolMutant{"full_ring_modulo", "the same with positions modulo the ring's size",
                   [](P& p) { p.space = S::AllOfIt, p.modulo_size = true; }, true, true},
    ProtocolMutant{"ignores_tail", "data_tail is not looked at",
                   [](P& p) { p.space = S::Unchecked; }, true, true},
    ProtocolMutant{"one_word_too_many", "one word more than the ring has",
                   [](P& p) { p.space = S::OneTooMany; }, true, true},
    ProtocolMutant{"commits_first", "data_tail written before the batch is read",
                   [](P& p) { p.commit = C::BeforeBatch; }, true, true},
    ProtocolMutant{"tail_after_each_header",
                   "data_tail written after each header, before the payload is read",
                   [](P& p) { p.commit = C::AfterEachHeader; }, true, true},
    ProtocolMutant{"tail_after_each_record", "data_tail written after each record, with its fence",
                   [](P& p) { p.commit = C::AfterEachRecord; }, false, false},
    ProtocolMutant{"tail_each_unfenced", "data_tail written after each record, without a fence",
                   [](P& p) { p.commit = C::AfterEachRecord, p.before_tail_store = B::None; },
                   false, true},
    ProtocolMutant{"publishes_first", "data_head published before the record is written",
                   [](P& p) { p.head_first = true; }, true, true},
    ProtocolMutant{"aya_until_2026",
                   "aya until 2026: no acquire fence; a full fence and data_tail for each record",
                   [](P& p) { p.after_head_load = B::None, p.commit = C::AfterEachRecord; }, true,
                   true},
    // What the kernel does then is a race, whatever user space does.
    ProtocolMutant{"oversize", "a record longer than its length says overwrites what is unread",
                   [](P& p) { p.oversize = true; }, false, true},
    ProtocolMutant{"header_read_twice", "the same, and each header is read twice",
                   [](P& p) { p.oversize = p.header_read_twice = true; }, true, true},
};

}  // namespace

std::span<const ProtocolMutant> protocol_mutants() {
  return kMutants;
}

const ProtocolMutant* find_protocol_mutant(const std::string& name) {
  const auto* const found = std::ranges::find(kMutants, name, &ProtocolMutant::name);
  return found == kMutants.end() ? nullptr : found;
}

}  // namespace perfring::model
