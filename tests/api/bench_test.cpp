// The load test's client against real servers: ours, and one with scripted answers.
#include <fmt/format.h>

#include <atomic>
#include <limits>

#include "api/server_fixture.h"
#include "client/bench.h"
#include "client/bench_report.h"
#include "support/servers/loopback_server.h"

namespace banyan::bench_test {
namespace {

using test::LoopbackServer;
using test::ServerTest;

constexpr double kAtOnce = std::numeric_limits<double>::infinity();

// Answers each request with the bytes that a function returns for its path and body; "" closes the
// connection.
class MadeUpServer {
 public:
  using Answer = std::function<std::string(std::string_view path, const Json& body)>;

  explicit MadeUpServer(Answer answer) : answer_(std::move(answer)) {}
  ~MadeUpServer() { server_.stop(); }

  std::string url() const { return server_.url(); }
  int connections() const { return server_.accepted(); }
  int busy_peak() const { return busy_peak_; }

 private:
  bool answer_one(int connection, const std::string& head, const std::string& body) {
    int busy = ++busy_;
    for (int peak = busy_peak_; busy > peak && !busy_peak_.compare_exchange_weak(peak, busy);) {
    }
    std::string path = head.substr(head.find(' ') + 1);
    path = path.substr(0, path.find(' '));
    std::string bytes = answer_(path, body.empty() ? Json() : parse_json(body, "body").value());
    --busy_;
    test::send_all(connection, bytes);
    return bytes.ends_with("0\r\n\r\n") || bytes.find("Content-Length") != bytes.npos;
  }

  Answer answer_;
  std::atomic<int> busy_ = 0, busy_peak_ = 0;
  LoopbackServer server_{[this](int connection, const std::string& head, const std::string& body) {
    return answer_one(connection, head, body);
  }};
};

std::string plain(int status, const std::string& body) {
  return fmt::format("HTTP/1.1 {} X\r\nContent-Length: {}\r\n\r\n{}", status, body.size(), body);
}

std::string stream_of(const std::vector<std::string>& events, bool complete = true) {
  std::string bytes = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
  for (const std::string& event : events) {
    std::string frame = "data: " + event + "\n\n";
    bytes += fmt::format("{:x}\r\n{}\r\n", frame.size(), frame);
  }
  return complete ? bytes + "0\r\n\r\n" : bytes;
}

std::string native_event(int tokens) {
  return fmt::format(R"({{"text":"x","meta_info":{{"finish_reason":null,"prompt_tokens":4,)"
                     R"("completion_tokens":{}}}}})",
                     tokens);
}

BenchResult bench(const std::string& url, const Dataset& dataset, BenchOptions options) {
  boost::asio::io_context io(1);
  HttpClient client(io, parse_server_url(url).value(), {});
  EXPECT_TRUE(client.resolve());
  options.style.vocabulary = 50;
  return run_bench(io, client, dataset, options);
}

Dataset prompts(int64_t count, int64_t output_len = 5) {
  return random_dataset(
      {.prompts = count, .input_len = 4, .output_len = output_len, .range_ratio = 1}, 1);
}

class Bench : public ServerTest {
 protected:
  std::string url() const { return fmt::format("http://127.0.0.1:{}", port()); }
};

TEST_F(Bench, EveryTokenOfOurServerIsCounted) {
  start();
  for (ServingApi api : {ServingApi::kSglang, ServingApi::kCompletions}) {
    BenchOptions options{.style = {.api = api, .model = "m"}, .concurrency_max = 8};
    BenchResult result = bench(url(), prompts(40, 12), options);
    BenchReport report = report_of(result);
    EXPECT_EQ(report.completed, 40) << result.records[0].error;
    EXPECT_EQ(report.input_tokens, 160);
    EXPECT_EQ(report.output_tokens, 480);
    EXPECT_GT(report.ttft_ms.mean, 0);
    EXPECT_GE(report.e2e_ms.mean, report.ttft_ms.mean);
    EXPECT_LE(result.concurrency_peak, 8);
    EXPECT_GT(result.concurrency_peak, 1);
  }
  EXPECT_TRUE(back_to_base());
}

TEST_F(Bench, OurServerSaysWhatItIs) {
  start();
  boost::asio::io_context io(1);
  HttpClient client(io, parse_server_url(url()).value(), {});
  ASSERT_TRUE(client.resolve());
  ServerFacts facts = ask_server(client, url()).value();
  EXPECT_EQ(facts.vocabulary, test::kTinyVocabulary);
  EXPECT_EQ(facts.context_tokens, test::kTinyContext);
  EXPECT_EQ(facts.model, engine.model_path);
  EXPECT_EQ(client.connections(), 1u);
}

TEST_F(Bench, AFullQueueIsCountedAsSuch) {
  engine.running_max = 1;
  engine.queued_max = 1;
  start();
  BenchResult result = bench(url(), prompts(30, 2000), {});
  BenchReport report = report_of(result);
  EXPECT_GE(report.completed, 1);
  EXPECT_GE(result.failures.at("HTTP 503"), 1);
  EXPECT_EQ(report.completed + report.failed, 30);
}

TEST_F(Bench, ALostKeyIsNamed) {
  config.api_keys = {"secret"};
  start();
  boost::asio::io_context io(1);
  HttpClient client(io, parse_server_url(url()).value(), {});
  ASSERT_TRUE(client.resolve());
  auto facts = ask_server(client, url());
  ASSERT_FALSE(facts);
  EXPECT_NE(facts.error().message.find("--api-key"), std::string::npos) << facts.error().message;
}

TEST(BenchClient, ConnectionsAreFewAndUsedAgain) {
  MadeUpServer server([](std::string_view, const Json&) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return stream_of({native_event(1), native_event(2), native_event(5), "[DONE]"});
  });
  BenchResult result = bench(server.url(), prompts(60), {.concurrency_max = 4});
  BenchReport report = report_of(result);
  EXPECT_EQ(report.completed, 60);
  EXPECT_EQ(report.output_tokens, 300);
  EXPECT_EQ(result.gaps_ms.size(), 240u);
  EXPECT_LE(server.busy_peak(), 4);
  EXPECT_LE(server.connections(), 4);
}

TEST(BenchClient, ATokenIsAnEventWhereTheServerDoesNotCount) {
  for (ServingApi api : {ServingApi::kCompletions, ServingApi::kChat}) {
    MadeUpServer server([api](std::string_view path, const Json& body) {
      EXPECT_EQ(path, path_of(api));
      EXPECT_EQ(body["max_tokens"], 5);
      std::string token = api == ServingApi::kChat ? R"({"choices":[{"delta":{"content":"a"}}]})"
                                                   : R"({"choices":[{"text":"a"}]})";
      return stream_of({token, token, token, token,
                        R"({"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":5,)"
                        R"("prompt_tokens_details":{"cached_tokens":3}}})",
                        "[DONE]"});
    });
    BenchResult result = bench(server.url(), prompts(3), {.style = {.api = api}});
    BenchReport report = report_of(result);
    EXPECT_EQ(report.completed, 3);
    EXPECT_EQ(report.output_tokens, 15);  // a token without text is known from the usage
    EXPECT_EQ(report.input_tokens, 27);
    EXPECT_EQ(report.cached_tokens, 9);
    EXPECT_EQ(result.gaps_ms.size(), 9u);
  }
}

TEST(BenchClient, FailuresAreCountedByReason) {
  std::atomic<int> number = 0;
  MadeUpServer server([&](std::string_view, const Json&) -> std::string {
    switch (number++ % 6) {
      case 0:
        return plain(503, R"({"error":{"message":"the queue is full"}})");
      case 1:
        return stream_of({native_event(1), native_event(2)}, false);
      case 2:
        return stream_of({native_event(1), R"({"error":{"message":"it broke"}})"});
      case 3:
        return "nonsense\r\n\r\n";
      case 4:
        return stream_of({"[DONE]"});
      default:
        return stream_of({native_event(5), "[DONE]"});
    }
  });
  BenchResult result = bench(server.url(), prompts(12), {.concurrency_max = 1});
  EXPECT_EQ(report_of(result).completed, 2);
  EXPECT_EQ(result.failures.size(), 5u);
  for (const auto& [reason, count] : result.failures) EXPECT_EQ(count, 2) << reason;
  EXPECT_EQ(result.records[0].error, "HTTP 503: the queue is full");
  EXPECT_EQ(result.records[1].error,
            "the server closed the connection in the middle of its answer");
  EXPECT_EQ(result.records[2].error, "error in the stream: it broke");
}

TEST(BenchClient, AServerThatCountsWildlyIsBounded) {
  MadeUpServer server([](std::string_view, const Json&) {
    return stream_of({native_event(1), native_event(2'000'000'000), "[DONE]"});
  });
  BenchResult result = bench(server.url(), prompts(1), {});
  EXPECT_EQ(report_of(result).output_tokens, 5);
  EXPECT_EQ(result.gaps_ms.size(), 4u);
}

TEST(BenchClient, AConversationGoesOnWithTheAnswer) {
  std::vector<Json> bodies;
  MadeUpServer server([&](std::string_view, const Json& body) {
    bodies.push_back(body["messages"]);
    return stream_of({R"({"choices":[{"delta":{"content":"fine"}}]})", "[DONE]"});
  });
  Dataset dataset;
  dataset.prompts.push_back({.turns = {"how", "why", "when"}, .output_tokens = 5});
  BenchResult result =
      bench(server.url(), dataset, {.style = {.api = ServingApi::kChat}, .concurrency_max = 1});
  EXPECT_EQ(report_of(result).completed, 3);
  ASSERT_EQ(bodies.size(), 3u);
  EXPECT_EQ(bodies[2].size(), 5u);
  EXPECT_EQ(bodies[2][3]["content"], "fine");
  EXPECT_EQ(bodies[2][4]["content"], "when");
}

TEST(BenchClient, RequestsArriveAtTheirTimes) {
  MadeUpServer server(
      [](std::string_view, const Json&) { return stream_of({native_event(5), "[DONE]"}); });
  Dataset timed = prompts(3);
  timed.timed = true;
  timed.prompts[1].arrival_s = 0.1;
  timed.prompts[2].arrival_s = 0.3;
  BenchResult result = bench(server.url(), timed, {});
  ASSERT_EQ(result.records.size(), 3u);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_GE(result.records[i].begin_s, timed.prompts[i].arrival_s);
  }
  std::vector<double> arrivals = poisson_arrivals(3, 20, 4);
  result = bench(server.url(), timed, {.requests_per_s = 20, .seed = 4});
  for (size_t i = 0; i < 3; ++i) EXPECT_GE(result.records[i].begin_s, arrivals[i]);
  timed.prompts[2].arrival_s = 60;
  EXPECT_LT(bench(server.url(), timed, {.requests_per_s = kAtOnce}).records[2].begin_s, 60);
}

TEST(BenchClient, SilenceEndsWithTheTimeout) {
  std::atomic<bool> end = false;
  MadeUpServer server([&](std::string_view, const Json&) {
    while (!end) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    return std::string();
  });
  BenchResult result = bench(server.url(), prompts(2), {.timeout_s = 0.1});
  end = true;
  EXPECT_EQ(result.failures.at("no complete answer in 0.1 s"), 2);
}

TEST(BenchClient, AClosedConnectionIsOpenedAgain) {
  // The server closes the connection at every second request, like one that has just given up an
  // idle connection.
  std::atomic<int> number = 0;
  MadeUpServer server([&](std::string_view, const Json&) -> std::string {
    if (number++ % 2 == 1) return "";
    return stream_of({native_event(5), "[DONE]"});
  });
  BenchResult result = bench(server.url(), prompts(5), {.concurrency_max = 1});
  EXPECT_EQ(report_of(result).completed, 5);
}

TEST(BenchClient, NobodyThereIsAnError) {
  int port;
  {
    MadeUpServer server([](std::string_view, const Json&) { return std::string(); });
    port = std::atoi(server.url().substr(17).c_str());
  }
  std::string url = fmt::format("http://127.0.0.1:{}", port);
  boost::asio::io_context io(1);
  HttpClient client(io, parse_server_url(url).value(), {});
  ASSERT_TRUE(client.resolve());
  auto facts = ask_server(client, url);
  ASSERT_FALSE(facts);
  EXPECT_NE(facts.error().message.find("no server answers at " + url), std::string::npos);
  EXPECT_EQ(bench(url, prompts(2), {}).failures.begin()->second, 2);
}

}  // namespace
}  // namespace banyan::bench_test
