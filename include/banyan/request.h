// What is asked of the engine and what comes back, in tokens. Text is the business of banyan/llm.h.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "banyan/grammar_source.h"
#include "banyan/status.h"
#include "banyan/token.h"

namespace banyan {

using SequenceId = uint64_t;

// Changes whenever a seed draws other tokens than before. 1 was the inverse of the cumulative
// distribution, 2 is an exponential race. Processes that share or compare texts by their seeds, or
// states that follow from them, must agree in it.
inline constexpr int kDrawRevision = 2;

// The token sequences at which DRY's repetitions end, by first token: each entry is what must
// follow it, which is nothing for a token that ends them by itself.
using DryBreakers = std::unordered_map<TokenId, std::vector<std::vector<TokenId>>>;

// How a token is drawn from the model's distribution. Filters apply in the order temperature,
// top_k, typical_p, top_p, min_p, XTC, each to what the one before has left: llama.cpp's order, but
// for the temperature, which comes first as in Hugging Face's `generate`.
// The draw depends on (seed, sample_index, position) alone: never on what else is being served.
struct SamplingParams {
  float temperature = 1;  // >= 0; 0 takes the most likely token, the lowest id among equals
  float top_p = 1;        // (0, 1]
  int top_k = 0;          // 0: all
  float min_p = 0;        // [0, 1]: keep tokens at least this fraction as likely as the best
  // (0, 1]: keep the tokens whose information is nearest to the entropy, until they are more likely
  // than this together; with them all that are as near as the last. 1: all.
  float typical_p = 1;
  // XTC ("exclude top choices"): with this probability, in [0, 1], a position loses all tokens that
  // are at least xtc_threshold likely, but for the least likely of these. Thresholds are in [0, 1];
  // above 0.5 nothing is lost. Greedy draws lose nothing.
  float xtc_probability = 0, xtc_threshold = 0.1f;
  float frequency_penalty = 0;   // [-2, 2], per earlier appearance in the output
  float presence_penalty = 0;    // [-2, 2], once for tokens that appeared in the output
  float repetition_penalty = 1;  // > 0, divides (or multiplies, below 0) logits of seen tokens
  // DRY ("don't repeat yourself"): a token that would make a repetition of n >= dry_allowed_length
  // tokens one longer loses dry_multiplier * dry_base^(n - dry_allowed_length) of its logit. A
  // repetition is text at the end of prompt and output that is there before. It never reaches over
  // a breaker.
  float dry_multiplier = 0;     // [0, 100]; 0: off
  float dry_base = 1.75f;       // [1, 100]
  int dry_allowed_length = 2;   // tokens, >= 0
  int dry_penalty_last_n = -1;  // looks at so many of the last tokens; -1: all, 0: off
  // Of text, which an Engine does not see: it refuses them, and Llm makes dry_breakers of them.
  // Absent: newline, colon, quotation mark and asterisk, if there is a tokenizer.
  std::optional<std::vector<std::string>> dry_sequence_breakers = {};
  std::shared_ptr<const DryBreakers> dry_breakers = {};  // null: none

  std::vector<std::pair<TokenId, float>> logit_bias = {};  // added to logits
  uint64_t seed = 0;
  uint32_t sample_index = 0;  // distinguishes the samples of one request with n > 1

  bool has_penalties() const {
    return frequency_penalty != 0 || presence_penalty != 0 || repetition_penalty != 1;
  }
  bool has_dry() const { return dry_multiplier != 0 && dry_penalty_last_n != 0; }
  // Whether a draw depends on the tokens before it, beyond what the model makes of them.
  bool reads_tokens() const { return has_penalties() || has_dry(); }
  // Names the first field that is out of range.
  Status validate() const;
};

// Restricts what may come next, in tokens. One per sequence; driven by the engine's thread. To know
// the masks of a draft, the engine accepts its tokens as far as the masks allow them, and takes
// them back before it accepts what was drawn.
class TokenConstraint {
 public:
  virtual ~TokenConstraint() = default;

  // Sets bit t of `mask` (ceil(vocabulary / 32) words) for every token t that may come next.
  virtual void fill_mask(std::span<uint32_t> mask) = 0;
  // Moves past a token that the mask allowed.
  virtual void accept(TokenId token) = 0;
  // Tokens that are likely to follow now, such as those of text that must; empty if nothing is.
  // They are proposed to the model and save steps where it draws the same; they never decide
  // anything. Valid until the next call of any of these functions.
  virtual std::span<const TokenId> draft_tokens() = 0;
  // Takes back the last `tokens` accepted tokens.
  virtual void rollback(int tokens) = 0;
};

enum class FinishReason : uint8_t {
  kNone,       // still running
  kStop,       // a stop token, or a stop string further up
  kLength,     // max_new_tokens or the context length
  kCancelled,  // by the caller
  kTimeout,    // its timeout_s is over
  kError,      // the event's `error` says why
};

const char* to_string(FinishReason reason);  // "stop", "length", ...

struct TokenEvent {
  SequenceId sequence = 0;
  // Absolute position of `token`. Events of prompt positions come first, if they were asked for.
  int64_t position = 0;
  bool has_token = false;  // a sequence may finish with an event that carries none
  bool from_prompt = false;
  TokenId token = 0;
  float logprob = 0;
  std::span<const TokenLogprob> top;     // most likely first; valid during the call only
  std::span<const TokenLogprob> chosen;  // of the request's logprob_token_ids, in their order
  FinishReason finish = FinishReason::kNone;
  TokenId matched_stop = -1;    // the stop token that ended the sequence
  int64_t cached_tokens = 0;    // prompt tokens whose state was not computed for this request
  double queued_s = 0;          // from submission to the first step that computed something for it
  bool drafted = false;         // the token had been proposed: it took no step of its own
  int64_t drafts = 0;           // steps so far that had proposed tokens of the sequence, ...
  int64_t draft_tokens = 0;     // ... and how many of them
  Error error;                  // with FinishReason::kError
  int64_t restored_tokens = 0;  // of cached_tokens, those loaded for it: CacheStorageConfig
};

// Called on the engine's thread, in order, until an event with finish != kNone.
using TokenSink = std::function<void(const TokenEvent&)>;

// What a request asks for next to its prompt and the way its tokens are drawn: the same for tokens
// (GenerateRequest), for text (TextRequest in banyan/llm.h) and for the gens of programs.
struct GenerationOptions {
  // 0: only score the prompt. More than the context and the memory hold ends with kLength there.
  int64_t max_new_tokens = 128;
  int64_t min_new_tokens = 0;  // no stop token is drawn before this many tokens
  // The one that matches is the sequence's last. Llm adds the model's own end-of-text tokens.
  std::vector<TokenId> stop_token_ids = {};

  // Of text, which an Engine does not see: it refuses stop strings and regexes, grammars and
  // predictions, and the flags mean nothing to it.
  std::vector<std::string> stop = {};  // the output ends before the first of these
  // In RE2's syntax; the output ends after the first match of one of these, which stays in it.
  std::vector<std::string> stop_regex = {};
  bool ignore_eos = false;          // goes on past the model's own end-of-text tokens
  bool skip_special_tokens = true;  // leaves special tokens out of the output's text
  bool keep_stop = false;           // leaves the stop string or token that matched in it
  // What the output may be. It ends with an end-of-text token where the grammar allows the text to
  // end, whatever ignore_eos says; that and min_new_tokens only keep it from ending as long as the
  // grammar lets it go on. A stop string, a stop token or the length may cut it short.
  std::optional<GrammarSource> grammar = {};

  bool logprobs = false;                        // keep those of the tokens in the result
  int top_logprobs = 0;                         // alternatives to report with each token
  std::vector<TokenId> logprob_token_ids = {};  // tokens to report with each token, likely or not
  // From which prompt position on to report prompt tokens' logprobs; position 0 has none.
  std::optional<int64_t> prompt_logprobs_begin = {};

  // What the output will largely repeat, such as a file that is to be edited: tokens are proposed
  // from it. Changes no output. Llm makes tokens of the text.
  std::string prediction = {};
  std::vector<TokenId> prediction_token_ids = {};
  std::optional<int> draft_tokens_max = {};  // proposed in one step; the engine's at most

  int priority = 0;             // higher runs first, under the policy "priority"
  double timeout_s = 0;         // from submission to the last token; 0: none
  double age_s = 0;             // of the program that it belongs to: it queues as if it had come
                                // when that began, so that programs end in the order they began
  std::string cache_salt = {};  // prefixes are shared only among equal salts and extra keys
  std::string extra_key = {};
  std::string adapter = {};  // name of a LoRA adapter; not supported yet
};

struct GenerateRequest {
  std::vector<TokenId> prompt;  // at least one token
  SamplingParams sampling = {};
  GenerationOptions options = {};
  std::shared_ptr<TokenConstraint> constraint = {};
};

}  // namespace banyan
