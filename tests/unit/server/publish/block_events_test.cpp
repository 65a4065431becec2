// Cache events in vLLM's msgpack schema.
#include "server/publish/block_events.h"

#include <gtest/gtest.h>

#include "base/json.h"

namespace banyan::block_events_test {
namespace {

PageKey key(uint8_t name) {
  PageKey key;
  key.bytes.fill(name);
  return key;
}

KvEvent event(KvOperation operation, uint8_t page, uint8_t parent, uint8_t unit_class = 0) {
  return {.operation = operation,
          .unit = {.page = key(page), .unit_class = unit_class},
          .parent = key(parent)};
}

const std::vector<PrefixToken> kTokens = {5, 6, 7, 8};

TEST(BlockEvents, AreVllmsArrays) {
  std::vector<BlockEvent> events = {
      {.hashes = {1, ~uint64_t{0}}, .parent = 7, .tokens = {1, 2, 3, 4}},
      {.hashes = {2}, .tokens = {9, 9}},
      {.operation = KvOperation::kRemoved, .hashes = {1}},
      {.operation = KvOperation::kCleared}};
  std::string bytes = encode_batch(1.5, events, 2);
  Json batch = Json::from_msgpack(bytes);
  EXPECT_EQ(batch.dump(),
            R"([1.5,[["BlockStored",[1,18446744073709551615],7,[1,2,3,4],2,null,"GPU",null],)"
            R"(["BlockStored",[2],null,[9,9],2,null,"GPU",null],["BlockRemoved",[1],"GPU"],)"
            R"(["AllBlocksCleared"]],0])");
}

TEST(BlockEvents, HashesAreTheBeginningsOfKeys) {
  PageKey key = {{1, 2, 0, 0, 0, 0, 0, 128, 9, 9, 9, 9, 9, 9, 9, 9}};
  EXPECT_EQ(block_hash(key), 0x8000000000000201u);
}

TEST(BlockEvents, PagesOfOneChainAreOneEvent) {
  BlockQueue queue(100);
  EXPECT_TRUE(queue.add(event(KvOperation::kStored, 1, 0), kTokens, true));
  EXPECT_FALSE(queue.add(event(KvOperation::kStored, 2, 1), kTokens, false));
  EXPECT_FALSE(queue.add(event(KvOperation::kStored, 3, 1), kTokens, false)) << "a branch";
  EXPECT_FALSE(queue.add(event(KvOperation::kStored, 4, 3, 1), kTokens, false)) << "of a window";
  queue.add(event(KvOperation::kRemoved, 3, 1), {}, false);
  queue.add(event(KvOperation::kRemoved, 2, 1), {}, false);
  std::vector<BlockEvent> events = queue.take();
  ASSERT_EQ(events.size(), 3u);
  EXPECT_EQ(events[0].hashes, (std::vector<uint64_t>{block_hash(key(1)), block_hash(key(2))}));
  EXPECT_FALSE(events[0].parent);
  EXPECT_EQ(events[0].tokens.size(), 8u);
  EXPECT_EQ(events[1].parent, block_hash(key(1)));
  EXPECT_EQ(events[2].hashes.size(), 2u);
  EXPECT_TRUE(queue.take().empty());
}

TEST(BlockEvents, TooManyAreReplacedByForgettingAll) {
  BlockQueue queue(3);
  for (uint8_t page = 1; page < 10; ++page) {
    queue.add(event(KvOperation::kStored, page, page - 1), kTokens, page == 1);
  }
  std::vector<BlockEvent> events = queue.take();
  ASSERT_FALSE(events.empty());
  EXPECT_EQ(events[0].operation, KvOperation::kCleared);
  EXPECT_GT(queue.overflows(), 0);
  EXPECT_TRUE(queue.add(event(KvOperation::kStored, 1, 0), kTokens, true));
  EXPECT_FALSE(queue.add(event(KvOperation::kCleared, 0, 0), {}, false));
  EXPECT_EQ(queue.take().size(), 1u) << "what was stored before it does not matter";
}

}  // namespace
}  // namespace banyan::block_events_test
