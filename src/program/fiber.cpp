#include "program/fiber.h"

#include <cxxabi.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <new>

#include "base/check.h"
#include "base/signed.h"

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define BANYAN_FIBER_ASAN
#endif
#if __has_feature(thread_sanitizer)
#define BANYAN_FIBER_TSAN
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define BANYAN_FIBER_ASAN
#endif
#if defined(__SANITIZE_THREAD__)
#define BANYAN_FIBER_TSAN
#endif

#ifdef BANYAN_FIBER_ASAN
#include <sanitizer/common_interface_defs.h>
#endif
#ifdef BANYAN_FIBER_TSAN
#include <sanitizer/tsan_interface.h>
#endif

namespace banyan {
namespace {

thread_local Fiber* current_fiber = nullptr;

// The C++ runtime tracks the exceptions that a thread is handling; each fiber needs its own record.
// The layout is from the Itanium C++ ABI, section 2.2.2.
struct ExceptionState {
  void* handled;
  unsigned uncaught;
};

void save_exceptions(void*& handled, unsigned& uncaught) {
  ExceptionState state;
  std::memcpy(&state, abi::__cxa_get_globals(), sizeof(state));
  handled = state.handled;
  uncaught = state.uncaught;
}

void restore_exceptions(void* handled, unsigned uncaught) {
  ExceptionState state{handled, uncaught};
  std::memcpy(abi::__cxa_get_globals(), &state, sizeof(state));
}

[[gnu::noinline]] void prepare(ucontext_t& context, void* stack, size_t bytes, void (*enter)()) {
  CHECK(getcontext(&context) == 0);
  context.uc_stack.ss_sp = stack;
  context.uc_stack.ss_size = bytes;
  context.uc_link = nullptr;
  makecontext(&context, enter, 0);
}

}  // namespace

StackPool::StackPool(size_t bytes) : page_(as_size(sysconf(_SC_PAGESIZE))) {
  bytes_ = (bytes + page_ - 1) / page_ * page_;
}

StackPool::~StackPool() {
  for (void* stack : free_) unmap(stack);
}

void* StackPool::take() {
  if (!free_.empty()) {
    void* stack = free_.back();
    free_.pop_back();
    return stack;
  }
  void* mapped = mmap(nullptr, bytes_ + page_, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
  if (mapped == MAP_FAILED) throw std::bad_alloc();
  if (mprotect(mapped, page_, PROT_NONE) != 0) {
    munmap(mapped, bytes_ + page_);
    throw std::bad_alloc();
  }
  return static_cast<char*>(mapped) + page_;
}

void StackPool::give_back(void* stack) {
  if (free_.size() < kKept) {
    free_.push_back(stack);
  } else {
    unmap(stack);
  }
}

void StackPool::unmap(void* stack) const {
  munmap(static_cast<char*>(stack) - page_, bytes_ + page_);
}

Fiber::Fiber(StackPool& stacks, std::move_only_function<void()> function)
    : stacks_(stacks), function_(std::move(function)) {
  void* stack = stacks_.take();
  inside_.stack = stack;
  inside_.stack_bytes = stacks_.bytes();
  prepare(inside_.context, stack, stacks_.bytes(), &Fiber::enter);
#ifdef BANYAN_FIBER_TSAN
  inside_.sanitizer_fiber = __tsan_create_fiber(0);
#endif
}

Fiber::~Fiber() {
  CHECK(ended_, "a fiber's function has not ended");
#ifdef BANYAN_FIBER_TSAN
  __tsan_destroy_fiber(inside_.sanitizer_fiber);
#endif
  stacks_.give_back(const_cast<void*>(inside_.stack));
}

// Never inlined: the address of a thread-local must not be cached across a switch.
[[gnu::noinline]] Fiber* Fiber::current() {
  return current_fiber;
}

void Fiber::resume() {
  CHECK(!ended_ && current() == nullptr);
  current_fiber = this;
#ifdef BANYAN_FIBER_TSAN
  outside_.sanitizer_fiber = __tsan_get_current_fiber();
#endif
  change(outside_, inside_, false);
  current_fiber = nullptr;
}

void Fiber::suspend() {
  change(inside_, outside_, false);
}

void Fiber::enter() {
  Fiber* self = current();
  arrive(self->inside_, self->outside_);
  self->function_();
  self->function_ = nullptr;  // destroyed on the fiber's own stack
  self->ended_ = true;
  change(self->inside_, self->outside_, true);
}

// Switches from one side to the other; returns when switched back.
void Fiber::change(Side& from, Side& to, [[maybe_unused]] bool last) {
  save_exceptions(from.exceptions, from.uncaught);
  restore_exceptions(to.exceptions, to.uncaught);
#ifdef BANYAN_FIBER_ASAN
  __sanitizer_start_switch_fiber(last ? nullptr : &from.fake_stack, to.stack, to.stack_bytes);
#endif
#ifdef BANYAN_FIBER_TSAN
  __tsan_switch_to_fiber(to.sanitizer_fiber, 0);
#endif
  CHECK(swapcontext(&from.context, &to.context) == 0);
  arrive(from, to);
}

// `other` is the side we came from. On first entry to a fiber that side's stack is not known yet.
void Fiber::arrive([[maybe_unused]] Side& self, [[maybe_unused]] Side& other) {
#ifdef BANYAN_FIBER_ASAN
  const void* stack = nullptr;
  size_t bytes = 0;
  __sanitizer_finish_switch_fiber(self.fake_stack, &stack, &bytes);
  if (other.stack == nullptr) {
    other.stack = stack;
    other.stack_bytes = bytes;
  }
#endif
}

}  // namespace banyan
