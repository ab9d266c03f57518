// Each kernel and each consumer here makes one error. The run must say what it violates.

#include "fuzz/script_run.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>

#include "harness/script/script.h"

namespace perfring::fuzz {
namespace {

using Cpu = ScriptRun::WatchedCpu;
using WatchedMemory = ScriptRun::WatchedMemory;

template <class C, class M>
class FaultyRun final : public ScriptRun {
 public:
  explicit FaultyRun(const script::Script& script)
      : ScriptRun{script},
        ring_{*Ring<M>::over(*rb().user_page,
                             {rb().data_pages, static_cast<std::size_t>(rb().data_size())})} {
    cpu_.run = this;
  }

 private:
  int emit(const kernel::bpf_array& map, __u64 index, std::span<const std::byte> payload) override {
    return kernel::bpf_perf_event_output(cpu_, map, index, payload);
  }
  bool readable() const override { return ring_.readable(); }
  void try_fold(const Visit& visit) override { static_cast<void>(ring_.try_fold(Unit{}, visit)); }

  C cpu_;
  Ring<M> ring_;
};

// What is violated by the script, which violates nothing where kernel and consumer are sound.
template <class C, class M = WatchedMemory>
std::string violated(std::string_view text) {
  const auto script = script::parse_script(text);
  if (!script) return script.error();
  EXPECT_EQ((FaultyRun<Cpu, WatchedMemory>{*script}.run()), std::nullopt);
  return FaultyRun<C, M>{*script}.run().value_or("nothing");
}
template <class M>
std::string violated_by_consumer(std::string_view text) {
  return violated<Cpu, M>(text);
}

void expect_begins(const std::string& found, const std::string& expected) {
  EXPECT_EQ(found.substr(0, expected.size()), expected);
}

struct MisjudgesRoom : Cpu {
  __u64 read_once(const __u64& data_tail) const { return Cpu::read_once(data_tail) + 8; }
};
TEST(ScriptRun, FindsARefusalThoughThereIsRoom) {
  EXPECT_EQ(violated<MisjudgesRoom>("output 4\n"),
            "no_loss: 16 bytes were refused, with 0 of 4096 unread");
}

// For as long as it looks at it.
struct TakesTheRingForPaused : Cpu {
  void irq_work_queue(kernel::perf_event& event) {
    Cpu::irq_work_queue(event);
    rb = event.rb.load();
    rb->paused.store(true);
  }
  void step() {
    if (rb != nullptr) rb->paused.store(false);
    Cpu::step();
  }
  kernel::perf_buffer* rb = nullptr;
};
TEST(ScriptRun, FindsARefusalThoughNothingIsPaused) {
  EXPECT_EQ(violated<TakesTheRingForPaused>("output 4\noutput 4\n"),
            "no_loss: refused, though the ring is not paused");
}

struct CountsNoLoss : Cpu {
  void lost(kernel::perf_buffer& rb, const kernel::perf_event& event) {
    Cpu::lost(rb, event);
    rb.lost = 0;
  }
};
TEST(ScriptRun, FindsALossThatIsNotToldOf) {
  expect_begins(violated<CountsNoLoss>("output 4068\noutput 4\ndrain 1\noutput 4\n"),
                "no_loss: 16 bytes reserved at 4080, where 40 ");
}

struct CountsLossesTwice : Cpu {
  void told(const kernel::perf_buffer& rb, __u64 lost) { Cpu::told(rb, 2 * lost); }
};
TEST(ScriptRun, FindsALossThatIsToldOfTwice) {
  expect_begins(violated<CountsLossesTwice>("output 4068\noutput 4\ndrain 1\noutput 4\n"),
                "no_loss: a LOST of 2 where 1 were refused");
}

struct SetsNoFlag : Cpu {
  void irq_work_queue(kernel::perf_event& event) { event.rb.load()->poll.store(0); }
};
TEST(ScriptRun, FindsThatPollIsSilentOfARecord) {
  EXPECT_EQ(violated<SetsNoFlag>("output 4\npoll\n"), "awake: poll says nothing, which is not so");
}

struct TellsOfRefusals : Cpu {
  void lost(kernel::perf_buffer& rb, const kernel::perf_event& event) {
    Cpu::lost(rb, event);
    rb.poll.store(EPOLLIN | EPOLLRDNORM);
  }
};
TEST(ScriptRun, FindsThatPollTellsOfNothing) {
  EXPECT_EQ(violated<TellsOfRefusals>("output 4068\npoll\noutput 4\npoll\n"),
            "awake: poll says IN, which is not so");
}

struct PublishesThePayloadsEnd : Cpu {
  void write_once(__u64& data_head, __u64 value) { Cpu::write_once(data_head, value - 4); }
};
TEST(ScriptRun, FindsADataHeadWithinARecord) {
  EXPECT_EQ(violated<PublishesThePayloadsEnd>("output 4\n"), "data_head 0xc was published");
}

// All bytes are there; but whoever says so is another than the kernel's last store.
struct ShowsTheUnpublished : Cpu {
  void reserved(const kernel::perf_buffer& buffer, __u64 position, std::size_t size) {
    Cpu::reserved(buffer, position, size);
    rb = &buffer;
  }
  void step() {
    if (rb != nullptr) HardwareCpu::write_once(rb->user_page->data_head, rb->head);
    Cpu::step();
  }
  const kernel::perf_buffer* rb = nullptr;
};
TEST(ScriptRun, FindsARecordThatIsNotPublished) {
  expect_begins(violated<ShowsTheUnpublished>("output 4\noutput 4\n> at 16 drain 2\n"),
                "no_invention: ");
}

struct OverwritesTheUnread : Cpu {
  __u64 read_once(const __u64& data_tail) const {
    static_cast<void>(Cpu::read_once(data_tail));
    return head;
  }
  void write_once(__u64& data_head, __u64 value) {
    Cpu::write_once(data_head, value);
    head = value;
  }
  __u64 head = 0;
};
TEST(ScriptRun, FindsThatTheUnreadIsOverwritten) {
  expect_begins(violated<OverwritesTheUnread>("output 4068\noutput 4\n"),
                "no_early_release: 16 bytes reserved at 4080 ");
}

// At the ring's beginning, beside what it is to write.
struct Scribbles : Cpu {
  void reserved(const kernel::perf_buffer& buffer, __u64 position, std::size_t size) {
    Cpu::reserved(buffer, position, size);
    if (position != 0) buffer.data_pages[12] ^= std::byte{1};
  }
};
TEST(ScriptRun, FindsThatAnEventChangesUnderTheCallback) {
  expect_begins(violated<Scribbles>("output 4\ndrain 1\n> at 0 output 4\n"), "no_early_release: ");
}

struct GivesTheRingUp : Cpu {
  void irq_work_queue(kernel::perf_event& event) {
    Cpu::irq_work_queue(event);
    event.rb.store(nullptr);
  }
};
TEST(ScriptRun, FindsARefusalThatIsNotCounted) {
  expect_begins(violated<GivesTheRingUp>("output 4\noutput 4\n"), "no_loss: ");
}

// Its drains end after 16 bytes.
struct TakesOneAtATime : WatchedMemory {
  static Position read_once(const SharedPosition& data_head) {
    return std::min(WatchedMemory::read_once(data_head), static_cast<Position>(tail + 16));
  }
  static void write_once(SharedPosition& data_tail, SharedPosition value) {
    WatchedMemory::write_once(data_tail, value);
    tail = static_cast<Position>(value);
  }
  static inline Position tail = 0;
};
TEST(ScriptRun, FindsThatTwoDrainsDoNotEmptyAnIdleRing) {
  EXPECT_EQ(violated_by_consumer<TakesOneAtATime>("output 4\noutput 4\noutput 4\n"),
            "bounded: two drains of an idle ring have not emptied it");
}

struct LeavesTheLast : WatchedMemory {
  static Position read_once(const SharedPosition& data_head) {
    return WatchedMemory::read_once(data_head) - 16;
  }
};
TEST(ScriptRun, FindsARecordThatIsLeft) {
  expect_begins(violated_by_consumer<LeavesTheLast>("output 4\n"), "no_loss: ");
}

struct ReleasesTooLittle : WatchedMemory {
  static void write_once(SharedPosition& data_tail, SharedPosition value) {
    WatchedMemory::write_once(data_tail, value - 8);
  }
};
TEST(ScriptRun, FindsADataTailThatIsNotAsDelivered) {
  expect_begins(violated_by_consumer<ReleasesTooLittle>("output 4\ndrain 1\n"), "tail_honest: ");
  expect_begins(violated_by_consumer<ReleasesTooLittle>("output 4\nthrow 1\n"), "tail_honest: ");
}

// In front of the ring, which is a page long, lies its control page.
struct ReadsBehind : WatchedMemory {
  template <class T>
  static T read(const std::byte* address) {
    if constexpr (sizeof(T) == 4) static_cast<void>(WatchedMemory::read<T>(address - 4096));
    return WatchedMemory::read<T>(address);
  }
};
TEST(ScriptRun, FindsAReadOutsideTheRing) {
  expect_begins(violated_by_consumer<ReadsBehind>("output 4\n"), "in_ring: ");
}

struct MistakesALength : WatchedMemory {
  template <class T>
  static T read(const std::byte* address) {
    return WatchedMemory::read<T>(address) - (sizeof(T) == 4 ? 4 : 0);
  }
};
TEST(ScriptRun, FindsASampleThatIsNotWhole) {
  expect_begins(violated_by_consumer<MistakesALength>("output 12\n"), "intact: ");
}

}  // namespace
}  // namespace perfring::fuzz
