// One client could fill the queue, and all others got errors.
#include "base/fair_shares.h"

#include <gtest/gtest.h>

namespace banyan::fair_shares_test {
namespace {

// Takes places until the client is refused, and returns how many it got.
int64_t fill(FairShares& shares, const std::string& client, int64_t limit) {
  int64_t got = 0;
  for (; shares.admits(client, limit); ++got) shares.enter(client);
  return got;
}

TEST(FairShares, OneClientHasTheWholeQueue) {
  FairShares shares;
  EXPECT_EQ(fill(shares, "a", 12), 12);
  EXPECT_EQ(shares.held_by("a"), 12);
  shares.leave("a");
  EXPECT_EQ(fill(shares, "a", 12), 1);
}

TEST(FairShares, OthersHaveTheirShareOfAFullQueue) {
  FairShares shares;
  EXPECT_EQ(fill(shares, "a", 12), 12);
  EXPECT_EQ(fill(shares, "b", 12), 6);
  EXPECT_EQ(fill(shares, "c", 12), 4);
  EXPECT_EQ(fill(shares, "d", 12), 3);
  EXPECT_EQ(fill(shares, "a", 12), 0) << "it has its places, and gets no more";
  EXPECT_EQ(shares.total(), 25);
  for (int i = 0; i < 3; ++i) shares.leave("d");  // three clients are left
  shares.leave("b");
  shares.leave("b");
  EXPECT_FALSE(shares.admits("b", 12)) << "it has four, as each of three may";
  shares.leave("b");
  EXPECT_TRUE(shares.admits("b", 12));
}

TEST(FairShares, SeveralPlacesAreTakenTogetherOrNotAtAll) {
  FairShares shares;
  EXPECT_TRUE(shares.admits("a", 10, 10));
  EXPECT_FALSE(shares.admits("a", 10, 11));
  for (int i = 0; i < 8; ++i) shares.enter("a");
  EXPECT_TRUE(shares.admits("b", 10, 5)) << "two fit, and five are its share";
  EXPECT_FALSE(shares.admits("b", 10, 6));
}

TEST(FairShares, EveryClientMayHaveOneUntilAllTogetherHaveTooMuch) {
  FairShares shares;
  int64_t clients = 0;
  while (fill(shares, "client " + std::to_string(clients), 2) > 0) ++clients;
  EXPECT_EQ(clients, 15) << "the first has two, and the others one each";
  EXPECT_EQ(shares.total(), 16);
}

TEST(FairShares, NobodyInParticularHasNoShare) {
  FairShares shares;
  EXPECT_EQ(fill(shares, "", 4), 4);
  EXPECT_EQ(fill(shares, "a", 4), 2);
  for (int i = 0; i < 3; ++i) shares.leave("");
  EXPECT_EQ(shares.total(), 3);
  EXPECT_EQ(fill(shares, "", 4), 1);
}

TEST(FairShares, AQueueWithoutPlacesTakesNothing) {
  FairShares shares;
  EXPECT_FALSE(shares.admits("a", 0));
}

TEST(FairShares, NothingIsKeptOfClientsThatHaveLeft) {
  FairShares shares;
  for (int i = 0; i < 1000; ++i) {
    std::string client = std::to_string(i);
    shares.enter(client);
    shares.leave(client);
  }
  EXPECT_EQ(shares.total(), 0);
  shares.enter("a");
  shares.enter("a");
  shares.enter("b");
  EXPECT_FALSE(shares.admits("b", 3)) << "of three places, each of two clients may have one";
  shares.clear();
  EXPECT_EQ(shares.total(), 0);
  EXPECT_EQ(fill(shares, "b", 3), 3);
}

}  // namespace
}  // namespace banyan::fair_shares_test
