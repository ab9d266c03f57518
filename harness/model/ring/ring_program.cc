#include "harness/model/ring/ring_program.h"

#include <string_view>

namespace perfring::model {
namespace {

// Drains the rest while the kernel is idle: everything is published, and one drain takes all of it
// unless its callback breaks off.
void drain_the_rest(ModelConsumer& user, Tally& tally, const RingOptions& options,
                    unsigned attempted) {
  const bool breaks_off = options.consume == Consume::Break || options.consume == Consume::Throw;
  for (unsigned i = 0; i < attempted && user.readable(); ++i) {
    user.drain(tally, options);
    if (!breaks_off) check(!user.readable(), kNotEmptied);
  }
  check(!user.readable(), kUndelivered);
}

}  // namespace

RingOptions options_of(std::string_view program, RingOptions options) {
  if (program == "ring/fold") options.consume = Consume::Fold;
  if (program == "ring/try_fold") options.consume = Consume::TryFold;
  if (program == "ring/break") options.consume = Consume::Break;
  if (program == "ring/throw") options.consume = Consume::Throw;
  if (program == "ring/oversize") options.oversize = true;
  if (program == "ring/straddle") options.start = options.ring_bytes / 2;
  if (program == "ring/wrap_32") {
    options.word = kernel::Word::k32;
    options.start = 0xffff'ffe8;
  }
  return options;
}

Program ring_program(const RingOptions& options, Producing kernel, Consuming user) {
  Program program;
  program.name = "ring";
  program.thread_names = {"kernel", "user"};
  const __u64 head =
      options.word == kernel::Word::k64 ? options.start : options.start & 0xffff'ffff;
  const auto ring = std::make_shared<ModelRing>(program, options.ring_bytes, options.atomic_words,
                                                head, options.start);
  const Var not_reported = program.var("lost, not reported");
  const Var delivered = program.var("delivered");
  const Var reported = program.var("reported lost");
  program.threads.emplace_back([=] {
    ModelRing::here = ring.get();
    not_reported.write(kernel(*ring, options));
  });
  program.threads.emplace_back([=] {
    ModelRing::here = ring.get();
    const auto consumer = user(*ring);
    Tally tally;
    tally.tail = options.start;
    for (unsigned drain = 0; drain < options.drains; ++drain) {
      checkpoint({drain, tally.next, tally.nested, tally.lost, tally.tail});
      consumer->drain(tally, options);
    }
    delivered.write(tally.delivered());
    reported.write(tally.lost | std::uint64_t{tally.nested} << 32);
  });
  program.finally = [=] {
    ModelRing::here = ring.get();
    const auto consumer = user(*ring);
    Tally tally;
    const std::uint64_t lost_and_nested = reported.read();
    tally.lost = static_cast<std::uint32_t>(lost_and_nested);
    tally.nested = static_cast<std::uint32_t>(lost_and_nested >> 32);
    tally.next = static_cast<std::uint32_t>(delivered.read()) + tally.lost - tally.nested;
    tally.tail = own_tail();
    const unsigned attempted = options.records + (options.interrupted_at != 0 ? 1 : 0);
    drain_the_rest(*consumer, tally, options, attempted);
    if (options.oversize) return;
    check(tally.delivered() + tally.lost + not_reported.read() == attempted, kNotAll);
  };
  return program;
}

}  // namespace perfring::model
