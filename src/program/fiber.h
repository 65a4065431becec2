// A function with a stack of its own, which can stop in the middle and go on later.
//
// A fiber belongs to the thread that resumes it first, and is resumed there alone: what a compiler
// remembers of thread-local addresses stays true. It may not end before its function does.
// ucontext switches contexts; the sanitizers are notified of each switch.
#pragma once

#include <ucontext.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

namespace banyan {

// Memory for stacks: mapped, so that a page takes memory once it is touched, above a page that
// faults. Of one thread.
class StackPool {
 public:
  static constexpr size_t kKept = 256;  // of those given back

  // `bytes` of each, rounded up to pages.
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
  // `function` must not throw. Throws std::bad_alloc when there is no stack.
  Fiber(StackPool& stacks, std::move_only_function<void()> function);
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  // Runs it until it suspends or ends.
  void resume();
  bool ended() const { return ended_; }

  // The fiber that runs on this thread, or null.
  static Fiber* current();
  // Of the current fiber: returns to the thread that resumed it.
  void suspend();

 private:
  // What one side of a switch leaves for its return.
  struct Side {
    ucontext_t context;
    void* exceptions = nullptr;  // those being handled
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
