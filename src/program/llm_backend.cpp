// A Backend on a model in this process.
#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/quote.h"
#include "base/signed.h"
#include "llm/chat_prompt.h"
#include "program/backend.h"

namespace banyan {
namespace {

// One request to the model.
struct ModelCall {
  GenerateRequest request;
  AsyncLlm::TokenSinks sinks;
};

class LlmBackend final : public Backend {
 public:
  explicit LlmBackend(std::shared_ptr<AsyncLlm> model)
      : model_(std::move(model)), llm_(model_->llm()) {}

  std::string name() const override { return "the model " + llm_.config().model_path; }
  std::optional<SamplingParams> default_sampling() const override {
    return llm_.recommended_sampling();
  }
  Result<std::string> render(const std::vector<ChatMessage>& messages, bool answer) const override;
  bool can_prefill() const override { return llm_.config().radix_cache; }

  Cancel generate(GenCall call, PieceSink piece, Done<GenResult> done) override;
  Cancel score(ScoreCall call, Done<ScoreResult> done) override;
  Cancel prefill(Prompt prompt, Done<CallUsage> done) override;

 private:
  using ModelCalls = std::vector<ModelCall>;

  Result<ModelCalls> score_jobs(const ScoreCall& call, Done<ScoreResult> done);

  const std::shared_ptr<AsyncLlm> model_;
  const Llm& llm_;
};

TextRequest text_request(const Prompt& prompt) {
  return {.text = prompt.text,
          .add_special_tokens = !prompt.from_template,
          .options = {.age_s = prompt.age_s}};
}

Result<std::string> LlmBackend::render(const std::vector<ChatMessage>& messages,
                                       bool answer) const {
  ChatPrompt prompt{.messages = Json::array(), .add_generation_prompt = answer};
  for (const ChatMessage& message : messages) {
    prompt.messages.push_back({{"role", message.role}, {"content", message.content}});
  }
  return render_chat(llm_, std::move(prompt));
}

// --- generate -------------------------------------------------------------------------------

TextRequest gen_request(const GenCall& call, const SamplingParams& sampling) {
  TextRequest request = text_request(call.prompt);
  request.sampling = call.sampling.value_or(sampling);
  request.options = call.options;
  request.options.age_s = call.prompt.age_s;
  return request;
}

GenResult gen_result(Generation generation) {
  GenResult result{.text = std::move(generation.text)};
  CallInfo& info = result.info;
  info.finish = generation.finish;
  info.matched_stop = std::move(generation.matched_stop_text);
  info.usage = {.calls = 1,
                .prompt_tokens = std::ssize(generation.prompt_ids),
                .cached_tokens = generation.cached_tokens,
                .completion_tokens = std::ssize(generation.output_ids)};
  info.logprobs = std::move(generation.logprobs);
  info.notes = std::move(generation.grammar_notes);
  return result;
}

Backend::Cancel LlmBackend::generate(GenCall call, PieceSink piece, Done<GenResult> done) {
  TextRequest request = gen_request(call, llm_.recommended_sampling());
  AsyncLlm::TextSinks sinks;
  if (piece) {
    sinks.event = [piece = std::move(piece)](const TextEvent& event) {
      if (!event.text.empty()) piece(event.text);
    };
  }
  // The model outlives its sinks, so a raw pointer is safe.
  AsyncLlm* holder = call.hold && can_prefill() ? model_.get() : nullptr;
  sinks.done = [holder, done = std::move(done)](Result<Generation> generation) {
    if (!generation) return done(std::unexpected(generation.error()));
    std::vector<TokenId> ids;
    if (holder != nullptr) {
      ids = generation->prompt_ids;
      ids.insert(ids.end(), generation->output_ids.begin(), generation->output_ids.end());
    }
    GenResult result = gen_result(*std::move(generation));
    if (holder != nullptr) result.hold = holder->hold(std::move(ids));
    done(std::move(result));
  };
  return model_->generate(request, std::move(sinks));
}

Backend::Cancel LlmBackend::prefill(Prompt prompt, Done<CallUsage> done) {
  TextRequest request = text_request(prompt);
  request.options.max_new_tokens = 0;
  Result<GenerateRequest> tokens = llm_.to_tokens(request);
  if (!tokens) return refuse(std::unexpected(tokens.error()), done);
  auto prompt_tokens = std::ssize(tokens->prompt);
  AsyncLlm::TokenSinks sinks;
  sinks.failed = [done](const Error& error) { done(std::unexpected(error)); };
  sinks.event = [done, prompt_tokens](const TokenEvent& event) {
    if (event.finish == FinishReason::kNone) return false;
    if (event.finish == FinishReason::kError) {
      done(std::unexpected(event.error));
    } else {
      done(CallUsage{
          .calls = 1, .prompt_tokens = prompt_tokens, .cached_tokens = event.cached_tokens});
    }
    return true;
  };
  return model_->submit(*std::move(tokens), std::move(sinks));
}

// --- score ----------------------------------------------------------------------------------

// Filled by the jobs of one call, on the delivery thread.
struct Scores {
  ScoreResult result;
  size_t unfinished = 0;
  std::optional<Error> error;
  Backend::Done<ScoreResult> done;

  void end_one(const std::optional<Error>& failed) {
    if (failed && !error) error = failed;
    if (--unfinished > 0) return;
    if (error) {
      done(std::unexpected(*error));
    } else {
      done(std::move(result));
    }
  }
};

// Requests the logprobs of ids[begin ..); `take(i, logprob)` gets the one of ids[begin + i].
ModelCall score_job(std::vector<TokenId> ids, size_t begin, std::shared_ptr<Scores> scores,
                    std::function<void(size_t, float)> take) {
  ModelCall job;
  job.request.options.max_new_tokens = 0;
  job.request.options.prompt_logprobs_begin = begin;
  CallUsage& usage = scores->result.usage;
  ++usage.calls;
  usage.prompt_tokens += std::ssize(ids);
  ++scores->unfinished;
  job.request.prompt = std::move(ids);
  job.sinks.failed = [scores](const Error& error) { scores->end_one(error); };
  job.sinks.event = [scores, begin, take = std::move(take)](const TokenEvent& event) {
    if (event.has_token && event.from_prompt) {
      take(as_size(event.position) - begin, event.logprob);
    }
    if (event.finish == FinishReason::kNone) return false;
    scores->result.usage.cached_tokens += event.cached_tokens;
    std::optional<Error> error;
    if (event.finish == FinishReason::kError) error = event.error;
    if (event.finish == FinishReason::kCancelled) {
      error = Error{ErrorCode::kCancelled, "the call was cancelled"};
    }
    scores->end_one(error);
    return true;
  };
  return job;
}

Result<LlmBackend::ModelCalls> LlmBackend::score_jobs(const ScoreCall& call,
                                                      Done<ScoreResult> done) {
  std::vector<TokenId> prefix = TRY(llm_.to_tokens(text_request(call.prompt))).prompt;
  auto scores = std::make_shared<Scores>();
  scores->done = std::move(done);
  scores->result.texts.resize(call.texts.size());
  ModelCalls jobs;
  for (size_t i = 0; i < call.texts.size(); ++i) {
    TextRequest request = text_request(call.prompt);
    request.text += call.texts[i];
    std::vector<TokenId> ids = TRY(llm_.to_tokens(request)).prompt;
    // The prefix's last token may have merged with the start of the text.
    auto common = as_size(std::ranges::mismatch(prefix, ids).in2 - ids.begin());
    size_t begin = std::max<size_t>(common, 1);  // the very first token has no logprob
    if (begin >= ids.size()) {
      return invalid_argument("the text {} adds no token to the prompt", quote(call.texts[i]));
    }
    ScoredText& text = scores->result.texts[i];
    for (size_t t = begin; t < ids.size(); ++t) text.tokens.push_back({ids[t], 0});
    if (call.unconditional) {
      text.unconditional.assign(text.tokens.size(), 0);
      if (text.tokens.size() > 1) {
        std::vector<TokenId> alone(ids.begin() + begin, ids.end());
        jobs.push_back(score_job(std::move(alone), 1, scores, [&text](size_t t, float logprob) {
          text.unconditional[t + 1] = logprob;
        }));
      }
    }
    jobs.push_back(score_job(std::move(ids), begin, scores, [&text](size_t t, float logprob) {
      text.tokens[t].logprob = logprob;
    }));
  }
  return jobs;
}

Backend::Cancel LlmBackend::score(ScoreCall call, Done<ScoreResult> done) {
  auto jobs = guard([&] { return score_jobs(call, done); });
  if (!jobs) return refuse(std::unexpected(jobs.error()), done);
  std::vector<Cancel> cancels;
  for (ModelCall& job : *jobs) {
    job.request.options.age_s = call.prompt.age_s;
    cancels.push_back(model_->submit(std::move(job.request), job.sinks));
  }
  return [cancels = std::move(cancels)] {
    for (const Cancel& cancel : cancels) cancel();
  };
}

}  // namespace

std::shared_ptr<Backend> in_process_backend(Llm& llm) {
  return in_process_backend(std::make_shared<AsyncLlm>(llm));
}

std::shared_ptr<Backend> in_process_backend(std::shared_ptr<AsyncLlm> model) {
  return std::make_shared<LlmBackend>(std::move(model));
}

}  // namespace banyan
