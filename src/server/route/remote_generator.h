// Runs requests on workers elsewhere: `banyan route`.
//
// A request goes to one worker. When that is lost (it died, hangs, drains), the request goes to
// another with `resume_tokens`, and the client sees nothing of it: each token has its position, and
// one is handed on only if it is the next. What an attempt says after it was given up is dropped.
// Streams never move between workers that differ in anything that changes a bit.
//
// Three limits keep trouble from growing. A request moves `migrations_max` times at most. One that
// two workers died of at once is not given to a third. And retries on workers that live, but
// refuse, are a tenth of the traffic at most.
//
// Belongs to the I/O thread, which is the delivery thread.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <deque>
#include <memory>
#include <unordered_set>
#include <vector>

#include "llm/generator.h"
#include "server/route/membership.h"
#include "server/route/remote_worker.h"
#include "server/route/route_config.h"
#include "server/route/worker_choice.h"
#include "server/worker/wire.h"

namespace banyan {

class RemoteGenerator final : public Generator {
 public:
  // For /metrics and logs: what workers and this router have done.
  struct Counts {
    int64_t requests = 0, migrations = 0, retries = 0, poisoned = 0, expired = 0, waiting = 0;
    // Of prompts that were sent: all tokens, those that the choice took for cached, those that
    // were.
    int64_t sent_tokens = 0, predicted_tokens = 0, cached_tokens = 0;
  };

  // `on_step` hears sums over the workers. Errors: a URL, an unknown policy, a file of TLS.
  static Result<std::unique_ptr<RemoteGenerator>> open(
      boost::asio::io_context& io, const RouteConfig& config,
      std::function<void(const StepReport&)> on_step);
  ~RemoteGenerator() override;

  Result<std::shared_ptr<Submission>> submit(std::vector<GenerateRequest> requests,
                                             SubmissionSinks sinks) override;
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
  void take_event(const JobPtr& job, TokenEvent event);
  void take_end(const JobPtr& job, int http_status, const Status& outcome);
  void take_rejection(const JobPtr& job, const Error& error);
  void lose(const JobPtr& job, const std::string& why, bool crashed);
  void lose_all(const RemoteWorker& worker, const std::string& why);
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
  std::vector<std::shared_ptr<RemoteWorker>> workers_;  // by number; null: nobody has it
  std::unique_ptr<WorkerMembership> membership_;        // null: workers are named once
  WorkerChoice choice_;
  std::unordered_set<JobPtr> jobs_;  // that have not ended
  std::deque<JobPtr> waiting_;
  boost::asio::steady_timer timer_;
  WireLine line_;
  Counts counts_;
  EngineStats totals_;               // of steps and tokens, over all workers
  std::vector<WorkerInfo> counted_;  // by worker: what totals_ has of it
  double retries_left_;
  double output_tokens_;  // of an answer, lately: what the next is expected to have
  bool stopped_ = false;
};

}  // namespace banyan
