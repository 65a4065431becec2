// The client that continues at another server, against servers that stop in the middle of an
// answer.
#include "client/resuming_client.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <memory>
#include <string>

#include "support/servers/loopback_server.h"
#include "support/value_or_abort.h"

namespace banyan::resuming_client_test {
namespace {

using test::header_field;
using test::LoopbackServer;
using test::send_all;
using test::value_or_abort;

// A server that streams ten events and closes in the middle of the one after `events`.
class Flaky {
 public:
  explicit Flaky(int events, bool ids = true)
      : server_([this, events, ids](int connection, const std::string& head, const std::string&) {
          return answer(connection, head, events, ids);
        }) {}
  std::string url() const { return server_.url(); }
  std::string id() const { return id_; }

 private:
  bool answer(int connection, const std::string& head, int events, bool ids) {
    id_ = header_field(head, "X-Request-Id");
    std::string last = header_field(head, "Last-Event-ID");
    int begin = last.empty() ? 0 : std::stoi(last);
    std::string body;
    for (int i = begin + 1; i <= std::min(10, begin + events); ++i) {
      body +=
          (ids ? "id: " + std::to_string(i) + "\n" : "") + "data: " + std::to_string(i) + "\n\n";
    }
    bool whole = begin + events >= 10;
    body += whole ? "data: [DONE]\n\n" : "id: 99\nda";
    send_all(connection, fmt::format("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
                                     "{:x}\r\n{}\r\n{}",
                                     body.size(), body, whole ? "0\r\n\r\n" : ""));
    return false;
  }
  std::string id_;
  LoopbackServer server_;
};

struct Outcome {
  std::string body;
  int status = -1;
  Status end;
};

Outcome ask(ResumingClient& client, boost::asio::io_context& io) {
  Outcome outcome;
  ClientSinks sinks;
  sinks.body = [&](int, std::string_view piece) { outcome.body += piece; };
  sinks.end = [&](int status, const Status& end) {
    outcome.status = status;
    outcome.end = end;
  };
  client.send({.path = "/v1/completions", .body = "{}"}, std::move(sinks));
  io.restart();
  io.run();
  return outcome;
}

std::string numbers(const std::string& body) {
  std::string all;
  for (size_t at = 0; (at = body.find("data: ", at)) != body.npos;) {
    at += 6;
    all += body.substr(at, body.find('\n', at) - at) + " ";
  }
  return all;
}

TEST(ResumingClient, GoesOnBehindTheLastWholeEvent) {
  Flaky first(3), second(4);
  boost::asio::io_context io;
  auto client = value_or_abort(ResumingClient::open(io, first.url() + "," + second.url(), {}, {}));
  ASSERT_TRUE(client->resolve());
  Outcome outcome = ask(*client, io);
  EXPECT_EQ(numbers(outcome.body), "1 2 3 4 5 6 7 8 9 10 [DONE] ");
  EXPECT_TRUE(outcome.end);
  EXPECT_EQ(client->resumed(), 2);
  EXPECT_EQ(first.id(), second.id());
  EXPECT_EQ(first.id().size(), 24U);
}

TEST(ResumingClient, AStreamWithoutIdsEndsWithAnError) {
  Flaky first(3, false), second(3, false);
  boost::asio::io_context io;
  auto client = value_or_abort(ResumingClient::open(io, first.url() + "," + second.url(), {}, {}));
  ASSERT_TRUE(client->resolve());
  Outcome outcome = ask(*client, io);
  EXPECT_EQ(numbers(outcome.body), "1 2 3 ");
  EXPECT_FALSE(outcome.end);
}

TEST(ResumingClient, AsksAnotherWhereOneIsGone) {
  std::string gone;
  {
    LoopbackServer server([](int, const std::string&, const std::string&) { return false; });
    gone = server.url();
  }
  Flaky there(10);
  boost::asio::io_context io;
  auto client = value_or_abort(ResumingClient::open(io, gone + "," + there.url(), {}, {}));
  ASSERT_TRUE(client->resolve());
  Outcome outcome = ask(*client, io);
  EXPECT_EQ(numbers(outcome.body), "1 2 3 4 5 6 7 8 9 10 [DONE] ");
  EXPECT_TRUE(outcome.end);
  EXPECT_EQ(client->resumed(), 1);
  EXPECT_EQ(numbers(ask(*client, io).body), "1 2 3 4 5 6 7 8 9 10 [DONE] ");
  EXPECT_EQ(client->resumed(), 1) << "it remembers who answers";
}

TEST(ResumingClient, OneServerThatIsGoneIsAnErrorAtOnce) {
  std::string gone;
  {
    LoopbackServer server([](int, const std::string&, const std::string&) { return false; });
    gone = server.url();
  }
  boost::asio::io_context io;
  auto client = value_or_abort(ResumingClient::open(io, gone, {}, {}));
  ASSERT_TRUE(client->resolve());
  EXPECT_FALSE(ask(*client, io).end);
  EXPECT_EQ(client->resumed(), 0);
}

}  // namespace
}  // namespace banyan::resuming_client_test
