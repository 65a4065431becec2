// Event ids of streams, and what a resuming client is sent.
#include "server/stream_marks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace banyan::stream_marks_test {
namespace {

std::string event(const std::string& text) {
  return "data: " + text + "\n\n";
}

TEST(StreamMarks, CountEventsOfEachChoice) {
  StreamMarks marks(2);
  std::string events = event("a") + event("b");
  marks.mark(0, events);
  EXPECT_EQ(events, "id: 1,0\ndata: a\n\nid: 2,0\ndata: b\n\n");
  events = event("c");
  marks.mark(1, events);
  EXPECT_EQ(events, "id: 2,1\ndata: c\n\n");
  events.clear();
  marks.mark(1, events);
  EXPECT_EQ(events, "");
  events = event("[DONE]");
  marks.mark_end(events);
  EXPECT_EQ(events, "id: 2,1;1\ndata: [DONE]\n\n");
}

TEST(StreamMarks, NameTheWorkerOfAChoice) {
  StreamMarks marks(2);
  std::string events = event("a");
  marks.mark(1, events, "5f3a");
  EXPECT_EQ(events, "id: 0,1@5f3a\ndata: a\n\n");
  StreamMarks other(2);
  ASSERT_TRUE(other.resume("0,1@5f3a;1"));
  EXPECT_EQ(other.place(0), "");
  EXPECT_EQ(other.place(1), "5f3a");
  marks.mark(1, events, "77");  // it moved
  EXPECT_EQ(events.substr(0, events.find('\n')), "id: 0,2@77");
}

// Whatever a client has of a stream, the rest of another run completes it, however the choices'
// events alternate there.
TEST(StreamMarks, TheRestIsWhatTheClientLacks) {
  auto run = [](StreamMarks& marks, bool other_order) {
    std::vector<std::string> sent;
    auto send = [&](std::string events, size_t choice) {
      choice == 2 ? marks.mark_end(events) : marks.mark(choice, events);
      if (!events.empty()) sent.push_back(events);
    };
    for (int i = 0; i < 4; ++i)
      send(event((other_order ? "b" : "a") + std::to_string(i)), other_order);
    for (int i = 0; i < 4; ++i)
      send(event((other_order ? "a" : "b") + std::to_string(i)), !other_order);
    send(event("usage"), 2);
    send(event("[DONE]"), 2);
    return sent;
  };
  StreamMarks whole(2);
  std::vector<std::string> all = run(whole, false);
  ASSERT_EQ(all.size(), 10U);
  for (size_t had = 1; had <= all.size(); ++had) {
    for (bool other_order : {false, true}) {
      std::string id = all[had - 1].substr(4, all[had - 1].find('\n') - 4);
      StreamMarks marks(2);
      ASSERT_TRUE(marks.resume(id)) << id;
      std::vector<std::string> texts(all.begin(), all.begin() + static_cast<ptrdiff_t>(had));
      for (const std::string& one : run(marks, other_order)) texts.push_back(one);
      ASSERT_EQ(texts.size(), all.size()) << id;
      auto data = [](std::vector<std::string> events) {
        for (std::string& e : events) e.erase(0, e.find('\n'));
        std::ranges::sort(events);
        return events;
      };
      EXPECT_EQ(data(texts), data(all)) << id;
      EXPECT_EQ(texts.back().substr(0, texts.back().find('\n')), "id: 4,4;2");
    }
  }
}

TEST(StreamMarks, RefusesIdsOfOtherStreams) {
  for (const char* id : {"x", "1", "1,2,3", "1,2;", "1,2;3;4", "1,-2", "1;2,3", "1,2,", ",", "1,2 ",
                         "1@xy,2", "1,2;1@5f", "@5f,1", "99999999999999999999,1"}) {
    EXPECT_FALSE(StreamMarks(2).resume(id)) << id;
  }
  for (const char* id : {"1,2", "0,0", "1,2;1"}) EXPECT_TRUE(StreamMarks(2).resume(id)) << id;
}

TEST(StreamMarks, HasACounterForEachChoice) {
  StreamMarks marks(2);
  std::string events = "data: a\n\n";
  EXPECT_DEATH(marks.mark(3, events), "3 of 3");
}

}  // namespace
}  // namespace banyan::stream_marks_test
