#include <array>

#include "harness/model/programs/algorithms.h"

namespace perfring::model {
namespace {

constexpr auto kRelaxed = std::memory_order_relaxed;
constexpr auto kAcquire = std::memory_order_acquire;
constexpr auto kRelease = std::memory_order_release;

}  // namespace

Program spsc_queue(std::memory_order published, std::memory_order given_back) {
  constexpr std::uint64_t kValues = 3;
  Program program;
  const std::array slots{program.var("slot 0"), program.var("slot 1")};
  const Var head = program.var("head");
  const Var tail = program.var("tail");
  program.thread_names = {"push", "pop"};
  program.threads.emplace_back([=] {
    for (std::uint64_t i = 0; i < kValues; ++i) {
      assume(i - tail.load(kAcquire) < slots.size());
      slots[i % slots.size()].write(i + 1);
      head.store(i + 1, published);
    }
  });
  program.threads.emplace_back([=] {
    for (std::uint64_t i = 0; i < kValues; ++i) {
      assume(head.load(kAcquire) > i);
      check(slots[i % slots.size()].read() == i + 1, "a value is not the one that was pushed");
      tail.store(i + 1, given_back);
    }
  });
  return program;
}

Program seqlock(bool writer_fence, bool reader_fence) {
  Program program;
  const Var sequence = program.var("sequence");
  const std::array words{program.var("word 0"), program.var("word 1")};
  program.thread_names = {"writer", "reader"};
  program.threads.emplace_back([=] {
    for (std::uint64_t i = 1; i <= 2; ++i) {
      sequence.store(2 * i - 1, kRelaxed);
      if (writer_fence) fence(kRelease);
      for (const Var& word : words) word.store(i, kRelaxed);
      sequence.store(2 * i, kRelease);
    }
  });
  program.threads.emplace_back([=] {
    const std::uint64_t before = sequence.load(kAcquire);
    const std::uint64_t first = words[0].load(kRelaxed);
    const std::uint64_t second = words[1].load(kRelaxed);
    if (reader_fence) fence(kAcquire);
    if (before % 2 != 0 || sequence.load(kRelaxed) != before) return;
    check(first == before / 2 && second == before / 2, "the words are of different times");
  });
  return program;
}

Program message_passing(std::memory_order store, std::memory_order load) {
  Program program;
  const Var data = program.var("data");
  const Var flag = program.var("flag");
  program.thread_names = {"sender", "receiver"};
  program.threads.emplace_back([=] {
    data.write(1);
    flag.store(1, store);
  });
  program.threads.emplace_back([=] {
    if (flag.load(load) == 1) check(data.read() == 1, "the message is not there");
  });
  return program;
}

}  // namespace perfring::model
