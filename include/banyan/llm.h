// A language model with text in and out: an engine with its tokenizer and chat template.
//
//   auto llm = TRY(Llm::load({.model_path = "models/x"}));
//   auto reply = TRY(llm->generate({.text = "Once upon a time"}));
//   puts(reply.text.c_str());
//
// Threads: one thread owns an Llm and calls its non-const functions; const functions are safe from
// every thread. generate(), score() and embed() drive the engine themselves, the first two one
// request at a time. For many concurrent requests use AsyncLlm (banyan/async_llm.h) or the engine.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
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
  std::string text = {};           // the prompt, unless `ids` is given
  std::vector<TokenId> ids = {};   // the prompt as tokens; used when not empty
  bool add_special_tokens = true;  // beginning-of-text token; off after a chat template
  SamplingParams sampling = {};
  GenerationOptions options = {};
};

// Called with each new piece of text: whole characters, never part of a stop string. The pieces
// concatenate to Generation::text.
using TextSink = std::function<void(std::string_view piece)>;

struct GeneratedToken {
  TokenId token = 0;
  float logprob = 0;
  std::vector<TokenLogprob> top = {};
  std::vector<TokenLogprob> chosen = {};  // for GenerationOptions::logprob_token_ids
};

// What the engine runs for the embedding of `text`, which is then Generation::embedding.
TextRequest embedding_request(TextRequest text, Pooling pooling);
// 0 stands for all `hidden` values of an embedding. kInvalidArgument: out of range.
Status check_dimensions(int64_t dimensions, int64_t hidden);
// The first `dimensions` values (0: all), divided by their length unless they are all zero.
std::vector<float> normalised(std::span<const float> embedding, int64_t dimensions);

struct Generation {
  std::vector<TokenId> prompt_ids;
  std::vector<TokenId> output_ids;  // including a final stop token
  std::string text;                 // continues the prompt's text, leading space included
  FinishReason finish = FinishReason::kNone;
  std::optional<std::string> matched_stop_text;
  std::optional<TokenId> matched_stop_token;
  int64_t cached_tokens = 0;
  std::vector<GeneratedToken> logprobs;  // one per output token, if requested
  // From prompt_logprobs_begin on; the first prompt token has none.
  std::vector<GeneratedToken> prompt_logprobs;
  std::vector<std::string> grammar_notes;  // parts of the grammar that are not enforced
  std::vector<float> embedding;  // [ModelInfo::hidden], if the request pools; not normalised

  double ttft_s = 0;  // from submission to the first token
  double prefill_tokens_per_s = 0;
  double decode_tokens_per_s = 0;  // 0 with fewer than two tokens
};

class Llm {
 public:
  // The folder needs config.json and weights. Without tokenizer files, prompts must be token ids
  // and the output has no text.
  static Result<std::unique_ptr<Llm>> load(const EngineConfig& config,
                                           const LoadProgress& progress = {});
  // The same without weights, which need not be there: tokenizer, template and grammars, for
  // engines that run elsewhere. generate() and score() are kUnsupported; engine() must not be
  // called.
  static Result<std::unique_ptr<Llm>> load_without_engine(const EngineConfig& config);
  ~Llm();

  // Runs one request to completion. `cancelled`, if given, is polled between steps; when it returns
  // true, the output so far is returned with FinishReason::kCancelled.
  Result<Generation> generate(const TextRequest& request, const TextSink& sink = {},
                              const std::function<bool()>& cancelled = {});

  // log p(ids[i] | ids[0..i)) for every i; the first is absent. With that adapter, if one is named.
  Result<std::vector<std::optional<float>>> score(const std::vector<TokenId>& ids,
                                                  const std::string& adapter = {});

  // Translates `request` for the engine: tokenizes the prompt, adds the model's own end-of-text
  // tokens to the stop tokens, and compiles the grammar into a constraint owned by this request
  // alone. Stop strings are validated here, but the engine does not look for them. Errors: a limit
  // of EngineConfig, text without a tokenizer, a grammar that does not compile.
  Result<GenerateRequest> to_tokens(const TextRequest& request) const;

  bool has_tokenizer() const;
  // kUnsupported without a tokenizer.
  Result<std::vector<TokenId>> encode(std::string_view text, bool add_special_tokens = true) const;
  bool has_chat_template() const;
  // Renders the conversation with the model's chat template, ready for the assistant's answer.
  // `variables_json` is an object of further template variables (enable_thinking, ...); empty:
  // none. kUnsupported without a template.
  Result<std::string> apply_chat_template(const std::vector<ChatMessage>& messages,
                                          std::string_view variables_json = {}) const;

  // The embeddings of texts, in their order: pooled as pooling() says, cut to the first
  // `dimensions` (0: all of them), then divided by their length.
  Result<std::vector<std::vector<float>>> embed(const std::vector<TextRequest>& texts,
                                                int64_t dimensions = 0);
  // How this model pools: EngineConfig::pooling. kUnsupported names what its folder asks for but
  // is not supported.
  Result<Pooling> pooling() const;
  // Whether the model is made for embeddings: its folder or GGUF file, or
  // EngineConfig::embedding_model says so, or it has no output head.
  bool is_embedding_model() const;

  // Sampling parameters from generation_config.json; absent ones are greedy or neutral.
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
