// A function with its own stack that can be suspended and resumed.
//
// A fiber belongs to the thread that first resumes it and is only resumed there, since compilers
// may cache thread-local addresses. It must not be destroyed before its function returns. Contexts
// are switched with ucontext, and sanitizers are notified of each switch.
#pragma once

#include <ucontext.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

namespace banyan {

// Memory for stacks. Each is mapped, so a page takes memory only once touched, and lies above a
// guard page. Used by one thread.
class StackPool {
 public:
  static constexpr size_t kKept = 256;  // stacks kept after give_back()

  // `bytes` per stack, rounded up to pages.
  explicit StackPool(size_t bytes);
  ~StackPool();
  StackPool(const StackPool&) = delete;
  StackPool& operator=(const StackPool&) = delete;

  // Throws std::bad_alloc.
  void* take();
  void give_back(void* stack);
  size_t bytes() const { return bytes_; }

 private:
  void unmap(void* stack) const;

  size_t page_, bytes_;
  std::vector<void*> free_;
};

class Fiber {
 public:
  // `function` must not throw. Throws std::bad_alloc if no stack can be mapped.
  Fiber(StackPool& stacks, std::move_only_function<void()> function);
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  // Runs the fiber until it suspends or ends.
  void resume();
  bool ended() const { return ended_; }

  // The fiber running on this thread, or null.
  static Fiber* current();
  // Suspends the current fiber and returns to the thread that resumed it.
  void suspend();

 private:
  // The saved state of one side of a switch.
  struct Side {
    ucontext_t context;
    void* exceptions = nullptr;  // being handled
    unsigned uncaught = 0;
    void* sanitizer_fiber = nullptr;
    void* fake_stack = nullptr;
    const void* stack = nullptr;
    size_t stack_bytes = 0;
  };

  static void enter();
  static void change(Side& from, Side& to, bool last);
  static void arrive(Side& self, Side& other);

  StackPool& stacks_;
  std::move_only_function<void()> function_;
  Side inside_, outside_;
  bool ended_ = false;
};

}  // namespace banyan
