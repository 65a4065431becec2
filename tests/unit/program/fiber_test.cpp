// Fibers: suspension, exceptions, reuse of stacks, and the guard page.
#include "program/fiber.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

namespace banyan::fiber_test {
namespace {

TEST(Fiber, StopsAndGoesOn) {
  StackPool stacks(64 << 10);
  std::string log;
  Fiber a(stacks, [&] {
    log += "a1 ";
    Fiber::current()->suspend();
    log += "a2 ";
  });
  Fiber b(stacks, [&] {
    log += "b1 ";
    Fiber::current()->suspend();
    log += "b2 ";
  });
  EXPECT_EQ(Fiber::current(), nullptr);
  for (int i = 0; i < 2; ++i) {
    a.resume();
    b.resume();
  }
  EXPECT_EQ(log, "a1 b1 a2 b2 ");
  EXPECT_TRUE(a.ended() && b.ended());
}

// What is being handled is a fiber's own, though a thread's fibers take turns within handlers.
TEST(Fiber, ExceptionsOfDifferentFibersDoNotMix) {
  StackPool stacks(64 << 10);
  auto body = [](const char* what, std::string& rethrown) {
    return [what, &rethrown] {
      try {
        throw std::runtime_error(what);
      } catch (...) {
        Fiber::current()->suspend();
        try {
          throw;
        } catch (const std::runtime_error& e) {
          rethrown = e.what();
        }
      }
    };
  };
  std::string of_a, of_b;
  Fiber a(stacks, body("a", of_a)), b(stacks, body("b", of_b));
  a.resume();
  b.resume();
  EXPECT_EQ(std::uncaught_exceptions(), 0);
  a.resume();
  b.resume();
  EXPECT_EQ(of_a, "a");
  EXPECT_EQ(of_b, "b");
}

TEST(Fiber, StacksAreUsedAgain) {
  StackPool stacks(1);
  EXPECT_GE(stacks.bytes(), 1u);
  void* first = stacks.take();
  stacks.give_back(first);
  EXPECT_EQ(stacks.take(), first);
  stacks.give_back(first);
}

TEST(FiberDeathTest, ADeepStackEndsAtItsGuard) {
  auto overflow = [] {
    StackPool stacks(16 << 10);
    Fiber f(stacks, [] {
      volatile char bytes[64 << 10];
      for (size_t i = sizeof(bytes); i > 0; i -= 64) bytes[i - 1] = 1;
    });
    f.resume();
  };
  EXPECT_DEATH(overflow(), "");
}

}  // namespace
}  // namespace banyan::fiber_test
