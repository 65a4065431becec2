// Ranks that are threads tell each other values, messages and what went wrong.
#include "dist/gather.h"

#include <gtest/gtest.h>

#include <thread>

#include "base/error.h"
#include "dist/comm_threads.h"

namespace banyan::gather_test {
namespace {

// Runs body(comm) on every rank.
void on_ranks(int count, auto body) {
  ThreadRanks ranks(count);
  std::vector<std::jthread> threads;
  for (int index = 0; index < count; ++index) {
    threads.emplace_back([&, index] { body(ranks.of(index)); });
  }
}

TEST(Gather, EveryRankGetsAllValuesInOrder) {
  on_ranks(3, [](Comm& comm) {
    std::vector<int64_t> all = gather(comm, (int64_t{1} << 40) + comm.rank().index);
    ASSERT_EQ(all.size(), 3u);
    for (int r = 0; r < 3; ++r) EXPECT_EQ(all[r], (int64_t{1} << 40) + r);
  });
  EXPECT_EQ(gather(lone_rank(), 7), std::vector{7});
}

TEST(Gather, AMessageReachesAllAndMayBeEmpty) {
  on_ranks(3, [](Comm& comm) {
    for (size_t bytes : {size_t{0}, size_t{5}, size_t{100000}}) {
      std::vector<std::byte> message(comm.rank().index == 0 ? bytes : 3, std::byte{1});
      if (comm.rank().index == 0) std::ranges::fill(message, std::byte{9});
      comm.broadcast(message);
      EXPECT_EQ(message, std::vector<std::byte>(bytes, std::byte{9}));
    }
  });
}

TEST(Gather, AllFailIfOneDoes) {
  on_ranks(3, [](Comm& comm) {
    EXPECT_TRUE(agree(comm, {}));
    Status mine;
    if (comm.rank().index == 1) mine = corrupt("{}: is torn", std::string(3000, 'x'));
    if (comm.rank().index == 2) mine = io_error("the disk is full");
    Status all = agree(comm, mine);
    ASSERT_FALSE(all);
    EXPECT_EQ(all.error().code, ErrorCode::kCorrupt);
    if (comm.rank().index != 1) {
      EXPECT_TRUE(all.error().message.starts_with("rank 1 of 3: xxx")) << all.error().message;
    }
    if (comm.rank().index == 0) mine = not_found("the model");
    all = agree(comm, mine);
    EXPECT_EQ(all.error().code, ErrorCode::kNotFound);
    EXPECT_EQ(all.error().message, "the model");
  });
  EXPECT_TRUE(agree(lone_rank(), {}));
  EXPECT_EQ(agree(lone_rank(), io_error("alone")).error().message, "alone");
}

}  // namespace
}  // namespace banyan::gather_test
