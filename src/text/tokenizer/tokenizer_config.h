// The settings next to a vocabulary: which tokens begin and end a sequence, and the chat template.
//
// Read from tokenizer_config.json, special_tokens_map.json, generation_config.json, config.json,
// chat_template.jinja and chat_template.json, all optional. GGUF files store them in metadata.
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
  std::optional<TokenId> id;  // unset if not in the vocabulary
};

struct SpecialTokens {
  std::optional<SpecialToken> bos, eos, pad, unk;
  // All ids that end generation: those of generation_config.json (or, if it has none, config.json)
  // and the id of `eos`.
  std::vector<TokenId> eos_ids;
  // All "..._token" strings by name, as variables for a chat template.
  std::map<std::string, std::string> named;
};

struct TokenizerConfig {
  SpecialTokens special;                     // only eos_ids are filled in yet
  std::optional<TokenId> bos_id, pad_id;     // from generation_config.json or config.json
  std::optional<std::string> chat_template;  // Jinja text
  Json json;                                 // tokenizer_config.json, an empty object if absent
};

Result<TokenizerConfig> read_tokenizer_config(const std::string& model_dir);

// The chat template that an option names: Jinja text, or a file with it.
Result<std::string> read_chat_template(const std::string& text_or_path);

}  // namespace banyan
