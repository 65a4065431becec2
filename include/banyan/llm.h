// A language model as text: the engine with its tokenizer and chat template.
//
//   auto llm = TRY(Llm::load({.model_path = "models/x"}));
//   auto reply = TRY(llm->generate({.text = "Once upon a time"}));
//   puts(reply.text.c_str());
//
// One thread owns an Llm. generate() and score() drive the engine themselves, one request at a
// time; many at once is the engine's own interface. What is const is safe from every thread.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "banyan/config.h"
#include "banyan/engine.h"
#include "banyan/grammar.h"
#include "banyan/request.h"
#include "banyan/status.h"

namespace banyan {

struct ChatMessage {
  std::string role;  // "system", "user", "assistant", "tool"
  std::string content;
};

struct TextRequest {
  std::string text = {};           // the prompt, unless ids are given
  std::vector<TokenId> ids = {};   // the prompt as tokens; used when not empty
  bool add_special_tokens = true;  // the tokenizer's beginning-of-text; off after a chat template
  SamplingParams sampling = {};
  GenerationOptions options = {};
};

// Called with each new piece of text: whole characters, never part of a stop string. Pieces put
// together are Generation::text.
using TextSink = std::function<void(std::string_view piece)>;

struct GeneratedToken {
  TokenId token = 0;
  float logprob = 0;
  std::vector<TokenLogprob> top = {};
  std::vector<TokenLogprob> chosen = {};  // of GenerationOptions::logprob_token_ids
};

struct Generation {
  std::vector<TokenId> prompt_ids;
  std::vector<TokenId> output_ids;  // a stop token is the last of them
  std::string text;                 // goes on where the prompt's text ends, its space included
  FinishReason finish = FinishReason::kNone;
  std::optional<std::string> matched_stop_text;
  std::optional<TokenId> matched_stop_token;
  int64_t cached_tokens = 0;
  std::vector<GeneratedToken> logprobs;  // one per output token, if asked for
  // Of the prompt from prompt_logprobs_begin on; the first token of all has none.
  std::vector<GeneratedToken> prompt_logprobs;
  std::vector<std::string> grammar_notes;  // what of the grammar is not enforced

  double ttft_s = 0;  // from submission to the first token
  double prefill_tokens_per_s = 0;
  double decode_tokens_per_s = 0;  // 0 when fewer than two tokens were made
};

class Llm {
 public:
  // The folder needs config.json and weights. Without tokenizer files, prompts are token ids and
  // the output has no text.
  static Result<std::unique_ptr<Llm>> load(const EngineConfig& config,
                                           const LoadProgress& progress = {});
  ~Llm();

  // Runs one request to its end. `cancelled`, if given, is asked between steps; once it says true
  // the result is what there is so far, with FinishReason::kCancelled.
  Result<Generation> generate(const TextRequest& request, const TextSink& sink = {},
                              const std::function<bool()>& cancelled = {});

  // log p(ids[i] | ids[0..i)) for every i; the first has none.
  Result<std::vector<std::optional<float>>> score(const std::vector<TokenId>& ids);

  // What the engine is asked for `request`: the prompt as tokens, and the model's own end-of-text
  // tokens next to the request's. Stop strings are checked, but an engine does not look for them. A
  // grammar becomes a constraint, which is this request's alone. Errors: a limit of EngineConfig,
  // no tokenizer for a text, a grammar that cannot be compiled.
  Result<GenerateRequest> to_tokens(const TextRequest& request) const;

  bool has_tokenizer() const;
  // kUnsupported without a tokenizer.
  Result<std::vector<TokenId>> encode(std::string_view text, bool add_special_tokens = true) const;
  bool has_chat_template() const;
  // The conversation as the model's template writes it, ready for an answer. `variables_json` is
  // an object of further template variables (enable_thinking, ...); empty: none. kUnsupported
  // without a template.
  Result<std::string> apply_chat_template(const std::vector<ChatMessage>& messages,
                                          std::string_view variables_json = {}) const;

  // The sampling that generation_config.json recommends; greedy or neutral where it is silent.
  const SamplingParams& recommended_sampling() const;
  const EngineConfig& config() const;
  Engine& engine();
  const EngineInfo& info() const;
  GrammarStats grammar_stats() const;
  double load_s() const;

 private:
  friend struct LlmAccess;  // src/llm/llm.cpp
  class Impl;
  explicit Llm(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace banyan
