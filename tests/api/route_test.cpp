// A router over workers in this process: whom it chooses, and what it reports about it.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "api/running_server.h"
#include "base/log.h"
#include "support/api.h"
#include "support/models/tiny_model.h"

namespace banyan::route_test {
namespace {

using test::Client;
using test::Response;
using test::RunningServer;
using test::TemporaryFolder;

class RouteApi : public testing::Test {
  TemporaryFolder folder_;

 protected:
  RouteApi() {
    spdlog::set_level(spdlog::level::off);
    engine.state_digest = true;
    route.health_interval_s = 0.02;
  }
  void start(int workers = 2) {
    for (int i = 0; i < workers; ++i) add_worker(engine);
    start_router();
  }
  void add_worker(const EngineConfig& config) {
    workers_.push_back(std::make_unique<RunningServer>(config, worker));
    route.worker_urls.push_back(workers_.back()->url());
  }
  void start_router() {
    router_ = std::make_unique<RunningServer>(engine, server, route);
    wait_for("banyan:router_worker_ready{", 1);
  }
  const RunningServer& router() const { return *router_; }
  int port() const { return router_->port(); }
  bool wait_for(const std::string& name, double value) const {
    return router_->reaches(name, value);
  }
  // Prompt tokens that each worker has computed or found.
  std::vector<double> prompt_tokens() const {
    std::vector<double> all;
    for (const auto& one : workers_) all.push_back(one->figure("sglang:prompt_tokens_total"));
    return all;
  }

  EngineConfig engine = test::tiny_model(folder_);
  ServerConfig worker = {.port = 0}, server = {.port = 0};
  RouteConfig route;
  std::vector<std::unique_ptr<RunningServer>> workers_;

 private:
  std::unique_ptr<RunningServer> router_;  // ends before its workers
};

TEST_F(RouteApi, GoesToWhoeverHasThePrefix) {
  start();
  ASSERT_TRUE(wait_for("banyan:router_announcing_workers", 2));
  EXPECT_EQ(router().get("/count?tokens=2&prompt=300").status, 200);
  // Pages are predicted at first; then the worker reports them.
  ASSERT_TRUE(wait_for("banyan:router_known_pages", 18));
  for (int i = 0; i < 8; ++i) EXPECT_EQ(router().get("/count?tokens=2&prompt=300").status, 200);
  std::vector<double> prompts = prompt_tokens();
  EXPECT_EQ(std::ranges::max(prompts), 9 * 300) << "all to one";
  EXPECT_EQ(std::ranges::min(prompts), 0);
  EXPECT_EQ(router().figure("banyan:router_predicted_cached_tokens_total"), 8 * 18 * 16);
  EXPECT_GE(router().figure("banyan:router_cached_tokens_total"), 8 * 18 * 16);
  EXPECT_EQ(router().figure("banyan:router_hashed_pages_total"), 9 * 18);
}

TEST_F(RouteApi, TakesPromptsAsLongAsWorkersDo) {
  start(1);
  std::string ids = "5";
  for (int i = 1; i < 3000; ++i) ids += ",5";
  Response response = Client(port()).post(
      "/generate", R"({"input_ids": [)" + ids + R"(], "sampling_params": {"max_new_tokens": 2}})");
  EXPECT_EQ(response.status, 200) << response.body;
  EXPECT_EQ(prompt_tokens(), std::vector<double>{3000});
}

TEST_F(RouteApi, PassesOnTheProgressOfPrompts) {
  engine.chunked_prefill_tokens = 128;
  start(1);
  std::string ids = "5";
  for (int i = 1; i < 300; ++i) ids += ",5";
  Response response = Client(port()).post(
      "/completion",
      R"({"prompt": [)" + ids + R"(], "n_predict": 2, "stream": true, "return_progress": true})");
  for (const char* part : {R"("processed":128)", R"("processed":256)", R"("processed":300)"}) {
    EXPECT_NE(response.body.find(part), std::string::npos) << part << response.body;
  }
}

TEST_F(RouteApi, EmbeddingsAreThoseOfTheWorker) {
  start(2);
  std::string body = R"({"input": [[5, 6, 7], [8, 9], [10, 11, 12, 13]]})";
  Response routed = Client(port()).post("/v1/embeddings", body);
  ASSERT_EQ(routed.status, 200) << routed.body;
  Response direct = Client(workers_[0]->port()).post("/v1/embeddings", body);
  EXPECT_EQ(Json::parse(routed.body)["data"], Json::parse(direct.body)["data"]);
}

std::string timeless(std::string events) {
  constexpr std::string_view kKey = "\"created\":";
  for (size_t at = 0; (at = events.find(kKey, at)) != events.npos;) {
    events.erase(at, events.find(',', at) - at);
  }
  return events;
}

// A client that lost its router continues at another: the worker has what it had sent.
TEST_F(RouteApi, AnotherRouterComputesOnlyTheRest) {
  TemporaryFolder folder;
  engine = test::tiny_text_model(folder, "", {.radix_cache = true, .context = 2048});
  engine.state_digest = true;
  start();
  RunningServer other(engine, ServerConfig{.port = 0}, route);
  ASSERT_TRUE(other.reaches("banyan:router_worker_ready{", 1));
  auto ask = [](Client& client, const std::string& name, const std::string& last_id) {
    std::string body = R"({"prompt":"Hi","max_tokens":1500,"ignore_eos":true,"stream":true})";
    client.send(
        fmt::format("POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nX-Request-Id: {}\r\n"
                    "Last-Event-ID: {}\r\nContent-Length: {}\r\n\r\n{}",
                    name, last_id, body.size(), body));
  };
  auto drawn = [&] {
    double sum = 0;
    for (const auto& one : workers_) sum += one->figure("sglang:generation_tokens_total");
    return sum;
  };
  Client first(port());
  ask(first, "whole", "0");
  std::string whole = first.response().body;
  EXPECT_EQ(drawn(), 1500);
  // It ended at the worker, and the client has half of it.
  size_t half = whole.find("id: ", whole.size() / 2);
  Client again(other.port());
  ask(again, "whole", whole.substr(half + 4, whole.find('\n', half) - half - 4));
  std::string rest = again.response().body;
  EXPECT_TRUE(timeless(rest) == timeless(whole.substr(whole.find("\n\n", half) + 2)));
  EXPECT_EQ(drawn(), 1500) << "nothing was computed";

  Client cut(port());
  ask(cut, "cut", "0");
  std::string begun = cut.read_until("id: 400@");
  std::string place = cut.read_until("\n");
  cut.reset();
  for (const auto& one : workers_) ASSERT_TRUE(one->reaches("sglang:num_running_reqs", 0, true));
  Client moved(other.port());
  ask(moved, "cut", "400@" + place.substr(0, place.size() - 1));
  rest = moved.response().body;
  EXPECT_TRUE(rest.starts_with("id: 401@" + place)) << rest.substr(0, 100);
  EXPECT_NE(rest.find("[DONE]"), rest.npos);
  // More than 400 were sent; those that were drawn and not sent yet are drawn again.
  EXPECT_LT(drawn(), 2 * 1500 + 200);
}

TEST_F(RouteApi, TakesTurnsWhereAskedTo) {
  route.policy = "round_robin";
  start();
  ASSERT_TRUE(wait_for("banyan:router_announcing_workers", 2));
  for (int i = 0; i < 6; ++i) EXPECT_EQ(router().get("/count?tokens=1&prompt=40").status, 200);
  EXPECT_EQ(prompt_tokens(), (std::vector<double>{120, 120}));
}

TEST_F(RouteApi, WorkersThatTellNothingAreChosenByLoad) {
  engine.state_digest = false;
  start();
  EXPECT_EQ(router().get("/count?tokens=2&prompt=300").status, 200);
  EXPECT_EQ(router().figure("banyan:router_announcing_workers"), 0);
  EXPECT_EQ(router().figure("banyan:router_hashed_pages_total"), 0);
}

TEST_F(RouteApi, WorkersThatDifferShareNoPrefix) {
  add_worker(engine);
  EngineConfig other = engine;
  other.page_size_tokens = 32;
  add_worker(other);
  start_router();
  ASSERT_TRUE(wait_for("banyan:router_announcing_workers", 2));
  EXPECT_EQ(router().get("/count?tokens=1&prompt=40").status, 200);
  EXPECT_EQ(router().figure("banyan:router_hashed_pages_total"), 2 + 1) << "keys for each of them";
}

// Its port answers, and the router kept waiting for its streams.
TEST_F(RouteApi, AWorkerWhoseEngineHangsLosesItsStreamsUntilItSteps) {
  worker.watchdog_timeout_s = 1;
  route.policy = "round_robin";
  start();
  std::vector<std::string> of;  // each worker's label
  for (const auto& one : workers_) {
    of.push_back(fmt::format("{{model_name=\"{}\",worker=\"{}\"}}", engine.model_path, one->url()));
  }
  for (const std::string& label : of)
    ASSERT_TRUE(wait_for("banyan:router_worker_ready" + label, 1));
  std::vector<Client> streams;
  for (int i = 0; i < 2; ++i) {
    Client& client = streams.emplace_back(Client(port()));
    client.send("GET /stream?tokens=200000 HTTP/1.1\r\nHost: localhost\r\n\r\n");
    client.read_until("data: ");
  }
  for (const std::string& label : of) {
    ASSERT_TRUE(wait_for("banyan:router_worker_requests" + label, 1));
  }
  EXPECT_EQ(workers_[0]->get("/hold_engine").status, 200);
  EXPECT_TRUE(wait_for("banyan:router_worker_requests" + of[1], 2));
  EXPECT_EQ(router().figure("banyan:router_worker_ready" + of[0]), 0);
  EXPECT_EQ(router().figure("banyan:router_migrations_total"), 1);
  EXPECT_EQ(router().get("/count?tokens=5").body, "5 length");
  test::engine_held().release();
  EXPECT_TRUE(wait_for("banyan:router_worker_ready" + of[0], 1));
  EXPECT_TRUE(workers_[0]->reaches("sglang:num_running_reqs", 0, true)) << "its stream has left";
  EXPECT_EQ(router().figure("banyan:router_worker_requests" + of[1]), 2);
}

TEST_F(RouteApi, WaitsForRoomAndSaysWhenThereIsNone) {
  engine.running_max = 1;
  engine.queued_max = 1;
  route.queued_max = 1;
  route.queue_timeout_s = 0.3;
  start(1);
  ASSERT_TRUE(wait_for("banyan:router_announcing_workers", 1));
  std::vector<Client> streams;
  for (int i = 0; i < 2; ++i) {  // one runs, one waits at the worker
    Client& client = streams.emplace_back(Client(port()));
    client.send("GET /stream?tokens=200000 HTTP/1.1\r\nHost: localhost\r\n\r\n");
  }
  ASSERT_TRUE(wait_for("banyan:router_worker_requests{", 2));
  Client third(port());
  third.send("GET /count HTTP/1.1\r\nHost: localhost\r\n\r\n");
  ASSERT_TRUE(wait_for("banyan:router_waiting_requests", 1));
  Response refused = router().get("/count");
  EXPECT_EQ(refused.status, 503) << "the queue is full";
  EXPECT_TRUE(refused.has("Retry-After: "));
  EXPECT_NE(refused.body.find("--queue-size is 1"), std::string::npos) << refused.body;
  EXPECT_NE(third.response().body.find("0 error"), std::string::npos) << "nobody had room in time";
  EXPECT_EQ(router().figure("banyan:router_queue_timeouts_total"), 1);
}

TEST_F(RouteApi, AClientThatFillsTheQueueKeepsNobodyOut) {
  server.api_keys = {"many", "few"};
  engine.running_max = 1;
  engine.queued_max = 1;
  route.queued_max = 2;
  start(1);
  auto ask = [&](const std::string& key, const std::string& target) {
    Client client(port());
    client.send(
        fmt::format("GET {} HTTP/1.1\r\nHost: localhost\r\nX-Api-Key: {}\r\n\r\n", target, key));
    return client;
  };
  std::vector<Client> streams;
  for (int i = 0; i < 4; ++i) {  // two at the worker, two in the queue
    streams.push_back(ask("many", "/count?tokens=200000"));
    ASSERT_TRUE(i < 2 ? wait_for("banyan:router_worker_requests{", i + 1)
                      : wait_for("banyan:router_waiting_requests", i - 1));
  }
  EXPECT_EQ(ask("many", "/count").response().status, 503);
  Client small = ask("few", "/count?tokens=3");
  ASSERT_TRUE(wait_for("banyan:router_waiting_requests", 3));
  Response refused = ask("few", "/count").response();
  EXPECT_EQ(refused.status, 503) << "one is its share";
  EXPECT_NE(refused.body.find("1 of them this client's"), std::string::npos) << refused.body;
  for (Client& stream : streams) stream.reset();
  EXPECT_EQ(small.response().body, "3 length");
  EXPECT_EQ(ask("many", "/count?tokens=3").response().body, "3 length");
}

}  // namespace
}  // namespace banyan::route_test
