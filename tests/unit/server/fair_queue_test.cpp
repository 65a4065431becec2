// Issue 17: many slow grammars of one client delayed all other clients.
#include "server/http/fair_queue.h"

#include <gtest/gtest.h>

#include <future>

#include "server/http/workers.h"

namespace banyan::fair_queue_test {
namespace {

std::string order(FairQueue<std::string>& queue) {
  std::string all;
  while (auto next = queue.pop()) all += *next + " ";
  return all;
}

TEST(FairQueue, ClientsHaveTurns) {
  FairQueue<std::string> queue(100);
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(queue.push("a", 0, "a" + std::to_string(i)));
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(queue.push("b", 0, "b" + std::to_string(i)));
  EXPECT_TRUE(queue.push("c", 0, "c0"));
  EXPECT_EQ(queue.size(), 7U);
  EXPECT_EQ(order(queue), "a0 b0 c0 a1 b1 a2 a3 ");
  EXPECT_TRUE(queue.empty());
}

TEST(FairQueue, AClientThatComesAgainWaitsItsTurn) {
  FairQueue<std::string> queue(100);
  for (const char* value : {"a0", "a1"}) queue.push("a", 0, value);
  for (const char* value : {"b0", "b1"}) queue.push("b", 0, value);
  EXPECT_EQ(queue.pop(), "a0");
  queue.push("a", 0, "a2");
  EXPECT_EQ(order(queue), "b0 a1 b1 a2 ");
}

TEST(FairQueue, TheCheapestOfAClientIsFirstAndTheOldestIsNotForgotten) {
  FairQueue<std::string> queue(100);
  queue.push("a", 9, "slow");
  for (int i = 0; i < 6; ++i) queue.push("a", 1, std::to_string(i));
  EXPECT_EQ(order(queue), "0 1 2 slow 3 4 5 ");
}

TEST(FairQueue, AFullClientLeavesRoomForOthers) {
  FairQueue<std::string> queue(2);
  EXPECT_TRUE(queue.push("a", 0, "a0"));
  EXPECT_TRUE(queue.push("a", 0, "a1"));
  EXPECT_FALSE(queue.push("a", 0, "a2"));
  EXPECT_TRUE(queue.push("b", 0, "b0"));
  int clients = 0;
  while (queue.push("c" + std::to_string(clients), 0, "c")) ++clients;
  EXPECT_EQ(queue.size(), 16U);  // all together have a limit, too
}

TEST(Workers, RunWhatWaitsInTurns) {
  std::promise<void> begun, go, done, end;
  std::string order;
  Workers workers({.threads = 1, .queued_max = 10, .niceness = 10});  // ends before these
  ASSERT_TRUE(workers.enqueue("a", [&] {
    begun.set_value();
    go.get_future().wait();
  }));
  begun.get_future().wait();
  for (const char* name : {"a", "a", "a", "b"}) {
    ASSERT_TRUE(workers.enqueue(name, [&order, name] { order += name; }));
  }
  EXPECT_EQ(workers.waiting(), 4U);
  ASSERT_TRUE(workers.enqueue("c", [&] {
    done.set_value();
    end.get_future().wait();  // the rest comes after this look
  }));
  go.set_value();
  done.get_future().wait();
  EXPECT_EQ(order, "ab");
  end.set_value();
}

}  // namespace
}  // namespace banyan::fair_queue_test
