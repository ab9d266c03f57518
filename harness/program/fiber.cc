#include "harness/program/fiber.h"

#include <cxxabi.h>
#include <sys/mman.h>
#include <unistd.h>

#include <boost/context/stack_context.hpp>
#include <cstring>
#include <memory>
#include <new>
#include <utility>

#include "harness/program/sanitizers.h"

namespace perfring {
namespace {

constexpr std::size_t kStackSize = 512 << 10;

// On POWER, Boost 1.74's switch (jump_ppc64_sysv_elf_gas.S) does not save the floating-point and
// vector registers that a callee must preserve under ELFv2. A function that inlines this one saves
// and restores them, because they are named here.
inline void keep_registers() {
#ifdef __powerpc64__
  asm volatile("" ::
                   : "fr14", "fr15", "fr16", "fr17", "fr18", "fr19", "fr20", "fr21", "fr22", "fr23",
                     "fr24", "fr25", "fr26", "fr27", "fr28", "fr29", "fr30", "fr31", "v20", "v21",
                     "v22", "v23", "v24", "v25", "v26", "v27", "v28", "v29", "v30", "v31");
#endif
}

}  // namespace

// The stack, above a guard page. (Boost's protected_fixedsize_stack asserts that mprotect(2)
// succeeds, but it fails if there are 65530 mappings: vm.max_map_count.)
class Fiber::Stack {
 public:
  explicit Stack(Fiber& fiber) : fiber_{&fiber} {}
  boost::context::stack_context allocate() {
    const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    void* const bottom = ::mmap(nullptr, kStackSize + page, PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (bottom == MAP_FAILED) throw std::bad_alloc{};
    if (::mprotect(bottom, page, PROT_NONE) != 0) {
      ::munmap(bottom, kStackSize + page);
      throw std::bad_alloc{};
    }
    boost::context::stack_context stack;
    stack.size = kStackSize + page;
    stack.sp = static_cast<std::byte*>(bottom) + stack.size;
    fiber_->stack_size_ = stack.size;
    fiber_->stack_bottom_ = static_cast<const std::byte*>(bottom);
    return stack;
  }
  void deallocate(boost::context::stack_context& stack) noexcept {
    ::munmap(static_cast<std::byte*>(stack.sp) - stack.size, stack.size);
  }

 private:
  Fiber* fiber_;
};

Fiber::Fiber(std::function<void()> body) : body_{std::move(body)}, inside_{} {
#ifdef PERFRING_TSAN
  tsan_inside_ = __tsan_create_fiber(0);
#endif
}

// Keeps a suspended fiber: Boost's destructor would resume it, to unwind its stack.
Fiber::~Fiber() {
  if (!started_ || done_) inside_.~fiber();
#ifdef PERFRING_TSAN
  __tsan_destroy_fiber(tsan_inside_);
#endif
}

void Fiber::swap_exceptions() {
  auto* const globals = reinterpret_cast<Exceptions*>(abi::__cxa_get_globals());
  std::swap(*globals, exceptions_);
}

boost::context::fiber Fiber::run(boost::context::fiber outside) {
#ifdef PERFRING_ASAN
  __sanitizer_finish_switch_fiber(nullptr, &outside_bottom_, &outside_size_);
#endif
  outside_ = std::move(outside);
  body_();
  done_ = true;
#ifdef PERFRING_TSAN
  __tsan_switch_to_fiber(tsan_outside_, 0);
#endif
#ifdef PERFRING_ASAN
  __sanitizer_start_switch_fiber(nullptr, outside_bottom_, outside_size_);
#endif
  return std::move(outside_);
}

void Fiber::resume() {
  if (!started_) {
    inside_ = boost::context::fiber{
        std::allocator_arg, Stack{*this},
        [this](boost::context::fiber&& outside) { return run(std::move(outside)); }};
    started_ = true;
  }
  swap_exceptions();
#ifdef PERFRING_TSAN
  tsan_outside_ = __tsan_get_current_fiber();
  __tsan_switch_to_fiber(tsan_inside_, 0);
#endif
#ifdef PERFRING_ASAN
  __sanitizer_start_switch_fiber(&outside_fake_stack_, stack_bottom_, stack_size_);
#endif
  keep_registers();
  inside_ = std::move(inside_).resume();
#ifdef PERFRING_ASAN
  __sanitizer_finish_switch_fiber(outside_fake_stack_, nullptr, nullptr);
#endif
  swap_exceptions();
}

void Fiber::suspend() {
#ifdef PERFRING_TSAN
  __tsan_switch_to_fiber(tsan_outside_, 0);
#endif
#ifdef PERFRING_ASAN
  __sanitizer_start_switch_fiber(&fake_stack_, outside_bottom_, outside_size_);
#endif
  keep_registers();
  outside_ = std::move(outside_).resume();
#ifdef PERFRING_ASAN
  __sanitizer_finish_switch_fiber(fake_stack_, &outside_bottom_, &outside_size_);
#endif
}

}  // namespace perfring
