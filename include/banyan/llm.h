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

class ChatTemplate;      // text/chat_template.h
struct CompiledGrammar;  // grammar/matcher.h
class Tokenizer;         // text/tokenizer.h

struct ChatMessage {
  std::string role;  // "system", "user", "assistant", "tool"
  std::string content;
};

struct TextRequest {
  std::string text;                // the prompt, unless ids are given
  std::vector<TokenId> ids;        // the prompt as tokens; used when not empty
  bool add_special_tokens = true;  // the tokenizer's beginning-of-text; off after a chat template

  SamplingParams sampling;
  int64_t max_new_tokens = 128;
  int64_t min_new_tokens = 0;           // no stop token is drawn before this many
  std::vector<std::string> stop;        // the output ends before the first of these
  std::vector<TokenId> stop_token_ids;  // beside the model's own end-of-text tokens
  bool ignore_eos = false;              // goes on past the model's own end-of-text tokens
  bool skip_special_tokens = true;      // leaves special tokens out of the output's text
  bool keep_stop = false;               // leaves the stop string or token that matched in it

  // What the output may be. It ends with an end-of-text token where the grammar allows the text to
  // end, whatever ignore_eos says; that and min_new_tokens only keep it from ending as long as the
  // grammar lets it go on. A stop string, a stop token or the length may cut it short.
  std::optional<GrammarSource> grammar;

  bool logprobs = false;
  int top_logprobs = 0;
  std::vector<TokenId> logprob_token_ids;        // reported beside each token, likely or not
  std::optional<int64_t> prompt_logprobs_begin;  // from this prompt position on

  int priority = 0;
  double timeout_s = 0;  // 0: none
  double age_s = 0;      // see GenerateRequest
  std::string cache_salt, extra_key;
};

// Called with each new piece of text: whole characters, never part of a stop string. Pieces put
// together are Generation::text.
using TextSink = std::function<void(std::string_view piece)>;

struct GeneratedToken {
  TokenId token = 0;
  float logprob = 0;
  std::vector<TokenLogprob> top;
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
  // tokens beside the request's. Stop strings are checked, but it is TextStream (llm/text_stream.h)
  // that finds them. A grammar becomes a constraint, which is this request's alone. Errors: a limit
  // of EngineConfig, no tokenizer for a text, a grammar that cannot be compiled. `compiled` is the
  // request's grammar, if the caller has it already.
  Result<GenerateRequest> to_tokens(
      const TextRequest& request, std::shared_ptr<const CompiledGrammar> compiled = nullptr) const;

  // A request's grammar over this model's vocabulary, compiled on the caller's thread and
  // remembered; kExhausted names what was too large. kUnsupported without a tokenizer, or if the
  // model has no end-of-text token that could end an output.
  Result<std::shared_ptr<const CompiledGrammar>> compile(const GrammarSource& grammar) const;
  // A constraint of `request` by that grammar: each sample needs its own.
  std::shared_ptr<TokenConstraint> constraint(
      const TextRequest& request, std::shared_ptr<const CompiledGrammar> compiled) const;

  bool has_chat_template() const;
  // kUnsupported when there is none, kCorrupt when it cannot be read.
  Result<const ChatTemplate*> chat_template() const;
  // The conversation as the model's template writes it, ready for an answer. `variables_json` is
  // an object of further template variables (enable_thinking, ...); empty: none. kUnsupported
  // without a template.
  Result<std::string> apply_chat_template(const std::vector<ChatMessage>& messages,
                                          std::string_view variables_json = {}) const;

  const Tokenizer* tokenizer() const;  // null without tokenizer files
  // The sampling that generation_config.json recommends; greedy or neutral where it is silent.
  const SamplingParams& recommended_sampling() const;
  const EngineConfig& config() const;
  Engine& engine();
  const EngineInfo& info() const;
  GrammarStats grammar_stats() const;
  double load_s() const;

 private:
  class Impl;
  explicit Llm(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace banyan
