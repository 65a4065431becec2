// Places of uploads in pinned memory.
#include "kernels/cuda/upload_ring.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <deque>

#include "base/random.h"

namespace banyan::cuda_upload_ring_test {
namespace {

// Copies by number; those before `done` have ended.
struct Uploads {
  cuda::UploadRing<int> ring{100};
  int started = 0, done = 0;

  size_t upload(size_t bytes) {
    size_t begin = ring.take(bytes, [this](int copy) {
      EXPECT_EQ(copy, done) << "the oldest one first";
      ++done;
    });
    ring.started(started++);
    return begin;
  }
};

TEST(UploadRing, TakesWhatFollowsUntilItIsFull) {
  Uploads u;
  EXPECT_EQ(u.ring.part_max(), 50u);
  EXPECT_EQ(u.upload(40), 0u);
  EXPECT_EQ(u.upload(40), 40u);
  EXPECT_EQ(u.upload(20), 80u);
  EXPECT_EQ(u.done, 0);
  EXPECT_EQ(u.upload(10), 0u);
  EXPECT_EQ(u.done, 1);
}

TEST(UploadRing, LeavesOutAnEndThatIsTooShort) {
  Uploads u;
  u.upload(40);
  u.upload(40);
  EXPECT_EQ(u.upload(30), 0u) << "20 are left at the end";
  EXPECT_EQ(u.done, 1);
  EXPECT_EQ(u.upload(10), 30u);
  EXPECT_EQ(u.done, 1);
  EXPECT_EQ(u.upload(50), 40u);
  EXPECT_EQ(u.done, 3) << "what was left out is free with the copy after it";
}

TEST(UploadRing, NeverGivesBytesOfACopyOnItsWay) {
  Uploads u;
  struct Place {
    size_t begin, end;
  };
  std::deque<Place> on_their_way;
  for (uint64_t i = 0; i < 5000; ++i) {
    size_t bytes = 1 + static_cast<size_t>(uniform(1, i, 0) * 50);
    int done = u.done;
    size_t begin = u.upload(bytes);
    for (; done < u.done; ++done) on_their_way.pop_front();
    ASSERT_LE(begin + bytes, 100u);
    for (const Place& place : on_their_way) {
      ASSERT_TRUE(begin + bytes <= place.begin || place.end <= begin) << i;
    }
    on_their_way.push_back({begin, begin + bytes});
  }
  EXPECT_GT(u.done, 4900);
}

}  // namespace
}  // namespace banyan::cuda_upload_ring_test
