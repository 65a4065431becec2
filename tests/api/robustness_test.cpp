// Clients that stall, flood, vanish or ask for too much. Each gets an answer or is disconnected,
// other clients do not notice, and afterwards no page, connection or byte stays in use.
#include <fmt/format.h>
#include <sys/resource.h>

#include <filesystem>

#include "api/server_fixture.h"

namespace banyan::robustness_test {
namespace {

using test::Client;
using test::Response;
using test::ServerTest;

class Robustness : public ServerTest {};

constexpr const char* kEndless = "GET /stream?tokens=200000 HTTP/1.1\r\nHost: localhost\r\n\r\n";
constexpr const char* kEndlessSilence =
    "GET /count?tokens=200000 HTTP/1.1\r\nHost: localhost\r\n\r\n";

// Each event is so large that the buffers between server and client are soon full.
constexpr const char* kEndlessFlood =
    "GET /stream?tokens=200000&pad=10000 HTTP/1.1\r\nHost: localhost\r\n\r\n";

bool runs(const Server::Counts& c) {
  return c.engine.running > 0;
}

bool has_run(const Server::Counts& c) {
  return c.engine.generated_tokens > 0;
}

TEST_F(Robustness, SlowHeadersAreCutHoweverTheyTrickle) {
  config.header_timeout_s = config.linger_timeout_s = 0.1;
  start();
  Client silent = client(), trickling = client();
  silent.send("GET /health HTTP/1.1\r\nHost: localhost\r\n");
  trickling.send("G");
  while (trickling.send("E")) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  EXPECT_EQ(silent.response().status, 408);
  EXPECT_TRUE(silent.is_closed());
  silent.close();
  trickling.close();
  EXPECT_TRUE(back_to_base());
}

TEST_F(Robustness, SlowBodiesAreCutHoweverTheyTrickle) {
  config.body_timeout_s = config.linger_timeout_s = 0.1;
  config.body_bytes_per_s_min = 1 << 20;
  start();
  Client client = this->client();
  client.send("POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\n");
  std::thread trickle([&] {
    while (client.send("x")) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  });
  EXPECT_EQ(client.response().status, 408);
  EXPECT_TRUE(client.is_closed());
  client.shutdown_send();
  trickle.join();
  client.close();
  EXPECT_TRUE(back_to_base());
}

TEST_F(Robustness, HeaderFloodsAreRefusedWhileTheyCome) {
  start();
  Client endless = client();
  endless.send("GET /");
  for (int i = 0; i < 100 && endless.send(std::string(10000, 'a')); ++i) {
  }
  EXPECT_EQ(endless.response().status, 431);
  Client many = client();
  many.send("GET / HTTP/1.1\r\nHost: localhost\r\n");
  std::string fields;
  for (int i = 0; i < 100; ++i) fields += "X-Field: value\r\n";
  for (int i = 0; i < 1000 && many.send(fields); ++i) {
  }
  EXPECT_EQ(many.response().status, 431);
  endless.close();
  many.close();
  EXPECT_TRUE(back_to_base());
}

TEST_F(Robustness, ChunksAreCountedAndTheirSizesChecked) {
  config.body_chunks_max = 1000;
  start();
  const std::string head =
      "POST /echo HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n";
  auto status = [&](const std::string& body) {
    Client client = this->client();
    client.send(head);
    client.send(body);
    return client.response().status;
  };
  std::string tiny;
  for (int i = 0; i < 1000000; ++i) tiny += "1\r\nx\r\n";
  EXPECT_EQ(status(tiny), 413);
  EXPECT_EQ(status("-2\r\n"), 400);
  EXPECT_EQ(status("fffffffffffffffff\r\n"), 400);
  EXPECT_EQ(status("ffffffffffffffff\r\n"), 413);
  EXPECT_EQ(status("7fffffffffffffff\r\nx"), 413);
  EXPECT_EQ(status("1\r\nxx\r\n0\r\n\r\n"), 400);
  EXPECT_EQ(status("0x5\r\nhello\r\n0\r\n\r\n"), 400);
  EXPECT_TRUE(back_to_base());
}

TEST_F(Robustness, AllBodiesTogetherAreLimited) {
  config.body_bytes_max = 1000;
  config.bodies_bytes_max = 1500;
  start();
  Client first = client();
  first.send("POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n" +
             std::string(999, 'x'));
  ASSERT_TRUE(eventually([](const auto& c) { return c.body_bytes == 999; }));
  Client second = client();
  second.send("POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: 600\r\n\r\n" +
              std::string(600, 'x'));
  EXPECT_EQ(second.response().status, 503);
  first.send("x");
  EXPECT_EQ(first.response().body, "1000");
  first.close();
  second.close();
  EXPECT_TRUE(back_to_base());
}

TEST_F(Robustness, AResetAtAnyTokenFreesItsPages) {
  start();
  for (int tokens : {0, 1, 2, 3, 5, 8, 13, 16, 17, 31, 32, 33, 60}) {
    Client client = this->client();
    client.send(kEndless);
    for (int i = 0; i < tokens; ++i) client.read_until("\n\n");
    client.reset();
    ASSERT_TRUE(back_to_base()) << tokens;
  }
  EXPECT_LT(counts().engine.generated_tokens, 13 * 200000);
}

TEST_F(Robustness, AClosedClientIsNoticedWithoutAToken) {
  start();
  for (bool reset : {false, true}) {
    Client client = this->client();
    client.send(kEndlessSilence);
    ASSERT_TRUE(eventually(runs));
    reset ? client.reset() : client.close();
    ASSERT_TRUE(back_to_base());
  }
}

TEST_F(Robustness, AClosedClientIsNoticedWhileItsPromptIsRead) {
  engine.chunked_prefill_tokens = 64;
  start();
  Client client = this->client();
  client.send("GET /count?tokens=1&prompt=200000 HTTP/1.1\r\nHost: localhost\r\n\r\n");
  ASSERT_TRUE(eventually(runs));
  client.close();
  ASSERT_TRUE(back_to_base());
  EXPECT_LT(counts().engine.prompt_tokens, 200000);
}

TEST_F(Robustness, AClosedClientIsNoticedWhileItWaitsForItsTurn) {
  engine.running_max = 1;
  start();
  Client running = client(), waiting = client();
  running.send(kEndless);
  ASSERT_TRUE(eventually(runs));
  waiting.send(kEndless);
  ASSERT_TRUE(eventually([](const auto& c) { return c.engine.queued == 1; }));
  waiting.close();
  EXPECT_TRUE(eventually([](const auto& c) { return c.engine.queued == 0; }));
  EXPECT_EQ(counts().engine.running, 1);
  running.reset();
  EXPECT_TRUE(back_to_base());
}

TEST_F(Robustness, HalfAConnectionIsAnsweredWithWhatIsKnown) {
  start();
  Client quick = client();
  quick.send("GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n");
  quick.shutdown_send();
  EXPECT_EQ(quick.response().status, 200);
  EXPECT_TRUE(quick.is_closed());
  Client cut_off = client();
  cut_off.send("POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\nabc");
  cut_off.shutdown_send();
  EXPECT_EQ(cut_off.response().status, 400);
  Client gone = client();
  gone.send(kEndlessSilence);
  ASSERT_TRUE(eventually(runs));
  gone.shutdown_send();
  EXPECT_EQ(gone.response().status, 499);
  quick.close();
  cut_off.close();
  gone.close();
  EXPECT_TRUE(back_to_base());
}

TEST_F(Robustness, AFullQueueSaysSo) {
  engine.running_max = 1;
  engine.queued_max = 2;
  start();
  std::vector<Client> clients;
  for (int i = 0; i < 3; ++i) {
    clients.push_back(client());
    clients.back().send(kEndless);
    ASSERT_TRUE(
        eventually([&](const auto& c) { return c.engine.running + c.engine.queued == i + 1; }));
  }
  Response refused = get("/stream");
  EXPECT_EQ(refused.status, 503);
  EXPECT_TRUE(refused.has("Retry-After: 1"));
  EXPECT_EQ(get("/health").status, 200);
  // A probe must not take a busy server out of service; it was a 503.
  EXPECT_EQ(get("/health_generate").status, 200);
  for (Client& client : clients) client.reset();
  EXPECT_TRUE(back_to_base());
  EXPECT_EQ(get("/count?tokens=3").body, "3 length");
}

TEST_F(Robustness, AClientThatFillsTheQueueKeepsNobodyOut) {
  config.api_keys = {"many", "few"};
  engine.running_max = 1;
  engine.queued_max = 4;
  start();
  auto ask = [&](const std::string& key, int samples, int tokens) {
    std::string body =
        fmt::format(R"({{"input_ids": [1], "sampling_params": {{"n": {}, "max_new_tokens": {}}}}})",
                    samples, tokens);
    Client one = client();
    one.send(
        fmt::format("POST /generate HTTP/1.1\r\nHost: localhost\r\nX-Api-Key: {}\r\n"
                    "Content-Length: {}\r\n\r\n{}",
                    key, body.size(), body));
    return one;
  };
  auto queues = [&](int64_t count) {
    return eventually([&](const auto& c) { return c.engine.queued == count; });
  };
  Client running = ask("many", 1, 200000);
  ASSERT_TRUE(eventually(runs));
  Client waiting = ask("many", 4, 200000);
  ASSERT_TRUE(queues(4));
  EXPECT_EQ(ask("many", 1, 1).response().status, 503);
  Client small = ask("few", 2, 3);
  ASSERT_TRUE(queues(6));
  Response refused = ask("few", 1, 1).response();
  EXPECT_EQ(refused.status, 503) << "two are its share";
  EXPECT_TRUE(refused.body.contains("2 of them this client's")) << refused.body;
  EXPECT_EQ(get("/health_generate", "X-Api-Key: few\r\n").status, 200) << "it does not queue";
  running.reset();
  waiting.reset();
  EXPECT_EQ(small.response().status, 200);
  small.close();
  EXPECT_TRUE(back_to_base());
}

TEST_F(Robustness, AnEngineThatHangsIsNotHealthy) {
  config.watchdog_timeout_s = 0.01;
  start();
  EXPECT_EQ(get("/hold_engine").status, 200);
  Response health = get("/health");
  auto hangs = [&](const Server::Counts&) { return (health = get("/health")).status == 503; };
  EXPECT_TRUE(eventually(hangs));
  EXPECT_TRUE(health.body.contains("--watchdog-timeout 0.01")) << health.body;
  EXPECT_EQ(get("/health_generate").status, 503);
  Response info = get("/worker/info");  // a router would have kept its streams here
  EXPECT_EQ(info.status, 503);
  EXPECT_TRUE(info.body.contains("--watchdog-timeout 0.01")) << info.body;
  EXPECT_TRUE(info.body.contains(R"("code":"engine_hangs")")) << info.body;
  test::engine_held().release();
  EXPECT_TRUE(eventually([&](const auto&) { return get("/health").status == 200; }));
  EXPECT_TRUE(get("/worker/info").body.contains(R"("state":"ready")"));
  EXPECT_EQ(get("/health_generate").status, 200);
  EXPECT_TRUE(back_to_base());
}

TEST_F(Robustness, AReaderThatNeverReadsIsCut) {
  config.send_buffer_bytes_max = 10000;
  start();
  Client lazy(port(), false);
  lazy.shrink_receive_buffer();
  ASSERT_TRUE(lazy.connect());
  lazy.send("GET /pour?bytes=100000000 HTTP/1.1\r\nHost: localhost\r\n\r\n");
  EXPECT_TRUE(eventually([](const auto& c) { return c.connections == 0; }));
  Client endless(port(), false);
  endless.shrink_receive_buffer();
  ASSERT_TRUE(endless.connect());
  endless.send(kEndlessFlood);
  ASSERT_TRUE(eventually(has_run));
  EXPECT_EQ(get("/count?tokens=100").body, "100 length");  // the others go on
  EXPECT_TRUE(back_to_base());
}

TEST_F(Robustness, AReaderThatStopsIsCutInTime) {
  config.write_timeout_s = 0.1;
  config.send_buffer_bytes_max = 1 << 30;
  start();
  Client lazy(port(), false);
  lazy.shrink_receive_buffer();
  ASSERT_TRUE(lazy.connect());
  lazy.send(kEndlessFlood);
  EXPECT_TRUE(back_to_base());
}

TEST_F(Robustness, AThousandIdleConnectionsChangeNothing) {
  rlimit limit = {};
  getrlimit(RLIMIT_NOFILE, &limit);
  if (limit.rlim_max < 4096) GTEST_SKIP() << "too few descriptors";
  rlimit more = {4096, limit.rlim_max};
  setrlimit(RLIMIT_NOFILE, &more);
  start();
  std::vector<Client> idle;
  for (int i = 0; i < 1000; ++i) idle.push_back(client());
  ASSERT_TRUE(eventually([](const auto& c) { return c.connections == 1000; }));
  EXPECT_EQ(get("/count?tokens=50").body, "50 length");
  EXPECT_EQ(idle[500].get("/health").status, 200);
  idle.clear();
  EXPECT_TRUE(back_to_base());
  setrlimit(RLIMIT_NOFILE, &limit);
}

TEST_F(Robustness, IdleConnectionsAreClosedInTime) {
  config.idle_timeout_s = 0.05;
  start();
  Client client = this->client();
  EXPECT_EQ(client.get("/health").status, 200);
  EXPECT_TRUE(client.is_closed());
}

TEST_F(Robustness, TooManyConnectionsAreToldSo) {
  config.connections_max = 2;
  start();
  Client first = client(), second = client();
  EXPECT_EQ(first.get("/health").status, 200);
  EXPECT_EQ(second.get("/health").status, 200);
  EXPECT_EQ(get("/health").status, 503);
  first.close();
  EXPECT_TRUE(eventually([](const auto& c) { return c.connections == 1; }));
  EXPECT_EQ(get("/health").status, 200);
}

TEST_F(Robustness, RunningOutOfDescriptorsIsSurvived) {
#ifdef BANYAN_SANITIZED
  GTEST_SKIP() << "the sanitizer itself needs descriptors to look at an object's type";
#endif
  start();
  Client before = client();
  EXPECT_EQ(before.get("/health").status, 200);
  Client waiting(port(), false);
  auto open_now = std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {}) - 1;
  rlimit limit = {}, none = {};
  getrlimit(RLIMIT_NOFILE, &limit);
  none = {static_cast<rlim_t>(open_now), limit.rlim_max};
  setrlimit(RLIMIT_NOFILE, &none);
  EXPECT_TRUE(waiting.connect());
  EXPECT_EQ(before.get("/count?tokens=5").body, "5 length");
  setrlimit(RLIMIT_NOFILE, &limit);
  EXPECT_EQ(waiting.get("/health").status, 200);
}

TEST_F(Robustness, PipelinedBytesAreBounded) {
  start();
  Client client = this->client();
  client.send(kEndless);
  ASSERT_TRUE(eventually(runs));
  std::thread flood([&] { client.send(std::string(100'000'000, 'x')); });
  client.read_until("\n\n");
  EXPECT_EQ(get("/count?tokens=5").body, "5 length");
  client.shutdown_send();
  while (client.read_until("\n\n").ends_with("\n\n") && runs(counts())) {
  }
  stop();
  flood.join();
}

TEST_F(Robustness, ACancelStormLeavesNothing) {
  engine.running_max = 16;
  start();
  for (int round = 0; round < 5; ++round) {
    std::vector<Client> clients;
    for (int i = 0; i < 40; ++i) {
      clients.push_back(client());
      clients.back().send(i % 2 == 0 ? kEndless : kEndlessSilence);
    }
    for (size_t i = 0; i < clients.size(); ++i)
      i % 3 == 0 ? clients[i].close() : clients[i].reset();
  }
  EXPECT_TRUE(back_to_base());
  EXPECT_EQ(get("/count?tokens=5").body, "5 length");
}

class Drain : public ServerTest {};

// Issue 17: probes could not see the documented 503, because their connections were not accepted.
TEST_F(Drain, RunningStreamsFinishAndNewConnectionsAreAnswered503) {
  start();
  Client running = client(), idle = client();
  EXPECT_EQ(idle.get("/health").status, 200);
  running.send("GET /stream?tokens=8000 HTTP/1.1\r\nHost: localhost\r\n\r\n");
  ASSERT_TRUE(eventually(runs));
  server().drain();
  Response health = idle.get("/health");
  EXPECT_EQ(health.status, 503);
  EXPECT_TRUE(health.has("Connection: close"));
  for (const char* target : {"/health", "/ping", "/count?tokens=5", "/v1/models"}) {
    Response refused = get(target);
    EXPECT_EQ(refused.status, 503) << target;
    EXPECT_TRUE(refused.has("Retry-After: 1\r\n")) << target;
    EXPECT_TRUE(refused.has("Connection: close")) << target;
    EXPECT_NE(refused.body.find("shutting down"), refused.body.npos) << refused.body;
  }
  EXPECT_EQ(get("/metrics").status, 200);
  EXPECT_TRUE(running.response().body.ends_with("data: length\n\n"));
  stop();
}

TEST_F(Drain, RequestsAreAcceptedUntilBalancersHaveNoticed) {
  config.drain_delay_s = 2;
  start();
  Client running = client();
  running.send("GET /stream?tokens=8000 HTTP/1.1\r\nHost: localhost\r\n\r\n");
  ASSERT_TRUE(eventually(runs));
  server().drain();
  Response health = get("/health");
  EXPECT_EQ(health.status, 503);
  EXPECT_NE(health.body.find("shutting down"), health.body.npos) << health.body;
  EXPECT_NE(get("/worker/info").body.find(R"("state":"draining")"), std::string::npos);
  Response late = get("/count?tokens=5");
  EXPECT_EQ(late.status, 200);
  EXPECT_TRUE(late.has("Connection: close"));
  EXPECT_TRUE(running.response().body.ends_with("data: length\n\n"));
  stop();
}

TEST_F(Drain, WhatComesLateDoesNotHoldItUp) {
  config.drain_timeout_s = config.body_timeout_s = 3600;
  start();
  Client running = client();
  running.send("GET /stream?tokens=8000 HTTP/1.1\r\nHost: localhost\r\n\r\n");
  ASSERT_TRUE(eventually(runs));
  server().drain();
  Client half = client();
  half.send("POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\nabc");
  ASSERT_TRUE(eventually([](const auto& c) { return c.exchanges == 2; }));
  EXPECT_TRUE(running.response().body.ends_with("data: length\n\n"));
  stop();
}

TEST_F(Drain, WhatTakesTooLongIsCancelledAndTold) {
  config.drain_timeout_s = 0.05;
  start();
  Client running = client();
  running.send(kEndless);
  ASSERT_TRUE(eventually(runs));
  server().drain();
  EXPECT_TRUE(running.response().body.ends_with("data: cancelled\n\n"));
  stop();
}

TEST_F(Drain, StalledClientsDoNotHoldItUp) {
  config.drain_timeout_s = 0.05;
  start();
  Client lazy(port(), false);
  lazy.shrink_receive_buffer();
  ASSERT_TRUE(lazy.connect());
  lazy.send(kEndlessFlood);
  ASSERT_TRUE(eventually(has_run));
  Client half = client();
  half.send("POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\nabc");
  stop();
}

}  // namespace
}  // namespace banyan::robustness_test
