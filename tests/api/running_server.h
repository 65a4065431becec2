// A server or a router in this process that runs until it is destroyed, with the tests' routes.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <string>
#include <thread>

#include "api/client.h"
#include "api/server_fixture.h"
#include "llm/llm_parts.h"
#include "server/server.h"

namespace banyan::test {

class RunningServer {
 public:
  // With `route`, only the model's tokenizer is loaded. Otherwise the engine also uses `storage`.
  RunningServer(const EngineConfig& engine, ServerConfig config,
                const std::optional<RouteConfig>& route = {}, EngineAssembly::Storage storage = {})
      : headers_(config.api_keys.empty() ? ""
                                         : fmt::format("X-Api-Key: {}\r\n", config.api_keys[0])),
        server_(std::move(config), test_routes()) {
    EXPECT_TRUE(server_.listen());
    if (route) server_.use_workers(*route);
    thread_ = std::jthread([this] {
      Status ended = server_.run();
      EXPECT_TRUE(ended) << ended.error().message;
    });
    server_.attach(route ? Llm::load_without_engine(engine)
                         : load_with_storage(engine, {}, std::move(storage)),
                   engine);
    server_.counts();  // until the model is in place
  }
  ~RunningServer() {
    server_.drain();
    thread_.join();
  }
  RunningServer(const RunningServer&) = delete;
  RunningServer& operator=(const RunningServer&) = delete;

  std::string url() const { return server_.address(); }
  int port() const { return server_.port(); }
  // With the first API key, if there are any.
  Response get(const std::string& target) const { return Client(port()).get(target, headers_); }

  // The value of the first line of /metrics that begins so; -1: none does.
  double figure(const std::string& name) const {
    std::string text = "\n" + get("/metrics").body;
    size_t at = text.find("\n" + name);
    if (at == text.npos) return -1;
    std::string line = text.substr(at + 1, text.find('\n', at + 1) - at - 1);
    return std::stod(line.substr(line.rfind(' ') + 1));
  }
  // Waits until the value has risen, or fallen, to this.
  bool reaches(const std::string& name, double value, bool falling = false) const {
    auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(kPatienceMs);
    while (std::chrono::steady_clock::now() < end) {
      double now = figure(name);
      if (falling ? now <= value : now >= value) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    ADD_FAILURE() << name << " is " << figure(name) << ", not " << value;
    return false;
  }

 private:
  std::string headers_;
  Server server_;
  std::jthread thread_;
};

}  // namespace banyan::test
