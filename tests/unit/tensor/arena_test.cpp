// The step arena: alignment, rewinding, measuring, and overflow.
#include "tensor/arena.h"

#include <gtest/gtest.h>

namespace banyan::arena_test {
namespace {

TEST(Arena, AlignsEveryBlockAndKeepsThemApart) {
  Arena arena(4096);
  auto* a = static_cast<std::byte*>(arena.allocate(1));
  auto* b = static_cast<std::byte*>(arena.allocate(65));
  auto* c = static_cast<std::byte*>(arena.allocate(0));
  EXPECT_EQ(reinterpret_cast<uintptr_t>(a) % Arena::kAlignment, 0u);
  EXPECT_EQ(b - a, 64);
  EXPECT_EQ(c - b, 128);
}

TEST(Arena, RewindGivesTheSameBytesAgain) {
  Arena arena(1024);
  arena.allocate(64);
  size_t mark = arena.mark();
  void* first = arena.allocate(512);
  arena.rewind(mark);
  EXPECT_EQ(arena.allocate(256), first);
  EXPECT_EQ(arena.high_water_bytes(), 64u + 512u);
}

TEST(Arena, LastBytesStayWhereTheyAre) {
  Arena arena(1024), measuring;
  auto* begin = static_cast<std::byte*>(arena.allocate(64));
  auto* last = static_cast<std::byte*>(arena.last(200));
  EXPECT_EQ(last - begin, 1024 - 256);
  arena.allocate(640);
  EXPECT_EQ(arena.last(256), last);
  EXPECT_EQ(arena.high_water_bytes(), 64u + 640u + 256u);
  measuring.allocate(100);
  EXPECT_NE(measuring.last(300), nullptr);
  EXPECT_EQ(measuring.high_water_bytes(), 128u + 320u);
  EXPECT_EQ(measuring.mark(), 128u);
}

TEST(Arena, MeasuresWithoutMemory) {
  Arena measuring;
  EXPECT_NE(measuring.allocate(100), nullptr);
  size_t mark = measuring.mark();
  const void* x = measuring.allocate(1 << 30);
  measuring.rewind(mark);
  EXPECT_EQ(measuring.allocate(1), x);
  EXPECT_EQ(measuring.high_water_bytes(), 128u + (1u << 30));
  EXPECT_EQ(measuring.mark(), 128u + 64u);
}

TEST(ArenaDeathTest, AbortsWhenItIsTooSmall) {
  Arena arena(128);
  arena.allocate(128);
  EXPECT_DEATH(arena.allocate(1), "step arena: 192 of 128 bytes");
  EXPECT_DEATH(arena.last(1), "step arena: 192 of 128 bytes");
}

}  // namespace
}  // namespace banyan::arena_test
