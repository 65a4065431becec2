// What every generating endpoint lets a client say about one prompt, under its protocol's names.
//
// Stateless; safe from many threads at once.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "banyan/config.h"
#include "banyan/llm.h"
#include "llm/thinking_budget.h"
#include "server/fields/defaults.h"
#include "server/fields/request.h"
#include "server/fields/token_filter.h"

namespace banyan {

struct CompiledGrammar;

constexpr int64_t kSamplesMax = 128;     // n
constexpr int64_t kSequencesMax = 4096;  // prompts times n, of one request
constexpr size_t kNameBytesMax = 512;    // model, rid, user, cache_salt, extra_key

constexpr int64_t kNewTokensMax = int64_t{1} << 31;  // the context ends an output long before

// In what protocols differ.
struct SamplingNames {
  const char* max_new_tokens;
  const char* min_new_tokens;
  const char* seed;
  int64_t max_new_tokens_default;
  const char* stop = "stop";
  const char* repetition_penalty = "repetition_penalty";
  // llama.cpp's and Ollama's: a negative length is as much as the context holds, and a seed of -1
  // is none.
  bool llama_numbers = false;
};
constexpr SamplingNames kOpenAiNames = {"max_tokens", "min_tokens", "seed", 16};
constexpr SamplingNames kSglangNames = {"max_new_tokens", "min_new_tokens", "sampling_seed", 128};

// One prompt with its options; the prompt itself is filled in by the endpoint.
struct PromptRequest {
  TextRequest text;
  int64_t samples = 1;        // n
  std::string grammar_field;  // that text.grammar came from, for errors
  TokenWishes tokens = {};    // which it may draw; not with a grammar
  // llama.cpp's: what is added to the logits of all tokens of a text.
  std::vector<std::pair<std::string, float>> text_bias = {};
  std::optional<int64_t> thinking_tokens_max = {};     // of reasoning, in chats; absent: all
  std::shared_ptr<const ThinkingRules> thinking = {};  // made of it with the chat's prompt
};

// Starts from `defaults`, with what the server was told of requests that are silent. A request
// without a seed gets one by chance. `json` is how constrained JSON is written where the request
// does not say.
PromptRequest read_sampling(RequestFields& fields, const SamplingNames& names,
                            const SamplingParams& defaults, const EngineConfig& limits,
                            const JsonSchemaOptions& json = {}, const RequestDefaults& silent = {});

// The most tokens that reasoning may take, by vLLM's name or one of llama.cpp's; -1: all.
std::optional<int64_t> read_thinking_budget(RequestFields& fields, const RequestDefaults& silent);

// Refuses such a budget where no reasoning is looked for: in texts that are not chats'.
void refuse_thinking_budget(RequestFields& fields);

// llama.cpp's repeat_last_n. Penalties look at the whole text here, which is -1; 0 turns them off.
void read_penalty_window(RequestFields& fields, SamplingParams& sampling);

// Of a request as a whole: priority, cache_salt, extra_key, lora_path.
void read_scheduling(RequestFields& fields, GenerationOptions& options);

// What the engine is asked. Refuses prompts that leave no room in the context or in the memory for
// states, by OpenAI's code "context_length_exceeded"; max_new_tokens is cut to what is left of
// both. `compiled` is the request's grammar.
Parsed<GenerateRequest> to_engine(const Llm& llm, const PromptRequest& request,
                                  std::shared_ptr<const CompiledGrammar> compiled);

}  // namespace banyan
