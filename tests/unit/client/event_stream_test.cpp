// The parser of server-sent events, with the input cut at every position.
#include "client/event_stream.h"

#include <gtest/gtest.h>

#include <vector>

namespace banyan::event_stream_test {
namespace {

std::vector<std::string> events_of(std::string_view body, size_t step) {
  EventStream stream;
  std::vector<std::string> events;
  for (size_t i = 0; i < body.size(); i += step) {
    EXPECT_TRUE(stream.feed(body.substr(i, step),
                            [&](std::string_view data) { events.emplace_back(data); }));
  }
  return events;
}

TEST(EventStream, FindsEventsHoweverTheyAreCut) {
  std::string body =
      ": comment\n\ndata: one\n\nevent: x\ndata:two\r\n\r\nid: 3\n\ndata: [DONE]\n\ndata: half";
  for (size_t step = 1; step <= body.size(); ++step) {
    EXPECT_EQ(events_of(body, step), (std::vector<std::string>{"one", "two", "[DONE]"})) << step;
  }
}

TEST(EventStream, LinesAreLimited) {
  EventStream stream;
  std::string piece(1 << 20, 'x');
  Status fed;
  for (int i = 0; i < 100 && fed; ++i) fed = stream.feed(piece, [](std::string_view) {});
  EXPECT_FALSE(fed);
}

}  // namespace
}  // namespace banyan::event_stream_test
