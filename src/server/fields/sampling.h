// The options of one prompt that all generating endpoints share, under each protocol's names.
//
// Stateless; thread-safe.
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
constexpr int64_t kSequencesMax = 4096;  // prompts x n, per request
constexpr size_t kNameBytesMax = 512;    // model, rid, user, cache_salt, extra_key

constexpr int64_t kNewTokensMax = int64_t{1} << 31;  // the context ends an output long before this

// How protocols differ.
struct SamplingNames {
  const char* max_new_tokens;
  const char* min_new_tokens;
  const char* seed;
  int64_t max_new_tokens_default;
  const char* stop = "stop";
  const char* repetition_penalty = "repetition_penalty";
  // As in llama.cpp and Ollama: a negative length means as much as the context holds, and a seed of
  // -1 means none.
  bool llama_numbers = false;
  // As in llama.cpp: an empty list of samplers turns all filters off, temperature included. Clients
  // of other protocols that send one mean that they want none in particular.
  bool no_samplers_is_none = false;
};
constexpr SamplingNames kOpenAiNames = {"max_tokens", "min_tokens", "seed", 16};
constexpr SamplingNames kSglangNames = {"max_new_tokens", "min_new_tokens", "sampling_seed", 128};

// One prompt with its options; the endpoint fills in the prompt itself.
struct PromptRequest {
  TextRequest text;
  int64_t samples = 1;        // n
  std::string grammar_field;  // the field of text.grammar, for errors
  TokenWishes tokens = {};    // which tokens may be drawn; not with a grammar
  // As in llama.cpp: a bias for the logits of every token of a text.
  std::vector<std::pair<std::string, float>> text_bias = {};
  std::optional<int64_t> thinking_tokens_max = {};     // of reasoning, in chats; absent: no limit
  std::shared_ptr<const ThinkingRules> thinking = {};  // derived from it and the chat's prompt
};

// Reads the options, starting from `defaults` with the server's `silent` defaults applied. A
// request without a seed gets a random one. `json` is the default style of constrained JSON.
PromptRequest read_sampling(RequestFields& fields, const SamplingNames& names,
                            const SamplingParams& defaults, const EngineConfig& limits,
                            const JsonSchemaOptions& json = {}, const RequestDefaults& silent = {});

// The limit on reasoning tokens, under vLLM's name or one of llama.cpp's; -1: no limit.
std::optional<int64_t> read_thinking_budget(RequestFields& fields, const RequestDefaults& silent);

// Refuses that limit on endpoints without reasoning, that is, other than chats.
void refuse_thinking_budget(RequestFields& fields);

// Options of the request as a whole: priority, cache_salt, extra_key.
void read_scheduling(RequestFields& fields, GenerationOptions& options);

// Translates a prompt for the engine. Refuses prompts that leave no room in the context or in the
// state memory, with OpenAI's code "context_length_exceeded"; max_new_tokens is reduced to what is
// left of both. `compiled` is the request's grammar.
Parsed<GenerateRequest> to_engine(const Llm& llm, const PromptRequest& request,
                                  std::shared_ptr<const CompiledGrammar> compiled);

}  // namespace banyan
