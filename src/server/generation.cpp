#include "server/generation.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "llm/llm_parts.h"
#include "server/error.h"

namespace banyan {
namespace {

// One request on its way through the engine. Kept alive by the sinks of its submissions, and held
// weakly by its connection. Belongs to the I/O thread.
class GenerationRun : public std::enable_shared_from_this<GenerationRun> {
 public:
  GenerationRun(Service& service, ResponderPtr responder, GenerationPlan plan)
      : service_(service),
        responder_(std::move(responder)),
        plan_(std::move(plan)),
        unfinished_(plan_.choices.size()) {}

  void start();

 private:
  void take(size_t index, const TokenEvent& event);
  void send();
  void end();
  void fail(const RequestError& error);
  void abandon(FinishReason reason);
  size_t group_of(size_t index) const { return index / group_choices_; }

  Service& service_;
  ResponderPtr responder_;
  GenerationPlan plan_;
  size_t unfinished_;
  bool over_ = false;
  size_t group_choices_ = 1;  // choices of one submission: all, or one prompt's
  std::vector<std::shared_ptr<Submission>> submissions_;
  std::string frames_;
};

void GenerationRun::start() {
  responder_->on_disconnect([weak = weak_from_this()] {
    if (auto run = weak.lock()) run->abandon(FinishReason::kCancelled);
  });
  bool by_prompt = plan_.rids.size() > 1;
  group_choices_ = by_prompt ? plan_.samples : plan_.choices.size();
  auto& requests = plan_.requests;
  for (size_t first = 0; first < requests.size() && !over_; first += group_choices_) {
    auto begin = requests.begin() + static_cast<ptrdiff_t>(first);
    std::vector<GenerateRequest> group(
        std::make_move_iterator(begin),
        std::make_move_iterator(begin + static_cast<ptrdiff_t>(group_choices_)));
    auto self = shared_from_this();
    auto submission = service_.submit(
        plan_.rids[by_prompt ? first / plan_.samples : 0], std::move(group),
        {.event = [self, first](size_t index,
                                const TokenEvent& event) { self->take(first + index, event); },
         .rejected = [self](const Error& error) { self->fail(error); }});
    if (!submission) return fail(submission.error());
    submissions_.push_back(std::move(*submission));
  }
  requests.clear();
}

void GenerationRun::take(size_t index, const TokenEvent& event) {
  Choice& choice = plan_.choices[index];
  if (over_ || choice.stream.done()) return;
  TextDelta delta = choice.stream.take(event);
  if (choice.stream.finish() == FinishReason::kError) return fail(choice.stream.error());
  frames_.clear();
  constexpr size_t kBehindBytes = 64 << 10;
  choice.behind = plan_.stream && responder_->unsent_bytes() > kBehindBytes;
  plan_.answer->take(choice, event, std::move(delta), frames_);
  if (choice.stream.done()) {
    if (event.finish == FinishReason::kNone) {  // a stop string, of which the engine knows nothing
      size_t group = group_of(index);
      service_.abandon(submissions_[group], FinishReason::kStop, index - group * group_choices_);
    }
    --unfinished_;
  }
  if (unfinished_ == 0) return end();
  if (plan_.stream) send();
}

void GenerationRun::send() {
  if (!responder_->started()) responder_->begin_stream();
  if (!frames_.empty()) responder_->send(frames_);
}

void GenerationRun::end() {
  over_ = true;
  submissions_.clear();
  if (!plan_.stream) return responder_->respond(200, plan_.answer->whole(plan_.choices));
  plan_.answer->end(plan_.choices, frames_);
  send();
  responder_->finish();
}

void GenerationRun::fail(const RequestError& error) {
  if (over_) return;
  abandon(FinishReason::kError);
  if (!responder_->started()) return respond_error(*responder_, error);
  int status = http_status(error.error.code);
  Json body = error_json(status, error.error.message, error.param, error.code);
  responder_->send(fmt::format("data: {}\n\ndata: [DONE]\n\n", body.dump()));
  responder_->finish();
}

void GenerationRun::abandon(FinishReason reason) {
  over_ = true;
  // Out of the member first: this may be the last that holds the run's sinks, and so the run.
  auto submissions = std::exchange(submissions_, {});
  for (const auto& submission : submissions) service_.abandon(submission, reason);
}

// Null if the prompt has none.
Parsed<CompiledGrammarPtr> grammar_of(const Llm& llm, const PromptRequest& prompt) {
  const std::optional<GrammarSource>& source = prompt.text.options.grammar;
  if (!source) return nullptr;
  auto compiled = compile_grammar(llm, *source);
  if (!compiled) return std::unexpected(RequestError(compiled.error(), prompt.grammar_field));
  return *std::move(compiled);
}

}  // namespace

std::expected<void, RequestError> GenerationPlan::add_prompt(const Llm& llm,
                                                             const PromptRequest& prompt) {
  samples = static_cast<size_t>(prompt.samples);
  auto sequences_max = static_cast<size_t>(llm.config().queued_max);
  if (choices.size() + samples > sequences_max) {  // before a copy is made for each
    return std::unexpected(
        RequestError({ErrorCode::kInvalidArgument,
                      fmt::format("prompts times n are more than {}, which is what the queue holds",
                                  sequences_max)},
                     "n"));
  }
  CompiledGrammarPtr grammar = TRY(grammar_of(llm, prompt));
  if (grammar && warnings.empty()) warnings = grammar->grammar.notes();
  GenerateRequest tokens = TRY(to_engine(llm, prompt, grammar));
  size_t prompt_index = choices.size() / samples;
  for (size_t sample = 0; sample < samples; ++sample) {
    choices.push_back({.index = choices.size(),
                       .prompt = prompt_index,
                       .prompt_tokens = static_cast<int64_t>(tokens.prompt.size()),
                       .max_new_tokens = tokens.options.max_new_tokens,
                       .stream = {tokenizer_of(llm), tokens.prompt, prompt.text.options}});
    requests.push_back(tokens);
    requests.back().sampling.sample_index = static_cast<uint32_t>(sample);
    if (sample > 0 && grammar)
      requests.back().constraint = constraint_of(llm, prompt.text.options, grammar);
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
  read_on_worker<GenerationPlan>(
      service, std::move(request), responder, planner, [&service, responder](GenerationPlan plan) {
        if (!responder->alive()) return;
        std::make_shared<GenerationRun>(service, responder, std::move(plan))->start();
      });
}

}  // namespace banyan
