#include "server/generation.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <iterator>
#include <utility>

#include "base/check.h"
#include "base/error.h"
#include "base/json_text.h"
#include "base/signed.h"
#include "llm/llm_parts.h"
#include "server/error.h"
#include "server/stream_marks.h"

namespace banyan {
namespace {

bool is_cut_short(FinishReason reason) {
  return reason == FinishReason::kCancelled || reason == FinishReason::kTimeout;
}

// One request while it runs in the engine. The sinks of its submissions own it; its connection has
// a weak reference. Belongs to the I/O thread.
class GenerationRun : public std::enable_shared_from_this<GenerationRun> {
 public:
  GenerationRun(Service& service, std::string request_id, ResponderPtr responder,
                GenerationPlan plan, std::shared_ptr<const RequestTrace> trace)
      : service_(service),
        request_id_(std::move(request_id)),
        responder_(std::move(responder)),
        plan_(std::move(plan)),
        trace_(std::move(trace)),
        unfinished_(plan_.choices.size()) {}

  // The client's Last-Event-ID: events of its stream get ids, and those it already has from another
  // server are skipped.
  Status mark(std::string_view last_event_id) {
    size_t choices = plan_.choices.size();
    bool streams = plan_.stream && plan_.answer->stream_type() == kEventStream;
    if (streams && choices <= StreamMarks::kChoicesMax) marks_.emplace(choices);
    if (last_event_id == StreamMarks::kNothing) return {};
    if (marks_) return marks_->resume(last_event_id);
    return invalid_argument("Last-Event-ID: this answer cannot be resumed; leave the header out");
  }
  void start();

 private:
  void submit_some();
  bool submit(size_t group);
  void reject(size_t group, const Error& error);
  void take(size_t index, const TokenEvent& event);
  void send();
  void end();
  void fail(const RequestError& error);
  void abandon(FinishReason reason);
  size_t group_of(size_t index) const { return index / group_choices_; }
  size_t choices_of(size_t group) const {
    return std::min(group_choices_, plan_.choices.size() - group * group_choices_);
  }
  size_t running() const { return unfinished_ - waiting_choices_; }
  std::vector<RunName> names(size_t first, size_t count) const;
  std::string_view place(size_t index) const;

  Service& service_;
  const std::string request_id_;
  ResponderPtr responder_;
  GenerationPlan plan_;
  std::shared_ptr<const RequestTrace> trace_;  // null: tracing is off
  size_t unfinished_;
  bool over_ = false;
  size_t group_choices_ = 1;    // choices per submission: all, a part of a window, or one prompt's
  std::deque<size_t> waiting_;  // groups that are not submitted yet, ...
  size_t waiting_choices_ = 0;  // ... and how many choices they have
  std::vector<std::shared_ptr<Submission>> submissions_;  // by group; null: not submitted
  std::string frames_;
  std::optional<StreamMarks> marks_;  // nothing: events have no ids
};

void GenerationRun::start() {
  responder_->on_disconnect([weak = weak_from_this()] {
    if (auto run = weak.lock()) run->abandon(FinishReason::kCancelled);
  });
  size_t all = plan_.choices.size();
  if (plan_.rids.size() > 1) {
    group_choices_ = plan_.samples;
  } else {
    constexpr size_t kGroupsOfWindow = 4;  // so that a window stays about as full
    group_choices_ =
        plan_.window > 0 ? (plan_.window + kGroupsOfWindow - 1) / kGroupsOfWindow : all;
  }
  for (size_t first = 0; first < all; first += group_choices_) {
    waiting_.push_back(group_of(first));
  }
  waiting_choices_ = all;
  submissions_.resize(waiting_.size());
  submit_some();
  if (unfinished_ == 0 && !over_) end();  // no prompts
}

void GenerationRun::submit_some() {
  size_t all = plan_.choices.size(), window = plan_.window > 0 ? plan_.window : all;
  while (!waiting_.empty() && !over_) {
    size_t count = choices_of(waiting_.front());
    if (running() > 0 && running() + count > window) return;
    size_t group = waiting_.front();
    waiting_.pop_front();
    waiting_choices_ -= count;
    if (!submit(group)) return;
  }
}

// False: the request has failed, or the group waits again, for which its requests are kept.
bool GenerationRun::submit(size_t group) {
  size_t first = group * group_choices_, count = choices_of(group);
  auto begin = plan_.requests.begin() + first, end = begin + count;
  std::vector<GenerateRequest> requests;
  if (plan_.window > 0) {
    requests.assign(begin, end);
  } else {
    requests.assign(std::make_move_iterator(begin), std::make_move_iterator(end));
  }
  auto self = shared_from_this();
  auto submission = service_.submit(
      plan_.rids[plan_.rids.size() > 1 ? first / plan_.samples : 0], std::move(requests),
      {.event = [self, first](size_t index,
                              const TokenEvent& event) { self->take(first + index, event); },
       .rejected = [self, group](const Error& error) { self->reject(group, error); }},
      trace_, names(first, count));
  if (!submission) {
    reject(group, submission.error());
    return false;
  }
  submissions_[group] = std::move(*submission);
  return true;
}

// While others of the request run, a group for which there is no room is tried again.
void GenerationRun::reject(size_t group, const Error& error) {
  if (over_) return;
  bool later =
      plan_.window > 0 && error.code == ErrorCode::kExhausted && running() > choices_of(group);
  if (!later) return fail(error);
  submissions_[group] = nullptr;
  waiting_.push_front(group);
  waiting_choices_ += choices_of(group);
}

// Of the `count` runs from `first` on, for a client that may lose this server.
std::vector<RunName> GenerationRun::names(size_t first, size_t count) const {
  std::vector<RunName> names;
  for (size_t i = first; marks_ && i < first + count; ++i) {
    names.push_back(
        {.name = fmt::format("{}/{}", request_id_, i), .place = std::string(marks_->place(i))});
  }
  return names;
}

std::string_view GenerationRun::place(size_t index) const {
  size_t group = group_of(index);
  if (group >= submissions_.size() || submissions_[group] == nullptr) return {};
  return submissions_[group]->place(index - group * group_choices_);
}

void GenerationRun::take(size_t index, const TokenEvent& event) {
  Choice& choice = plan_.choices[index];
  if (over_ || choice.stream.done()) return;
  // Events with ids must follow from the tokens alone.
  if (event.is_progress() && (marks_ || !plan_.stream)) return;
  TextDelta delta = choice.stream.take(event);
  if (choice.stream.finish() == FinishReason::kError) return fail(choice.stream.error());
  if (plan_.all_or_nothing && is_cut_short(choice.stream.finish())) {
    return fail(Error{ErrorCode::kCancelled, "the request was cancelled or took too long"});
  }
  frames_.clear();
  constexpr size_t kBehindBytes = 64 << 10;
  choice.behind = plan_.stream && !marks_ && responder_->unsent_bytes() > kBehindBytes;
  plan_.answer->take(choice, event, std::move(delta), frames_);
  if (marks_) marks_->mark(index, frames_, place(index));
  if (choice.stream.done()) {
    if (event.finish == FinishReason::kNone) {  // by the text, which the engine does not know
      size_t group = group_of(index);
      service_.abandon(submissions_[group], choice.stream.finish(), index - group * group_choices_);
    }
    --unfinished_;
  }
  if (unfinished_ == 0) return end();
  if (plan_.stream) send();
  submit_some();
}

void GenerationRun::send() {
  if (!responder_->started()) responder_->begin_stream(plan_.answer->stream_type());
  if (!frames_.empty()) responder_->send(frames_);
}

void GenerationRun::end() {
  over_ = true;
  submissions_.clear();
  if (!plan_.stream) return responder_->respond(200, plan_.answer->whole(plan_.choices));
  std::string last;
  plan_.answer->end(plan_.choices, last);
  if (marks_) marks_->mark_end(last);
  frames_ += last;
  send();
  responder_->finish();
}

void GenerationRun::fail(const RequestError& error) {
  if (over_) return;
  abandon(FinishReason::kError);
  if (!responder_->started()) return respond_error(*responder_, error);
  frames_.clear();
  plan_.answer->fail(error, frames_);
  responder_->send(frames_);
  responder_->finish();
}

void GenerationRun::abandon(FinishReason reason) {
  over_ = true;
  // Move out of the member first: this may release the last sinks, and with them this object.
  auto submissions = std::exchange(submissions_, {});
  for (const auto& submission : submissions) {
    if (submission != nullptr) service_.abandon(submission, reason);
  }
}

// Parses a request's body into its plan.
class Planning : public std::enable_shared_from_this<Planning> {
 public:
  Planning(Service& service, HttpRequest request, ResponderPtr responder, Planner planner)
      : service_(service),
        context_(context_of(service, request)),
        trace_(service.begin_trace(request)),
        last_event_id_(request.header("Last-Event-ID")),
        client_(std::move(request.client)),
        body_(std::make_shared<const std::string>(std::move(request.body))),
        responder_(std::move(responder)),
        planner_(planner) {}

  void read() {
    read_on_worker<GenerationPlan>(
        service_, client_, context_, body_, responder_, planner_,
        [self = shared_from_this()](GenerationPlan plan) { self->use(std::move(plan)); });
  }

 private:
  using End = GrammarQueue::End;

  void use(GenerationPlan plan) {
    if (!responder_->alive()) return;
    if (!plan.missing.empty()) return compile(std::move(plan.missing));
    if (trace_) trace_->samples = plan.samples;
    for (GenerateRequest& request : plan.requests) request.options.client = client_;
    auto run = std::make_shared<GenerationRun>(service_, context_.request_id, responder_,
                                               std::move(plan), trace_);
    if (last_event_id_) {
      Status marked = run->mark(*last_event_id_);
      if (!marked) return respond_error(*responder_, RequestError(marked.error()));
    }
    run->start();
  }

  void compile(std::map<GrammarSource, std::string> missing) {
    std::vector<MissingGrammar> grammars;
    for (auto& [source, field] : missing) grammars.push_back({source, std::move(field)});
    std::string field = grammars[0].field;
    auto wait = service_.grammars().compile(
        service_.llm(), client_, std::move(grammars), context_.received + timeout(),
        [self = shared_from_this(), field](End end, CompiledGrammars compiled,
                                           const RequestError* error) {
          self->compiled(end, std::move(compiled), error, field);
        });
    if (!wait) return responder_->respond_error(503, "too many grammars wait to be compiled");
    responder_->on_disconnect([&service = service_, wait] { service.grammars().cancel(wait); });
  }

  void compiled(End end, CompiledGrammars compiled, const RequestError* error,
                const std::string& field) {
    if (end == End::kFailed) return respond_error(*responder_, *error);
    if (end == End::kTooLate) {
      return responder_->respond_error(
          408,
          fmt::format("compiling the grammar, with those before it, took more than {} s, which is "
                      "--grammar-timeout",
                      service_.config().grammar_timeout_s),
          field, "grammar_timeout");
    }
    context_.compiled = std::make_shared<const CompiledGrammars>(std::move(compiled));
    read();
  }

  std::chrono::steady_clock::duration timeout() const {
    return std::chrono::duration_cast<std::chrono::steady_clock::duration>(
        std::chrono::duration<double>(service_.config().grammar_timeout_s));
  }

  Service& service_;
  RequestContext context_;
  std::shared_ptr<RequestTrace> trace_;  // null: tracing is off
  std::optional<std::string> last_event_id_;
  std::string client_;
  std::shared_ptr<const std::string> body_;
  ResponderPtr responder_;
  Planner planner_;
};

}  // namespace

void Answer::fail(const RequestError& error, std::string& frames) {
  int status = http_status(error.error.code);
  Json body = error_json(status, error.error.message, error.param, error.code);
  frames += fmt::format("data: {}\n\ndata: [DONE]\n\n", dump_json(body));
}

std::expected<void, RequestError> GenerationPlan::add_prompt(const Llm& llm,
                                                             const PromptRequest& prompt) {
  CHECK(prompt.samples > 0, "{}", prompt.samples);
  samples = as_size(prompt.samples);
  auto sequences_max = as_size(llm.config().queued_max);
  bool fits = window > 0 || choices.size() + samples <= sequences_max;
  if (!fits) {  // checked before copying per sample
    return std::unexpected(
        RequestError({ErrorCode::kInvalidArgument,
                      fmt::format("prompts times n are more than {}, which is what the queue holds",
                                  sequences_max)},
                     "n"));
  }
  std::shared_ptr<const CompiledGrammar> grammar = find_grammar(llm, prompt);
  if (prompt.text.options.grammar && !grammar) {
    missing.emplace(*prompt.text.options.grammar, prompt.grammar_field);
    PromptRequest without = prompt;  // report any other error in it now
    without.text.options.grammar.reset();
    return add_samples(llm, without, nullptr);
  }
  if (grammar && warnings.empty()) warnings = grammar->grammar.notes();
  return add_samples(llm, prompt, grammar);
}

// Null if the prompt has no grammar, or it is not compiled yet.
std::shared_ptr<const CompiledGrammar> GenerationPlan::find_grammar(
    const Llm& llm, const PromptRequest& prompt) const {
  if (!prompt.text.options.grammar) return nullptr;
  if (compiled) {
    auto found = compiled->find(*prompt.text.options.grammar);
    if (found != compiled->end()) return found->second;
  }
  return find_compiled(llm, *prompt.text.options.grammar);
}

std::expected<void, RequestError> GenerationPlan::add_samples(
    const Llm& llm, const PromptRequest& prompt,
    const std::shared_ptr<const CompiledGrammar>& grammar) {
  GenerateRequest tokens = TRY(to_engine(llm, prompt, grammar));
  std::shared_ptr<const TokenRules> rules;
  int64_t vocabulary = llm.info().vocabulary;
  auto stops = compile_stop_regexes(prompt.text.options.stop_regex);
  if (!stops) return std::unexpected(RequestError(stops.error(), "stop_regex"));
  if (!prompt.tokens.empty()) {
    if (prompt.text.options.grammar || grammar) {
      std::string message = fmt::format("allowed_token_ids and bad_words cannot be given with {}",
                                        prompt.grammar_field);
      return std::unexpected(
          RequestError({ErrorCode::kUnsupported, std::move(message)}, "allowed_token_ids"));
    }
    rules = TRY(token_rules(prompt.tokens, tokenizer_of(llm), vocabulary));
  }
  size_t prompt_index = choices.size() / samples;
  for (size_t sample = 0; sample < samples; ++sample) {
    choices.push_back({.index = choices.size(),
                       .prompt = prompt_index,
                       .prompt_tokens = std::ssize(tokens.prompt),
                       .max_new_tokens = tokens.options.max_new_tokens,
                       .stream = {tokenizer_of(llm), tokens.prompt, prompt.text.options, *stops}});
    if (sample + 1 < samples) {
      requests.push_back(tokens);
    } else {
      requests.push_back(std::move(tokens));
    }
    requests.back().sampling.sample_index = narrow<uint32_t>(sample);
    if (sample > 0 && grammar)
      requests.back().constraint = constraint_of(llm, prompt.text.options, grammar);
    std::shared_ptr<TokenConstraint>& constraint = requests.back().constraint;
    if (rules) constraint = std::make_shared<TokenFilter>(rules, vocabulary);
    if (!prompt.thinking) continue;
    constraint = std::make_shared<ThinkingBudget>(prompt.thinking, constraint, vocabulary);
  }
  return {};
}

std::expected<void, RequestError> GenerationPlan::check_rids() const {
  size_t prompts = choices.size() / samples;
  if (rids.size() == 1 || rids.size() == prompts) return {};
  std::string message = fmt::format("rid has {} entries for {} prompts", rids.size(), prompts);
  return std::unexpected(RequestError({ErrorCode::kInvalidArgument, std::move(message)}, "rid"));
}

void generate(Service& service, HttpRequest request, ResponderPtr responder, Planner planner) {
  std::make_shared<Planning>(service, std::move(request), std::move(responder), planner)->read();
}

}  // namespace banyan
