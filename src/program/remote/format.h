// Calls of a program as bodies of the three APIs, and their answers read back. No sockets.
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
  std::string model;  // of OpenAI's
  bool continues_answers = false;
};

// A gen. Errors: what the API has no field for.
Result<std::string> gen_body(const RemoteStyle& style, const GenCall& call, bool stream);
// The answer that is not streamed. Errors: what is missing in it.
Result<GenResult> read_gen(ServingApi api, const Json& answer);

// What a stream's event adds to a result that began empty; the text comes after the last event.
Result<std::string> read_gen_event(ServingApi api, const Json& event, GenResult& result);

// Scores texts by prompts that are only read: `logprob_start` as /generate takes it.
std::string score_body(const RemoteStyle& style, const std::vector<std::string>& prompts,
                       int64_t logprob_start);
// The same for prompts of ids, from the first on; /generate only.
std::string score_ids_body(const std::vector<std::vector<TokenId>>& prompts);
// Computes a prompt, and says how many tokens it has; /generate only.
std::string prefill_body(const std::string& prompt);

// A token of a prompt, as a scoring answer tells it.
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
// One for each prompt. Errors: an answer without logprobs of the prompt.
Result<std::vector<ScoredPrompt>> read_scores(ServingApi api, const Json& answer);

}  // namespace banyan
