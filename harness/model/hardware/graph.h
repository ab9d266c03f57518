#ifndef HARNESS_MODEL_HARDWARE_GRAPH_H_
#define HARNESS_MODEL_HARDWARE_GRAPH_H_

// An execution under a machine's memory model, complete or growing: reads-from, coherence, and the
// order in which memory sees the accesses (Arm's ob). The threads grow it one after another, so a
// read may wait for a store that a later thread has yet to do: this is load buffering.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "harness/model/engine/program.h"
#include "harness/model/engine/step.h"
#include "harness/model/engine/trace.h"
#include "harness/model/hardware/order.h"
#include "harness/model/litmus/memory_model.h"

namespace perfring::model {

// The sources of a read that reads from no access of the graph.
inline constexpr std::size_t kInitial = ~std::size_t{0};
inline constexpr std::size_t kAwaited = kInitial - 1;

struct Access {
  const Step* step = nullptr;
  std::size_t thread = 0;
  std::size_t location = 0;
  bool is_write = false;
  std::uint64_t value = 0;
  std::size_t source = kInitial;  // reads only

  bool awaits() const { return !is_write && source == kAwaited; }
};

struct Fence {
  const Step* step = nullptr;
  std::size_t thread = 0;
  std::size_t accesses = 0;  // the number of accesses in the graph before it
};

class Graph {
 public:
  // `machine` is not Rc11.
  Graph(MemoryModel machine, std::size_t locations, std::size_t threads)
      : machine_{machine}, orders_(threads), coherence_(locations) {}

  // Whether the graph stays consistent if the thread's next access reads from `source`.
  bool allows_read(std::size_t thread, const Step& read, std::size_t source) const;
  // Precondition: allows_read().
  void add_read(std::size_t thread, const Step& read, std::size_t source, std::uint64_t value);
  // add_write() and give() return whether the graph is still consistent. `place` is an index into
  // the location's stores; 0 is the first place after the initial value.
  bool add_write(std::size_t thread, const Step& write, std::size_t place);
  // Gives the store `write` to the read, which awaits its value.
  bool give(std::size_t read, std::size_t write);
  void add_fence(std::size_t thread, const Step& fence) {
    orders_[thread].add_fence(machine_, fence.order);
    fences_.push_back({&fence, thread, accesses_.size()});
  }
  void add_control(std::size_t thread, std::uint32_t read) { orders_[thread].add_control(read); }

  // Whether some read awaits a store that `thread` cannot do, because all its later stores would
  // come after the read.
  bool awaits_in_vain(std::size_t thread) const;

  const std::vector<Access>& accesses() const { return accesses_; }
  const std::vector<Fence>& fences() const { return fences_; }
  // Returns the stores to a location, in coherence order.
  const std::vector<std::size_t>& stores(std::size_t location) const {
    return coherence_[location];
  }
  const std::vector<std::size_t>& awaiting() const { return awaiting_; }
  // Returns the place of a store in the location's coherence order. kInitial has place 0.
  std::size_t place_of(std::size_t write, std::size_t location) const;
  // Returns the first place that a store of the thread may take: the one after its own last store.
  std::size_t first_place(std::size_t thread, std::size_t location) const;
  // Whether memory sees the two accesses in this order in every run that has this graph. Under
  // LKMM, where threads may see different orders, this is the part of happens-before that does not
  // follow from propagation (lkmm_allows()).
  bool comes_before(std::size_t first, std::size_t second) const { return before_[second][first]; }

 private:
  bool order(std::size_t first, std::size_t second);
  bool order_after_source(std::size_t read);
  bool coherent(std::size_t thread, std::size_t location) const;
  bool orders_stores() const { return machine_ != MemoryModel::Lkmm; }
  EventSet before_read(std::size_t thread, const Step& read, std::size_t source) const;
  EventSet closure(const EventSet& events) const;
  std::size_t add(Access access, const EventSet& before);

  MemoryModel machine_;
  std::vector<Access> accesses_;
  std::vector<Fence> fences_;
  std::vector<EventSet> before_;  // transitive
  std::vector<ThreadOrder> orders_;
  std::vector<std::vector<std::size_t>> coherence_;
  std::vector<std::size_t> awaiting_;
};

// Whether the kernel's memory model allows the graph, which must be coherent and have its
// happens-before (Graph::comes_before). Checks the axioms "happens-before" and "propagation" of
// tools/memory-model/linux-kernel.cat at v6.12, for plain READ_ONCE(), WRITE_ONCE(), acquiring
// loads, releasing stores, and the fences. A graph that violates an axiom also violates it after it
// has grown.
bool lkmm_allows(const Graph& graph);

struct FailedCheck {
  Cause cause;
  std::size_t accesses = 0;  // the number of accesses in the graph before it
  bool at_end = false;       // a check of Program::finally
};

// Returns the accesses that led to the failure, in an order in which memory may have seen them. It
// may differ from program order.
Trace graph_trace(const Program& program, const Graph& graph, const FailedCheck& failed);

}  // namespace perfring::model

#endif  // HARNESS_MODEL_HARDWARE_GRAPH_H_
