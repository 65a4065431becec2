#include "server/fields/prompts.h"

#include <fmt/format.h>

#include <utility>

#include "base/packed_json.h"
#include "base/signed.h"
#include "server/fields/sampling.h"

namespace banyan {

bool holds_one_prompt(const Json& value) {
  return value.is_string() || is_packed(value) ||
         (value.is_array() && !value.empty() && value.front().is_number());
}

std::vector<GivenPrompt> read_prompts(RequestFields& fields, const char* name, int64_t samples,
                                      const EngineConfig& limits) {
  std::vector<GivenPrompt> prompts;
  auto add = [&](const Json& prompt) {
    if (prompt.is_string()) {
      prompts.push_back({.text = prompt});
      return;
    }
    auto ids = read_token_ids(prompt, "", as_size(limits.prompt_tokens_max));
    if (!ids) return fields.fail(name, ids.error().message);
    if (ids->empty()) return fields.fail(name, " has no tokens");
    prompts.push_back({.ids = *std::move(ids)});
  };
  const Json* prompt = fields.find(name);
  if (prompt == nullptr) {
    fields.fail(name, " is missing");
  } else if (holds_one_prompt(*prompt)) {
    add(*prompt);
  } else if (!prompt->is_array() || prompt->empty()) {
    fields.fail(name, fmt::format(" is {}; it must be a string, a list of strings, a list of token "
                                  "ids or a list of such lists",
                                  show(*prompt)));
  } else if (std::ssize(*prompt) * samples > kSequencesMax) {
    fields.fail(name, fmt::format(" has {} entries, times n = {}; the limit is {} together",
                                  prompt->size(), samples, kSequencesMax));
  } else {
    for (const Json& one : *prompt) add(one);
  }
  return prompts;
}

}  // namespace banyan
