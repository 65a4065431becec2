// Fill-in-the-middle prompts: a code model writes the text between a prefix and a suffix.
//
// Stateless; thread-safe.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "banyan/status.h"
#include "banyan/token.h"
#include "text/tokenizer/tokenizer.h"

namespace banyan {

// The special tokens that mark the parts of the prompt.
struct InfillTokens {
  TokenId prefix = 0, suffix = 0, middle = 0;
};
// Nothing if the vocabulary has no such tokens.
std::optional<InfillTokens> find_infill_tokens(const Tokenizer& tokenizer);

// Another file of the same project.
struct InfillFile {
  std::string name, text;
};

// Builds the prompt in the order files, prefix, suffix, middle. kUnsupported if the model has no
// infill tokens. Special tokens spelled in the texts are treated as text. Files are formatted as
// llama.cpp does: with the vocabulary's repository and file tokens, else between lines of text.
Result<std::vector<TokenId>> infill_prompt(const Tokenizer* tokenizer, std::string_view prefix,
                                           std::string_view suffix,
                                           std::span<const InfillFile> files = {});

}  // namespace banyan
