#include "harness/model/protocol.h"

#include <memory>

namespace perfring::model {
namespace {

constexpr std::uint64_t kWords = 4;

struct Shared {
  Protocol options;
  Var head, tail;
  std::vector<Var> ring;

  bool atomic_words() const { return options.form == Protocol::Form::A; }
  unsigned length(unsigned record) const {
    return options.lengths[record % options.lengths.size()];
  }
  const Var& word(std::uint64_t position) const { return ring[position % kWords]; }

  void write(std::uint64_t position) const {
    if (atomic_words()) {
      word(position).store(position + 1, std::memory_order_relaxed);
    } else {
      word(position).write(position + 1);
    }
  }
  void read(std::uint64_t position) const {
    const std::uint64_t value =
        atomic_words() ? word(position).load(std::memory_order_relaxed) : word(position).read();
    check(value == position + 1, "a word differs from what was written there");
  }
};

void barrier(Protocol::Barrier barrier) {
  switch (barrier) {
    case Protocol::Barrier::None:
      return;
    case Protocol::Barrier::Acquire:
      return fence(std::memory_order_acquire);
    case Protocol::Barrier::Release:
      return fence(std::memory_order_release);
    case Protocol::Barrier::Full:
      return fence(std::memory_order_seq_cst);
    case Protocol::Barrier::StoreStore:
      return fence_store_store();
  }
}

bool has_space(const Shared& shared, std::uint64_t head, std::uint64_t tail, std::uint64_t need) {
  using Space = Protocol::Space;
  const std::uint64_t used = head - tail;
  switch (shared.options.space) {
    case Space::Unchecked:
      return true;
    case Space::OneTooMany:
      return used + need <= kWords + 1;
    case Space::AllOfIt:
      return used + need <= kWords;
    case Space::AllModuloSize:  // who counts so takes a full ring for an empty one
      return used % kWords + need <= kWords;
    case Space::Checked:
      break;
  }
  return used + need <= kWords - 1;
}

void produce(const Shared& shared) {
  const Protocol& options = shared.options;
  const auto tail_order =
      shared.atomic_words() ? std::memory_order_relaxed : std::memory_order_acquire;
  std::uint64_t head = 0;
  for (unsigned record = 0; record < options.records; ++record) {
    checkpoint({record, head});
    const std::uint64_t need = shared.length(record);
    const std::uint64_t tail = shared.tail.load(tail_order);  // A
    if (!has_space(shared, head, tail, need)) continue;
    for (std::uint64_t i = 0; i < need; ++i) shared.write(head + i);
    head += need;
    barrier(options.before_head_store);  // B
    shared.head.store(head, std::memory_order_relaxed);
  }
  checkpoint({options.records});
}

void drain(const Shared& shared, std::uint64_t& tail) {
  using Commit = Protocol::Commit;
  const Protocol& options = shared.options;
  if (options.fence_before_head_load) fence(std::memory_order_acquire);
  std::uint64_t head = shared.head.load(std::memory_order_relaxed);
  barrier(options.after_head_load);  // C
  if (options.head_read_again) head = shared.head.load(std::memory_order_relaxed);
  if (head == tail) return;
  const auto commit = [&](std::uint64_t position) {
    barrier(options.before_tail_store);  // D
    shared.tail.store(position, std::memory_order_relaxed);
  };
  if (options.commit == Commit::BeforeBatch) commit(head);
  for (; tail != head; ++tail) shared.read(tail);
  if (options.commit == Commit::AfterBatch) commit(tail);
}

}  // namespace

Program protocol(const Protocol& options) {
  Program program;
  program.name = "protocol";
  const auto shared = std::make_shared<Shared>();
  shared->options = options;
  shared->head = program.var("data_head");
  shared->tail = program.var("data_tail");
  for (std::uint64_t i = 0; i < kWords; ++i) {
    shared->ring.push_back(program.var("data[" + std::to_string(i) + "]"));
  }
  program.threads.emplace_back([shared] { produce(*shared); });
  program.threads.emplace_back([shared] {
    std::uint64_t tail = 0;
    for (unsigned poll = 0; poll < shared->options.polls; ++poll) {
      checkpoint({poll, tail});
      drain(*shared, tail);
    }
    checkpoint({shared->options.polls});
  });
  return program;
}

}  // namespace perfring::model
