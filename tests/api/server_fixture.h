// A server in this process, with the tiny model and additional routes for tests.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <optional>
#include <semaphore>
#include <thread>
#include <vector>

#include "api/client.h"
#include "server/server.h"
#include "support/models/tiny_model.h"

namespace banyan::test {

// The routes of `banyan serve` and these:
//   GET /stream?tokens=N&prompt=M   an event for each of N tokens that follow M prompt tokens; with
//                                   &pad=B each has B more bytes
//   GET /count?tokens=N&prompt=M    one answer when all have come
//   POST /echo                      the body's length
//   GET /silent, /throw             handlers that forget to answer, that run out of memory
//   GET /pour?bytes=N               a stream of N bytes, as fast as it may
//   GET /hold_grammars              nothing is compiled until grammars_held() is released
//   GET /hold_engine                no step is made until engine_held() is released
std::span<const Route> test_routes();
std::binary_semaphore& grammars_held();
std::binary_semaphore& engine_held();

class ServerTest : public testing::Test {
  TemporaryFolder folder_;

 protected:
  // What most tests change before start().
  ServerConfig config = {.port = 0};
  EngineConfig engine = tiny_model(folder_);
  ModelPuller puller;  // none: the server knows no hub

  ~ServerTest() override { stop(); }

  void start(bool with_model = true);
  void attach_model();
  // Drains and waits for the end.
  void stop();

  int port() const { return server_->port(); }
  Client client() const { return Client(port()); }
  Response get(const std::string& target, std::string_view headers = "") const {
    return client().get(target, headers);
  }
  Server& server() { return *server_; }
  Server::Counts counts() { return server_->counts(); }
  // Waits until the counts satisfy `condition`; returns whether they ever did.
  bool eventually(const std::function<bool(const Server::Counts&)>& condition);
  // Waits until nothing runs and nothing is held.
  bool back_to_base();

 private:
  std::unique_ptr<Server> server_;
  std::jthread thread_;
};

}  // namespace banyan::test
