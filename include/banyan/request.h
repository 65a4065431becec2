// What goes into the engine and comes out of it, in tokens. For text see banyan/llm.h. Plain
// values, except that sinks and constraints are called on the engine's thread.
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

struct ConstraintSource;  // banyan/constraint_source.h

// Incremented whenever a seed draws different tokens than before. 1: inverse of the cumulative
// distribution; 2: exponential race. Processes that compare texts by seed, or share states that
// follow from them, must agree on it.
inline constexpr int kDrawRevision = 2;

// DRY's sequence breakers as tokens, by first token. Each entry lists the tokens that must follow;
// empty for a single-token breaker.
using DryBreakers = std::unordered_map<TokenId, std::vector<std::vector<TokenId>>>;

// How a token is drawn from the model's distribution. Filters apply in the order temperature,
// top_k, typical_p, top_p, min_p, XTC, each to what the previous one left. This is llama.cpp's
// order, except that temperature comes first, as in Hugging Face's `generate`.
//
// The draw depends only on (seed, sample_index, position), never on other requests.
struct SamplingParams {
  float temperature = 1;  // >= 0; 0: greedy, lowest id on ties
  float top_p = 1;        // (0, 1]
  int top_k = 0;          // 0: all
  float min_p = 0;        // [0, 1]: keep tokens at least this fraction as likely as the best
  // (0, 1]: keep the tokens whose information content is nearest to the entropy until their total
  // probability exceeds this, including all ties of the last one. 1: off.
  float typical_p = 1;
  // XTC ("exclude top choices"): with probability xtc_probability, in [0, 1], a position drops all
  // tokens that are at least xtc_threshold likely, except the least likely of them. The threshold
  // is in [0, 1]; above 0.5 nothing is dropped. Greedy draws drop nothing.
  float xtc_probability = 0, xtc_threshold = 0.1f;
  float frequency_penalty = 0;   // [-2, 2], per earlier occurrence in the output
  float presence_penalty = 0;    // [-2, 2], once per token that occurs in the output
  float repetition_penalty = 1;  // > 0, divides (below 0: multiplies) logits of seen tokens
  // The penalties count the last so many tokens of prompt and output together. -1: all, 0: none.
  int repeat_last_n = -1;
  // DRY ("don't repeat yourself"): a token that would extend a repetition of n >=
  // dry_allowed_length tokens loses dry_multiplier * dry_base^(n - dry_allowed_length) of its
  // logit. A repetition is a suffix of prompt and output that occurred before; it never crosses a
  // breaker.
  float dry_multiplier = 0;     // [0, 100]; 0: off
  float dry_base = 1.75f;       // [1, 100]
  int dry_allowed_length = 2;   // tokens, >= 0
  int dry_penalty_last_n = -1;  // window in tokens; -1: all, 0: off
  // As text; the engine refuses them, and Llm translates them to dry_breakers. Absent: newline,
  // colon, quotation mark and asterisk, if there is a tokenizer.
  std::optional<std::vector<std::string>> dry_sequence_breakers = {};
  std::shared_ptr<const DryBreakers> dry_breakers = {};  // null: none

  std::vector<std::pair<TokenId, float>> logit_bias = {};  // added to logits
  uint64_t seed = 0;
  uint32_t sample_index = 0;  // distinguishes the samples of one request with n > 1

  bool has_penalties() const {
    bool any = frequency_penalty != 0 || presence_penalty != 0 || repetition_penalty != 1;
    return any && repeat_last_n != 0;
  }
  bool has_dry() const { return dry_multiplier != 0 && dry_penalty_last_n != 0; }
  // Whether draws depend on earlier tokens other than through the model.
  bool reads_tokens() const { return has_penalties() || has_dry(); }
  // Names the first field that is out of range.
  Status validate() const;
};

// Restricts which tokens may come next. Each sequence has its own; only the engine's thread calls
// it. To get masks for a draft, the engine accepts the draft tokens as far as the masks allow, and
// rolls them back before it accepts the tokens that were drawn.
class TokenConstraint {
 public:
  virtual ~TokenConstraint() = default;

  // Sets bit t of `mask` (ceil(vocabulary / 32) words) for every token t that is allowed next.
  virtual void fill_mask(std::span<uint32_t> mask) = 0;
  // Advances past an allowed token.
  virtual void accept(TokenId token) = 0;
  // Tokens that are likely to follow, such as forced text; may be empty. They are draft tokens:
  // they save steps where the model draws the same, and never change the output. Valid until the
  // next call of any of these functions.
  virtual std::span<const TokenId> draft_tokens() = 0;
  // Undoes the last `tokens` calls of accept.
  virtual void rollback(int tokens) = 0;
  // Adds the source of the constraint, from which another process can build it again. False: that
  // is not possible. Safe from any thread.
  virtual bool describe(ConstraintSource& source) const {
    (void)source;
    return false;
  }
};

enum class FinishReason : uint8_t {
  kNone,       // still running
  kStop,       // a stop token; in text also a stop string
  kLength,     // max_new_tokens or the context length
  kCancelled,  // by the caller
  kTimeout,    // timeout_s expired
  kError,      // see TokenEvent::error
};

const char* to_string(FinishReason reason);  // "stop", "length", ...

// How the hidden states of a prompt, after the model's last norm, become one vector.
enum class Pooling : uint8_t {
  kNone,  // there is no vector
  kLast,  // that of the last token
  kMean,  // the mean over all tokens; nothing of the prompt comes from the prefix cache
};

const char* to_string(Pooling pooling);  // "none", "last", "mean"

struct TokenEvent {
  SequenceId sequence = 0;
  // Absolute position of `token`. Events of prompt positions come first, if requested.
  int64_t position = 0;
  bool has_token = false;  // absent in progress events, and perhaps in the last one
  bool from_prompt = false;
  TokenId token = 0;
  float logprob = 0;
  std::span<const TokenLogprob> top;     // most likely first; valid during the call only
  std::span<const TokenLogprob> chosen;  // the request's logprob_token_ids, in order
  FinishReason finish = FinishReason::kNone;
  TokenId matched_stop = -1;  // the stop token that ended the sequence
  int64_t cached_tokens = 0;  // prompt tokens whose state was not computed for this request
  double queued_s = 0;        // from submission to the first step that computed something for it
  bool drafted = false;       // the token was drafted: it took no step of its own
  int64_t drafts = 0;         // number of steps so far with drafts of the sequence, ...
  int64_t draft_tokens = 0;   // ... and number of tokens in those drafts
  Error error;                // with FinishReason::kError
  // With the last event, if the request pools: [ModelInfo::hidden]; valid during the call only.
  std::span<const float> embedding;
  int64_t restored_tokens = 0;  // of cached_tokens, those loaded from storage: CacheStorageConfig

  // GenerationOptions::prompt_progress: `position` prompt tokens are computed or cached.
  bool is_progress() const { return from_prompt && !has_token && finish == FinishReason::kNone; }
};

// Called on the engine's thread, in order, until an event with finish != kNone.
using TokenSink = std::function<void(const TokenEvent&)>;

// Options of a request apart from its prompt and sampling. The same for tokens (GenerateRequest),
// text (TextRequest in banyan/llm.h) and the gens of programs.
struct GenerationOptions {
  // 0: only score the prompt. A request that outgrows the context or memory ends with kLength.
  int64_t max_new_tokens = 128;
  int64_t min_new_tokens = 0;  // no stop token is drawn before this many tokens
  // The sequence ends with the token that matches. Llm adds the model's own end-of-text tokens.
  std::vector<TokenId> stop_token_ids = {};

  // Text options. An Engine refuses stop strings and regexes, grammars and predictions, and ignores
  // the others.
  std::vector<std::string> stop = {};  // the output ends before the first match
  // RE2 syntax. The output ends after the first match of any of these and includes it.
  std::vector<std::string> stop_regex = {};
  // The output ends before a line, after the first, that begins with fewer blanks and tabs. 0: no
  // limit.
  int64_t indent_min = 0;
  // After this time from its first text on, the output ends with its next line. 0: no limit.
  double line_time_s = 0;
  bool ignore_eos = false;          // continue past the model's own end-of-text tokens
  bool skip_special_tokens = true;  // omit special tokens from the output text
  bool keep_stop = false;           // include the matched stop string or token in it
  // Constrains the output. The output ends with an end-of-text token where the grammar allows it,
  // even with ignore_eos: ignore_eos and min_new_tokens only delay the end while the grammar can
  // continue. A stop string, a stop token or the length limit may cut the output short.
  std::optional<GrammarSource> grammar = {};

  bool logprobs = false;                        // return the logprobs of output tokens
  int top_logprobs = 0;                         // alternatives to report with each token
  std::vector<TokenId> logprob_token_ids = {};  // tokens to report at each position, likely or not
  // Report logprobs of prompt tokens from this position on; position 0 has none.
  std::optional<int64_t> prompt_logprobs_begin = {};
  bool prompt_progress = false;  // an event after each step that computes a part of the prompt
  // Embeds the prompt: TokenEvent::embedding. Requires max_new_tokens = 0.
  Pooling pooling = Pooling::kNone;

  // Text that the output will largely repeat, such as a file being edited. It serves as a draft and
  // never changes the output. Llm tokenizes it into prediction_token_ids.
  std::string prediction = {};
  std::vector<TokenId> prediction_token_ids = {};
  std::optional<int> draft_tokens_max = {};  // per step; at most the engine's limit
  // The drafter of this request: one of EngineConfig::drafters, or ngram; empty: any of the former.
  std::string drafter = {};

  int priority = 0;      // higher runs first, with the policy "priority"
  double timeout_s = 0;  // from submission to the last token; 0: none
  // Age of the program that the request belongs to. The request queues as if it had arrived when
  // the program started, so that programs finish in the order they started.
  double age_s = 0;
  std::string cache_salt = {};  // prefixes are shared only if salt and extra key are equal
  std::string extra_key = {};
  // A loaded LoRA adapter, by its name or by AdapterInfo::digest; empty: the model as it is.
  std::string adapter = {};
  // Whose request it is. While the queue is full (EngineConfig::queued_max), a client with fewer
  // waiting requests than its share of it may still queue; empty: nobody's, which may not.
  std::string client = {};
};

struct GenerateRequest {
  std::vector<TokenId> prompt;  // at least one token
  SamplingParams sampling = {};
  GenerationOptions options = {};
  std::shared_ptr<TokenConstraint> constraint = {};
  // Output that another engine with the same state digest and kDrawRevision has already drawn. The
  // run continues after it, bit for bit like an uninterrupted one. These tokens count as output for
  // penalties, limits and the constraint, which must be new. They get no events.
  std::vector<TokenId> resume_tokens = {};
};

}  // namespace banyan
