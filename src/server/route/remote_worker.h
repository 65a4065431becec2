// A worker as a router sees it: its connections, its last report, and whether it may get requests.
//
// Health means progress. A worker is polled at short intervals. One that does not answer, that says
// that its engine hangs, or that has requests and takes no step, is given up, even if its port
// still accepts connections. Belongs to the I/O thread.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "client/http_client.h"
#include "server/route/route_config.h"
#include "server/route/shared_death.h"
#include "server/worker/worker_info.h"

namespace banyan {

class RemoteWorker : public std::enable_shared_from_this<RemoteWorker> {
 public:
  using SteadyTime = std::chrono::steady_clock::time_point;
  struct Events {
    std::function<void()> answered;  // there is a new WorkerInfo
    // The worker is given up: its requests are lost.
    std::function<void(const std::string& why)> lost;
  };

  // kInvalidArgument: not a URL. `tls` is for https URLs.
  static Result<std::shared_ptr<RemoteWorker>> open(boost::asio::io_context& io,
                                                    const std::string& url,
                                                    const RouteConfig& config,
                                                    std::shared_ptr<const TlsContext> tls);
  RemoteWorker(boost::asio::io_context& io, ServerUrl parsed, std::string url,
               const RouteConfig& config, std::shared_ptr<const TlsContext> tls);

  void on(Events events) { events_ = std::move(events); }
  // Polls the worker and checks deadlines. Call it often.
  void tick(SteadyTime now);
  void stop();

  const std::string& url() const { return url_; }
  // Of the process, the same at every router; empty: not known yet.
  std::string_view name() const { return name_; }
  // Null: it has not answered yet, or not since it was suspected.
  const WorkerInfo* info() const { return info_ ? &*info_ : nullptr; }
  bool is_ready() const {
    bool fits =
        info_ && (config_.state_digest.empty() || config_.state_digest == info_->state_digest);
    return !leaving && fits && info_->state == WorkerInfo::State::kReady;
  }
  // Whether it may be given a request now.
  bool has_room(SteadyTime now) const;
  uint64_t answers() const { return answers_; }  // number of reports so far
  HttpClient& client() { return client_; }

  // Reports a failed request: its connection broke, or it failed though the worker lives.
  void suspect(const std::string& why);
  void failed(SteadyTime now);
  void succeeded() { failures_ = 0; }

  int64_t in_flight = 0, waiting_tokens = 0;  // of this router's requests
  int64_t unanswered = 0;                     // of those in flight
  SharedDeath death;
  bool leaving = false;  // no longer listed: finishes its requests and gets no new ones

 private:
  void ask(SteadyTime now);
  void take(int status, const Status& outcome);
  bool stalls(SteadyTime now);
  void give_up(const std::string& why);

  const std::string url_;
  const RouteConfig& config_;
  HttpClient client_;
  Events events_;
  std::optional<WorkerInfo> info_;
  uint64_t question_ = 0;  // 0: no poll is in progress
  uint64_t questions_ = 0;
  uint64_t answers_ = 0;
  std::string answer_;
  SteadyTime asked_, progressed_;
  uint64_t epoch_ = 0;
  std::string name_;
  int64_t progress_ = -1;
  int failures_ = 0;
  SteadyTime closed_until_;
  bool told_ = false;  // its current state is in the log
};

}  // namespace banyan
