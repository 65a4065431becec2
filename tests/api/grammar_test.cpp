// Issue 17: while slow grammars compiled, a plain completion took 15 s, because the threads that
// read requests also compiled. Nothing is timed here: the compiler's thread is held up instead.
#include <fmt/format.h>

#include "api/server_fixture.h"
#include "support/api.h"

namespace banyan::grammar_test {
namespace {

using test::Client;
using test::Response;

class Grammars : public test::ServerTest {
  test::TemporaryFolder model_;

 protected:
  Grammars() {
    engine = test::tiny_text_model(model_, "{{ messages[0].content }}", {.ends = true});
  }
  ~Grammars() override {
    if (held_) release();
  }

  void hold() {
    ASSERT_EQ(get("/hold_grammars").status, 200);
    held_ = true;
  }
  void release() {
    test::grammars_held().release();
    held_ = false;
  }
  static std::string completion(const std::string& fields) {
    std::string body = R"({"prompt":"Hi","max_tokens":5)" + fields + "}";
    return fmt::format(
        "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\n\r\n{}",
        body.size(), body);
  }
  Client sent(const std::string& fields) const {
    Client client = this->client();
    client.send(completion(fields));
    return client;
  }
  bool waiting(int64_t count) {
    return eventually([&](const auto& c) { return c.grammars_waiting == count; });
  }

 private:
  bool held_ = false;
};

TEST_F(Grammars, PlainRequestsAreAnsweredWhileGrammarsWait) {
  start();
  hold();
  std::vector<Client> slow;
  for (int i = 0; i < 5; ++i) slow.push_back(sent(fmt::format(R"(,"regex":"a{{{}}}")", i + 1)));
  ASSERT_TRUE(waiting(5));
  EXPECT_EQ(sent("").response().status, 200);
  EXPECT_EQ(get("/health").status, 200);
  EXPECT_NE(get("/metrics").body.find("sglang:num_grammar_queue_reqs"), std::string::npos);
  EXPECT_EQ(counts().grammars_waiting, 5);
  release();
  for (Client& client : slow) {
    Response answer = client.response();
    EXPECT_EQ(answer.status, 200) << answer.body;
    EXPECT_NE(answer.body.find("\"text\":\"a"), answer.body.npos) << answer.body;
  }
  slow.clear();
  EXPECT_TRUE(back_to_base());
}

TEST_F(Grammars, WhatIsInTheCacheDoesNotQueue) {
  start();
  EXPECT_EQ(sent(R"(,"regex":"b")").response().status, 200);
  hold();
  EXPECT_EQ(sent(R"(,"regex":"b")").response().status, 200);
  EXPECT_EQ(counts().grammars_waiting, 0);
}

TEST_F(Grammars, WaitingHasAnEndThatNamesItsLimit) {
  config.grammar_timeout_s = 0.05;
  start();
  hold();
  Response late = sent(R"(,"regex":"c")").response();
  EXPECT_EQ(late.status, 408);
  for (const char* part : {"--grammar-timeout", "0.05 s", "timeout_error", "\"param\":\"regex\""}) {
    EXPECT_NE(late.body.find(part), late.body.npos) << late.body;
  }
  EXPECT_TRUE(waiting(0));
}

TEST_F(Grammars, AClientThatGoesWaitsNoMore) {
  start();
  hold();
  Client client = sent(R"(,"regex":"d")");
  ASSERT_TRUE(waiting(1));
  client.close();
  EXPECT_TRUE(waiting(0));
}

TEST_F(Grammars, TooManyThatWaitAreRefused) {
  config.grammars_queued_max = 2;
  start();
  hold();
  Client first = sent(R"(,"regex":"e")"), second = sent(R"(,"regex":"f")");
  ASSERT_TRUE(waiting(2));
  Response refused = sent(R"(,"regex":"g")").response();
  EXPECT_EQ(refused.status, 503);
  EXPECT_TRUE(refused.has("Retry-After: 1\r\n"));
  release();
  EXPECT_EQ(first.response().status, 200);
  EXPECT_EQ(second.response().status, 200);
}

TEST_F(Grammars, MistakesAreNamedWhenTheirTurnComes) {
  start();
  Response wrong = sent(R"(,"regex":"(")").response();
  EXPECT_EQ(wrong.status, 400);
  EXPECT_NE(wrong.body.find("\"param\":\"regex\""), wrong.body.npos) << wrong.body;
  Response large = sent(R"(,"guided_choice":[")" + std::string(1 << 20, 'x') + "\"]").response();
  EXPECT_EQ(large.status, 400);
  EXPECT_NE(large.body.find("too large"), large.body.npos) << large.body.substr(0, 300);
}

TEST_F(Grammars, OneRequestMayAskForMany) {
  start();
  Client client = this->client();
  std::string body = R"({"text":["Hi","Ho","Hu"],"sampling_params":[{"regex":"h"},)"
                     R"({"regex":"i","max_new_tokens":3},{"max_new_tokens":2}]})";
  client.send(
      fmt::format("POST /generate HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\n\r\n{}",
                  body.size(), body));
  Response answer = client.response();
  EXPECT_EQ(answer.status, 200) << answer.body;
  EXPECT_NE(answer.body.find("\"text\":\"h\""), answer.body.npos) << answer.body;
  EXPECT_NE(answer.body.find("\"text\":\"i\""), answer.body.npos) << answer.body;
}

}  // namespace
}  // namespace banyan::grammar_test
