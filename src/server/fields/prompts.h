// Prompts as OpenAI's API takes them. Stateless; thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "banyan/config.h"
#include "banyan/token.h"
#include "server/fields/request.h"

namespace banyan {

// One prompt: as text, or as token ids if there are any.
struct GivenPrompt {
  std::string text;
  std::vector<TokenId> ids;
};

// Whether the value is one prompt and not a list of them.
bool holds_one_prompt(const Json& value);

// A string, a list of strings, a list of token ids, or a list of such lists. Errors are recorded in
// `fields`. `samples` is the number of outputs for each prompt.
std::vector<GivenPrompt> read_prompts(RequestFields& fields, const char* name, int64_t samples,
                                      const EngineConfig& limits);

}  // namespace banyan
