// What handlers use: the model, the engine thread, workers and the configuration.
//
// Belongs to the I/O thread, except where noted. While the model loads only config(), state() and
// metrics() may be used; the router answers for handlers that need the model.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "banyan/llm.h"
#include "base/error.h"
#include "base/trace_log.h"
#include "llm/engine_thread.h"
#include "llm/generator.h"
#include "llm/messages/message_parser.h"
#include "server/config.h"
#include "server/grammar_queue.h"
#include "server/http/http.h"
#include "server/http/workers.h"
#include "server/openai/responses/store.h"
#include "server/publish/kv_publisher.h"
#include "server/pull_queue.h"
#include "server/status/machine_meter.h"
#include "server/status/memory_use.h"
#include "server/status/metrics.h"
#include "server/tracing/request_spans.h"
#include "server/tracing/span_exporter.h"
#include "server/worker/run_logs.h"

namespace banyan {

class Service {
 public:
  using Post = std::function<void(std::move_only_function<void()>)>;

  // `post` runs a closure on the I/O thread and may be called from any thread.
  Service(ServerConfig config, Post post);
  ~Service();
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;

  enum class State { kLoading, kReady, kDraining };
  State state() const { return state_; }
  // Whether load balancers and routers should send requests elsewhere: while it drains, and for
  // ServerConfig::drain_delay_s before, when it still accepts them.
  bool leaving() const { return leaving_ || state_ == State::kDraining; }

  const ServerConfig& config() const { return config_; }
  Metrics& metrics() { return metrics_; }
  // Use the model as const only. Its tokenizer and template are safe on workers too.
  const Llm& llm() const { return *llm_; }
  const EngineConfig& engine_config() const { return engine_config_; }
  const EngineInfo& engine_info() const { return llm_->info(); }
  const std::string& model_name() const { return model_name_; }
  const ChatSyntax& chat_syntax() const { return chat_syntax_; }
  std::chrono::system_clock::time_point started_at() const { return started_at_; }
  // As of the last step, or the one before.
  const EngineStats& engine_stats() const { return last_report_.stats; }
  // Those that requests may name; none without an engine.
  std::vector<AdapterInfo> adapters() const {
    return engine_ != nullptr ? llm_->engine().adapters() : std::vector<AdapterInfo>();
  }
  // For what any thread may call. There must be an engine here.
  const Engine& model_engine() const { return llm_->engine(); }
  // The adapter of requests that name none; empty: the model itself.
  void set_default_adapter(std::string name) { config_.defaults.adapter = std::move(name); }
  // Empty unless the engine counts them.
  std::vector<ExpertCounts> expert_counts() const {
    return engine_ != nullptr ? llm_->engine().expert_counts() : std::vector<ExpertCounts>();
  }
  // The engine of this process. Null if workers elsewhere run the requests; the router then answers
  // for handlers that need an engine.
  EngineThread* engine() { return engine_; }
  bool has_engine() const { return engine_ != nullptr; }
  Generator& generator() { return *generator_; }
  // Of requests from routers.
  RunLogs& run_logs() { return run_logs_; }
  // The profile that runs, or has finished and was not fetched yet; null: none.
  std::shared_ptr<TraceLog>& profile() { return profile_; }
  MachineMeter& machine_meter() { return machine_meter_; }
  // Thread-safe.
  const std::shared_ptr<ResponseStore>& responses() const { return responses_; }
  // The owner of what a request stores: its API key, or everybody if none is required.
  std::string owner_of(const HttpRequest& request) const {
    return config_.api_keys.empty() ? std::string() : request.client;
  }

  // Generator::submit with metrics. abort() accepts `rid` until all requests have ended. With a
  // trace, each request gets spans.
  Result<std::shared_ptr<Submission>> submit(std::string rid, std::vector<GenerateRequest> requests,
                                             SubmissionSinks sinks,
                                             std::shared_ptr<const RequestTrace> trace = nullptr,
                                             std::vector<RunName> names = {});
  // For an incoming request. Null if tracing is off or the client opted out.
  std::shared_ptr<RequestTrace> begin_trace(const HttpRequest& request) const;
  // Nothing if tracing is off.
  std::optional<SpanCounts> span_counts() const;
  // Generator::abandon: no more events. `reason` is for the metrics: kStop after a stop string,
  // kCancelled after a disconnect.
  void abandon(const std::shared_ptr<Submission>& submission, FinishReason reason,
               std::optional<size_t> index = std::nullopt);
  // Ends the submissions with that id with kCancelled events. Returns how many there were.
  size_t abort(const std::string& rid);
  void abort_all();

  // Runs `work` on a worker when it is the client's turn, then `then` with its Result on the I/O
  // thread. Returns false, and runs neither, if too much work is queued. An exception in `work`
  // becomes kExhausted.
  template <class Work, class Then>
  bool run_on_worker(const std::string& client, Work work, Then then) {
    return enqueue_work(client, [this, work = std::move(work), then = std::move(then)]() mutable {
      auto result = guard(std::move(work));
      post_([then = std::move(then), result = std::move(result)]() mutable {
        then(std::move(result));
      });
    });
  }

  // Memory by part; queries the operating system.
  MemoryUse memory_use() const;
  // Memory held by connections, reported by the server.
  struct ConnectionUse {
    int64_t body_bytes = 0, buffer_bytes = 0;
  };
  void on_connection_use(std::function<ConnectionUse()> measure) {
    connection_use_ = std::move(measure);
  }

  // Compiles grammars on its own threads. Not to be used after stop().
  GrammarQueue& grammars() { return *grammars_; }
  size_t grammars_waiting() const { return grammars_ ? grammars_->waiting() : 0; }

  // Null if downloads are not supported.
  PullQueue* pulls() { return pulls_.get(); }

  // The functions below are for Server.
  // Opens what ServerConfig::kv_publish names, if it is enabled.
  Status open_publisher();
  void set_puller(ModelPuller puller);
  // Expires overdue grammar waits, logs when the engine hangs, and occasionally returns free memory
  // to the system after load.
  void tick(std::chrono::steady_clock::time_point now);
  // Takes the loaded model, starts the engine thread and becomes kReady.
  void attach(std::unique_ptr<Llm> llm, const EngineConfig& config);
  // The same for an Llm without an engine; `generator` reports to on_step().
  void attach(std::unique_ptr<Llm> llm, const EngineConfig& config,
              std::unique_ptr<Generator> generator);
  void on_step(const StepReport& report);
  void leave() { leaving_ = true; }
  void drain() { state_ = State::kDraining; }
  // Stops workers and engine; running requests get their last event.
  void stop();

 private:
  struct Live;

  bool enqueue_work(const std::string& client, std::move_only_function<void()> work);
  void name_model(const EngineConfig& config);
  void find_syntax();
  void watch_engine();
  void log_steps(const StepReport& report);
  void log_request(const Live& live, std::span<const GenerateRequest> requests) const;
  void log_finished(const Live& live, size_t index) const;
  void trace_finished(const Live& live, size_t index, const Error& error) const;
  void trace_rejected(Live& live, const Error& error) const;

  ServerConfig config_;
  Post post_;
  State state_ = State::kLoading;
  bool leaving_ = false;
  std::function<ConnectionUse()> connection_use_;
  std::chrono::steady_clock::time_point next_give_back_;
  Metrics metrics_;
  std::unique_ptr<SpanExporter> spans_;  // null: tracing is off
  std::chrono::system_clock::time_point started_at_;

  EngineConfig engine_config_;
  std::string model_name_;
  ChatSyntax chat_syntax_;
  std::unique_ptr<KvPublisher> publisher_;  // null: nothing is published; the engine calls it
  std::unique_ptr<Llm> llm_;
  std::shared_ptr<TraceLog> profile_;
  MachineMeter machine_meter_;
  StepReport last_report_;
  EngineStats logged_;  // as of the last log line about decoding
  std::chrono::steady_clock::time_point logged_at_;
  std::unordered_map<const Submission*, std::shared_ptr<Live>> live_;
  RunLogs run_logs_;
  EngineThread* engine_ = nullptr;        // `generator_`, if it is one
  bool engine_hangs_ = false;             // and this has been logged
  std::unique_ptr<Generator> generator_;  // declared after the members it uses
  std::unique_ptr<Workers> workers_;
  std::unique_ptr<GrammarQueue> grammars_;
  std::unique_ptr<PullQueue> pulls_;
  std::shared_ptr<ResponseStore> responses_;
};

}  // namespace banyan
