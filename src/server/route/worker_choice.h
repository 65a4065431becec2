// Chooses a worker for a request. Workers report their caches and load into one FleetView per
// identity, and the policy chooses among them.
//
// Workers whose identity differs (state digest, draws, kernels, types) are in different views, so
// they share neither a prefix nor a stream. A worker without an event stream is chosen by its load
// alone, in a view without prefixes. Belongs to the I/O thread.
#pragma once

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "router/fleet_view.h"
#include "server/route/prompt_pages.h"
#include "server/route/remote_worker.h"
#include "server/route/worker_events.h"

namespace banyan {

class WorkerChoice {
 public:
  using SteadyTime = std::chrono::steady_clock::time_point;

  // A request to be placed.
  struct Request {
    std::span<const TokenId> prompt;
    PromptPages* pages = nullptr;
    int64_t tokens_before = 0;  // of its output, computed by other workers
    int64_t output_tokens = 0;  // an estimate of what is still to come
    uint64_t id = 0;
    std::string_view identity;        // of the workers that may continue it; empty: any
    std::span<const int> excluded{};  // workers
    std::string_view place;           // the worker that should run it, if it can; empty: any
  };
  struct Placement {
    int worker = -1;  // -1: none
    int view = -1;
    RouteChoice choice;
  };
  struct Figures {
    int64_t announcing = 0;  // workers that stream their cache events
    int64_t entries = 0, evicted = 0, bytes = 0, gaps = 0, reopened = 0;
    int64_t decisions = 0, hashed_pages = 0;
    double decision_s = 0, hashing_s = 0;
  };

  WorkerChoice(boost::asio::io_context& io, const RouteConfig& config);
  ~WorkerChoice();

  // A worker's number is its index in the router's list. Requires that the number is not in use.
  void add(int number, std::shared_ptr<RemoteWorker> worker);
  void remove(int number);
  // Processes reports of workers. Call it a few times per second.
  void tick(SteadyTime now);
  void stop();

  // The request counts as sent once sent() is called.
  Placement choose(const Request& request, SteadyTime now);
  void sent(const Placement& placement, const Request& request, SteadyTime now);
  // The request ended, with or without success.
  void ended(const Placement& placement);

  Figures figures() const;

 private:
  // Workers of one identity. Its number is reused once it has no workers.
  struct View {
    std::string identity;
    std::optional<StateDigest> states;  // nothing: they do not report their caches
    StateClasses classes;
    std::unique_ptr<FleetView> fleet;
    int workers = 0;
  };
  struct Source {
    std::shared_ptr<RemoteWorker> worker;  // null: the number is not in use
    std::shared_ptr<WorkerEvents> events;  // null: not requested
    std::string identity;                  // when the view was chosen
    int view = -1;                         // -1: none yet
    bool silent = false;                   // it has no event stream, and the log says so
    SteadyTime opened, retry_at;
    uint64_t answers = 0;  // of /worker/info, as of the last report that used it
  };

  void refresh(int number, SteadyTime now);
  void listen(int number, SteadyTime now);
  bool take(int number, const KvMessage& message);
  void hear_end(int number, bool refused, const std::string& why);
  void join(int number, const KvHello* hello);
  void leave(int number);
  void go_by_load(int number, const std::string& why);
  void report_load(Source& source, SteadyTime now);
  int view_for(const Source& source, const KvHello* hello);
  bool announces(const Source& source) const;
  Placement choose_any(const Request& request, SteadyTime now);
  RouteRequest request_for(const View& view, const Request& request);
  Source& source(int number) { return sources_[number]; }

  boost::asio::io_context& io_;
  const RouteConfig& config_;
  std::vector<Source> sources_;  // by number
  std::vector<View> views_;
  Figures figures_;
};

}  // namespace banyan
