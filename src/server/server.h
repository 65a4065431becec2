// The HTTP server: listener, connections, deadlines, and a shutdown that lets running streams
// finish.
//
//   Server server(config);
//   TRY(server.listen());
//   std::jthread loader([&] { server.attach(Llm::load(engine), engine); });
//   server.run();      // until drain() has emptied it, or a signal
//
// Threads: a single I/O thread, the caller of run(), serves all connections. The engine and the
// workers have threads of their own.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "banyan/llm.h"
#include "server/config.h"
#include "server/route/route_config.h"
#include "server/routes.h"

namespace banyan {

class Server {
 public:
  // `routes` must outlive the server.
  explicit Server(ServerConfig config, std::span<const Route> routes = all_routes());
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // Binds and listens. Clients that connect while the model loads get a 503.
  Status listen();
  int port() const;
  std::string address() const;  // "http://127.0.0.1:30000"

  // Passes in the loaded model, or an error, which ends run(). May be called from any thread, once.
  void attach(Result<std::unique_ptr<Llm>> llm, const EngineConfig& config);

  // Requests run on these workers, and attach() takes an Llm without an engine. Set it before
  // run().
  void use_workers(RouteConfig route);

  // Called on the I/O thread once the server accepts requests. Set it before run().
  void on_ready(std::function<void()> callback);

  // Downloads models for /api/pull. Set it before run().
  void on_pull(ModelPuller puller);

  // Serves until shutdown and returns attach()'s error, if any. With `handle_signals`, SIGTERM and
  // SIGINT drain, and a second signal ends the process immediately.
  Status run(bool handle_signals = false);

  // Starts shutdown: /health becomes a 503, so that probes and load balancers notice, and after
  // ServerConfig::drain_delay_s every new request is. Requests in progress may then finish within
  // drain_timeout_s and are cancelled after that. Safe from any thread.
  void drain();

  // For tests, from any thread while run() is active.
  struct Counts {
    int64_t connections = 0;
    int64_t exchanges = 0;
    int64_t body_bytes = 0;
    int64_t grammars_waiting = 0;  // requests waiting for their grammars to compile
    EngineStats engine;
  };
  Counts counts();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace banyan
