// The HTTP server: a listener, its connections, the clock that cuts the slow ones, and an end that
// lets running streams finish.
//
//   Server server(config);
//   TRY(server.listen());
//   std::jthread loader([&] { server.attach(Llm::load(engine), engine); });
//   server.run();      // until drain() has emptied it, or a signal
//
// One I/O thread, the one in run(), serves everybody; the engine has its own and so have workers.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "banyan/llm.h"
#include "server/config.h"
#include "server/routes.h"

namespace banyan {

class Server {
 public:
  // `routes` must outlive the server.
  explicit Server(ServerConfig config, std::span<const Route> routes = all_routes());
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // Binds. Clients may connect and get a 503 while the model loads.
  Status listen();
  int port() const;
  std::string address() const;  // "http://127.0.0.1:30000"

  // The loaded model, or why there is none, which ends run(). From any thread, once.
  void attach(Result<std::unique_ptr<Llm>> llm, const EngineConfig& config);

  // Called on the I/O thread once requests are welcome; set before run().
  void on_ready(std::function<void()> callback);

  // What fetches models for /api/pull; set before run().
  void on_pull(ModelPuller puller);

  // Serves until the end; the error is attach()'s. With `handle_signals`, SIGTERM and SIGINT drain,
  // a second one ends the process at once.
  Status run(bool handle_signals = false);

  // Takes no more work: new requests are answered with 503, so that probes and balancers see it.
  // Those that are being answered may finish for ServerConfig::drain_timeout_s and are then
  // cancelled. From any thread.
  void drain();

  // For tests, from any thread while run() runs.
  struct Counts {
    int64_t connections = 0;
    int64_t exchanges = 0;
    int64_t body_bytes = 0;
    int64_t grammars_waiting = 0;  // requests whose grammars are compiled, or wait for it
    EngineStats engine;
  };
  Counts counts();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace banyan
