// Runs requests on workers in other processes: `banyan route`.
//
// A request goes to one worker. If that worker is lost (it died, hangs or drains), the request
// continues on another with `resume_tokens`, and the client does not notice. Each token has its
// position and is forwarded only if it is the next one; events of an abandoned attempt are dropped.
// Streams never move between workers that differ in anything that changes a bit.
//
// Three limits keep failures from spreading. A request moves `migrations_max` times at most. One
// that three workers died of at once, as hardly another can have caused, is not given to a fourth.
// Retries on workers that live, but refuse, are at most a tenth of the traffic.
//
// Belongs to the I/O thread, which is the delivery thread.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <deque>
#include <memory>
#include <unordered_set>
#include <vector>

#include "base/fair_shares.h"
#include "llm/generator.h"
#include "server/route/membership.h"
#include "server/route/remote_worker.h"
#include "server/route/route_config.h"
#include "server/route/worker_choice.h"
#include "server/worker/wire.h"

namespace banyan {

class RemoteGenerator final : public Generator {
 public:
  // Counters of workers and of this router, for /metrics and logs.
  struct Counts {
    int64_t requests = 0, migrations = 0, retries = 0, poisoned = 0, expired = 0, waiting = 0;
    // Prompt tokens sent: all, those expected to be cached, and those that were.
    int64_t sent_tokens = 0, predicted_tokens = 0, cached_tokens = 0;
  };

  // `on_step` gets sums over the workers. Errors: an invalid URL, an unknown policy, a TLS file.
  static Result<std::unique_ptr<RemoteGenerator>> open(
      boost::asio::io_context& io, const RouteConfig& config,
      std::function<void(const StepReport&)> on_step);
  ~RemoteGenerator() override;

  Result<std::shared_ptr<Submission>> submit(std::vector<GenerateRequest> requests,
                                             SubmissionSinks sinks,
                                             std::vector<RunName> names = {}) override;
  void cancel(const std::shared_ptr<Submission>& submission) override;
  void cancel_all() override;
  void abandon(const std::shared_ptr<Submission>& submission, std::optional<size_t> index) override;
  Status ready() const override;
  std::vector<GeneratorFigure> figures() const override;
  void stop() override;

  const std::vector<std::shared_ptr<RemoteWorker>>& workers() const { return workers_; }
  Counts counts() const;

 private:
  using SteadyTime = std::chrono::steady_clock::time_point;
  struct RemoteSubmission;
  struct Job;
  using JobPtr = std::shared_ptr<Job>;

  RemoteGenerator(boost::asio::io_context& io, const RouteConfig& config,
                  std::function<void(const StepReport&)> on_step);

  void tick();
  Status admit(const std::string& url);
  void dismiss(const std::string& url);
  void retire(SteadyTime now);
  void count_progress(const WorkerInfo& info, WorkerInfo& counted);
  void report();
  void pump();
  bool place(const JobPtr& job);
  WorkerChoice::Request request_of(const Job& job) const;
  void start(const JobPtr& job, const WorkerChoice::Placement& placement, SteadyTime now);
  static WireRequest next_attempt(const Job& job);
  void take_bytes(const JobPtr& job, int http_status, std::string_view bytes);
  void take_line(const JobPtr& job, std::string_view text);
  static void take_progress(Job& job, const TokenEvent& event);
  void take_event(const JobPtr& job, TokenEvent event);
  void take_end(const JobPtr& job, int http_status, const Status& outcome);
  void take_rejection(const JobPtr& job, const Error& error);
  void lose(const JobPtr& job, const std::string& why, bool crashed);
  void lose_all(const RemoteWorker& worker, const std::string& why);
  Status check_queue(const std::vector<GenerateRequest>& requests) const;
  void enter_queue(Job& job);
  void leave_queue(Job& job);
  void leave(Job& job);
  void requeue(const JobPtr& job);
  void fail(const JobPtr& job, const Error& error);
  void finish(const JobPtr& job, const TokenEvent& event);
  void end(const JobPtr& job);
  void drop(const JobPtr& job);
  void hang_up(const Job& job);
  void expire(SteadyTime now);
  void add_worker_figures(std::vector<GeneratorFigure>& all) const;

  boost::asio::io_context& io_;
  const RouteConfig config_;
  std::function<void(const StepReport&)> on_step_;
  std::shared_ptr<const TlsContext> tls_;
  std::vector<std::shared_ptr<RemoteWorker>> workers_;  // by number; null: unused
  std::unique_ptr<WorkerMembership> membership_;        // null: the list is fixed
  WorkerChoice choice_;
  std::unordered_set<JobPtr> jobs_;  // that have not ended
  std::deque<JobPtr> waiting_;
  FairShares waiting_clients_;  // of those in `waiting_` that have not ended
  boost::asio::steady_timer timer_;
  WireLine line_;
  Counts counts_;
  EngineStats totals_;               // steps and tokens of all workers
  std::vector<WorkerInfo> counted_;  // per worker: what totals_ includes
  double retries_left_;
  double output_tokens_;  // expected tokens of an answer, from recent ones
  bool stopped_ = false;
};

}  // namespace banyan
