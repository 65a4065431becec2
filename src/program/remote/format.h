// Builds the requests of a program's calls for three APIs, and parses their answers. No sockets.
// Stateless; thread-safe.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "client/serving_api.h"
#include "program/backend.h"

namespace banyan {

struct RemoteStyle {
  ServingApi api = ServingApi::kSglang;
  std::string model;  // for OpenAI's APIs
  bool continues_answers = false;
};

// The body of a gen. Errors: options that the API cannot express.
Result<std::string> gen_body(const RemoteStyle& style, const GenCall& call, bool stream);
// Parses an unstreamed answer. Errors: what it lacks.
Result<GenResult> read_gen(ServingApi api, const Json& answer);

// Adds a stream event to `result`, which starts empty; the text is complete after the last event.
Result<std::string> read_gen_event(ServingApi api, const Json& event, GenResult& result);

// The body that scores prompts without generating; `logprob_start` as in /generate.
std::string score_body(const RemoteStyle& style, const std::vector<std::string>& prompts,
                       int64_t logprob_start);
// The same for prompts given as ids, from the first token; /generate only.
std::string score_ids_body(const std::vector<std::vector<TokenId>>& prompts);
// The body that computes a prompt and returns its number of tokens; /generate only.
std::string prefill_body(const std::string& prompt);

// A prompt token in a scoring answer.
struct PromptToken {
  TokenId id = -1;   // /generate
  std::string text;  // completions
  std::optional<float> logprob;

  bool same(const PromptToken& other) const { return id == other.id && text == other.text; }
};
struct ScoredPrompt {
  std::vector<PromptToken> tokens;
  CallUsage usage;
};
// One per prompt. Errors: an answer without prompt logprobs.
Result<std::vector<ScoredPrompt>> read_scores(ServingApi api, const Json& answer);

}  // namespace banyan
