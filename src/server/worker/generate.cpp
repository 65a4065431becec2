// POST /worker/generate: runs a router's request and streams its events.
#include <chrono>
#include <memory>
#include <utility>

#include "base/error.h"
#include "llm/llm_parts.h"
#include "llm/thinking_budget.h"
#include "server/fields/token_filter.h"
#include "server/grammar_queue.h"
#include "server/json/endpoint.h"
#include "server/worker/endpoints.h"
#include "server/worker/run_logs.h"
#include "server/worker/wire.h"
#include "server/worker/worker_info.h"

namespace banyan {
namespace {

using SteadyClock = std::chrono::steady_clock;

// One request of a router. Owned by its sinks.
class WorkerRun : public std::enable_shared_from_this<WorkerRun> {
 public:
  WorkerRun(Service& service, std::string id, std::string client, ResponderPtr responder)
      : service_(service),
        id_(std::move(id)),
        client_(std::move(client)),
        responder_(std::move(responder)) {}

  void use(WireRequest wire);

 private:
  void compile(const GrammarSource& grammar);
  void start(std::shared_ptr<const CompiledGrammar> grammar);
  Result<std::shared_ptr<TokenConstraint>> constraint(
      std::shared_ptr<const CompiledGrammar> grammar) const;
  bool replay();
  void open_log(const Digest& digest);
  void log(const TokenEvent& event);
  void take(const TokenEvent& event);
  void reject(const Error& error);
  void send(std::string_view line, bool last);

  Service& service_;
  std::string id_, client_;
  ResponderPtr responder_;
  WireRequest wire_;
  std::shared_ptr<Submission> submission_;
  RunLogs::LogPtr log_;  // null: nobody will ask for it
  std::string line_;
};

void WorkerRun::use(WireRequest wire) {
  if (!responder_->alive()) return;
  wire_ = std::move(wire);
  const std::optional<GrammarSource>& grammar = wire_.constraint.grammar;
  if (!grammar) return start(nullptr);
  if (auto compiled = find_compiled(service_.llm(), *grammar)) return start(std::move(compiled));
  compile(*grammar);
}

void WorkerRun::compile(const GrammarSource& grammar) {
  auto timeout = std::chrono::duration_cast<SteadyClock::duration>(
      std::chrono::duration<double>(service_.config().grammar_timeout_s));
  auto wait = service_.grammars().compile(
      service_.llm(), client_, {{grammar, "grammar"}}, SteadyClock::now() + timeout,
      [self = shared_from_this()](GrammarQueue::End end, const CompiledGrammars& compiled,
                                  const RequestError* error) {
        if (end == GrammarQueue::End::kFailed) return self->reject(error->error);
        if (end == GrammarQueue::End::kCompiled) return self->start(compiled.begin()->second);
        self->reject({ErrorCode::kExhausted, "the grammar was not compiled in time"});
      });
  if (!wait) return reject({ErrorCode::kExhausted, "too many grammars wait to be compiled"});
  responder_->on_disconnect([&service = service_, wait] { service.grammars().cancel(wait); });
}

Result<std::shared_ptr<TokenConstraint>> WorkerRun::constraint(
    std::shared_ptr<const CompiledGrammar> grammar) const {
  const ConstraintSource& source = wire_.constraint;
  int64_t vocabulary = service_.engine_info().vocabulary;
  std::shared_ptr<TokenConstraint> made;
  if (grammar) {
    EarlyStops early = source.early;
    std::erase_if(early.stops, [&](TokenId id) { return id < 0 || id >= vocabulary; });
    made = std::make_shared<Matcher>(std::move(grammar), std::move(early));
  }
  if (source.tokens) {
    for (TokenId id : source.tokens->allowed) {
      if (id < vocabulary) continue;
      return invalid_argument("allowed: token {} is outside the vocabulary of {} tokens", id,
                              vocabulary);
    }
    made = std::make_shared<TokenFilter>(source.tokens, vocabulary);
  }
  if (!source.thinking) return made;
  auto rules = std::make_shared<ThinkingRules>(*source.thinking);
  rules->tokenizer = tokenizer_of(service_.llm());
  if (rules->tokenizer == nullptr) return unsupported("thinking: the model has no tokenizer");
  return std::make_shared<ThinkingBudget>(std::move(rules), std::move(made), vocabulary);
}

void WorkerRun::start(std::shared_ptr<const CompiledGrammar> grammar) {
  auto made = constraint(std::move(grammar));
  if (!made) return reject(made.error());
  if (!service_.config().defaults.adapter.empty()) {
    return reject({ErrorCode::kUnsupported,
                   "this worker gives all requests an adapter (--lora), which no router knows of; "
                   "start it without"});
  }
  if (!wire_.name.empty() && replay()) return;
  std::vector<GenerateRequest> requests;
  requests.push_back(std::move(wire_.request));
  requests[0].constraint = *std::move(made);
  requests[0].options.client = client_;  // the router
  auto self = shared_from_this();
  auto submission =
      service_.submit(id_, std::move(requests),
                      {.event = [self](size_t, const TokenEvent& event) { self->take(event); },
                       .rejected = [self](const Error& error) { self->reject(error); }});
  if (!submission) return reject(submission.error());
  submission_ = *std::move(submission);
  responder_->on_disconnect([weak = weak_from_this()] {
    auto run = weak.lock();
    if (!run || !run->submission_) return;
    auto ended = std::exchange(run->submission_, nullptr);
    run->service_.abandon(ended, FinishReason::kCancelled);
  });
}

// Sends what a run of this name has sent before, to a router that is gone, so that the rest alone
// is computed. Returns whether there is no rest.
bool WorkerRun::replay() {
  GenerateRequest& request = wire_.request;
  Digest digest = request_digest(wire_);
  RunLogs::LogPtr begun;
  if (request.resume_tokens.empty()) begun = service_.run_logs().find(wire_.name, digest);
  if (!begun) {
    open_log(digest);
    return false;
  }
  send(begun->lines, begun->ended);
  if (begun->ended) return true;
  request.resume_tokens = begun->tokens;
  request.options.prompt_logprobs_begin.reset();
  log_ = service_.run_logs().open(*begun, SteadyClock::now());
  return false;
}

// A run that continues another worker's reports that one's tokens as well, but their
// log-probabilities are lost.
void WorkerRun::open_log(const Digest& digest) {
  const GenerationOptions& options = wire_.request.options;
  const std::vector<TokenId>& before = wire_.request.resume_tokens;
  bool with_logprobs = options.logprobs || options.top_logprobs > 0 ||
                       !options.logprob_token_ids.empty() || options.prompt_logprobs_begin;
  if (!before.empty() && with_logprobs) return;
  RunLog log{.name = wire_.name, .request = digest, .tokens = before};
  for (size_t i = 0; i < before.size(); ++i) {
    int64_t position = std::ssize(wire_.request.prompt) + static_cast<int64_t>(i);
    append_event({.position = position, .has_token = true, .token = before[i]}, log.lines);
  }
  log_ = service_.run_logs().open(std::move(log), SteadyClock::now());
}

// `line_` is the event's.
void WorkerRun::log(const TokenEvent& event) {
  if (!log_ || event.is_progress()) return;
  bool ended = event.finish != FinishReason::kNone;
  if (ended && event.finish != FinishReason::kStop && event.finish != FinishReason::kLength) {
    return service_.run_logs().drop(*log_);
  }
  service_.run_logs().append(*log_, line_, SteadyClock::now());
  if (event.has_token && !event.from_prompt) log_->tokens.push_back(event.token);
  log_->ended = ended;
}

void WorkerRun::take(const TokenEvent& event) {
  bool last = event.finish != FinishReason::kNone;
  bool leaves =
      event.finish == FinishReason::kCancelled && service_.state() == Service::State::kDraining;
  if (leaves) return send(kResumableLine, true);
  line_.clear();
  append_event(event, line_);
  log(event);
  send(line_, last);
}

void WorkerRun::reject(const Error& error) {
  line_.clear();
  append_rejection(error, line_);
  send(line_, true);
}

void WorkerRun::send(std::string_view line, bool last) {
  if (!responder_->started()) responder_->begin_stream("application/x-ndjson");
  responder_->send(line);
  if (!last) return;
  submission_ = nullptr;
  responder_->finish();
}

}  // namespace

void worker_generate(Service& service, HttpRequest request, ResponderPtr responder) {
  auto run = std::make_shared<WorkerRun>(service, request.id, request.client, responder);
  auto body = std::make_shared<const std::string>(std::move(request.body));
  make_on_worker<WireRequest>(
      service, request.client, responder,
      [body]() -> Parsed<WireRequest> { return TRY(read_request(*body)); },
      [run](WireRequest wire) { run->use(std::move(wire)); });
}

// A router must learn that the engine hangs: its streams here would wait for good.
void worker_info(Service& service, HttpRequest, ResponderPtr responder) {
  Status steps = service.engine() != nullptr ? service.engine()->ready() : Status();
  if (!steps) return responder->respond_error(503, steps.error().message, {}, kEngineHangsCode);
  responder->respond(200, to_json(worker_info_of(service)));
}

}  // namespace banyan
