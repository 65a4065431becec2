// What the files next to a vocabulary say: which tokens begin and end a sequence, and the chat
// template.
//
// Read from tokenizer_config.json, special_tokens_map.json, generation_config.json, config.json,
// chat_template.jinja and chat_template.json; each may be absent. A GGUF file has them in its
// metadata.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "banyan/request.h"
#include "banyan/status.h"
#include "base/json.h"

namespace banyan {

struct SpecialToken {
  std::string text;
  std::optional<TokenId> id;  // none if the vocabulary lacks it
};

struct SpecialTokens {
  std::optional<SpecialToken> bos, eos, pad, unk;
  // Every id that ends generation: those of generation_config.json (or, if it names none, of
  // config.json) and the one of `eos`.
  std::vector<TokenId> eos_ids;
  // All "..._token" strings by that name: the variables of a chat template.
  std::map<std::string, std::string> named;
};

struct TokenizerConfig {
  SpecialTokens special;                     // ids are not filled in yet, save eos_ids
  std::optional<TokenId> bos_id, pad_id;     // from generation_config.json or config.json
  std::optional<std::string> chat_template;  // Jinja text
  Json json;                                 // tokenizer_config.json, an empty object if absent
};

Result<TokenizerConfig> read_tokenizer_config(const std::string& model_dir);

}  // namespace banyan
