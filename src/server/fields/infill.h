// Prompts that ask a model of code for what stands between two texts.
//
// Stateless; safe from many threads at once.
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

// The tokens that mark the parts of such a prompt.
struct InfillTokens {
  TokenId prefix = 0, suffix = 0, middle = 0;
};
// None if the vocabulary has no such tokens.
std::optional<InfillTokens> find_infill_tokens(const Tokenizer& tokenizer);

// Another file of the same work.
struct InfillFile {
  std::string name, text;
};

// The prompt, in the order files, prefix, suffix, middle. kUnsupported if the model has no such
// tokens. Special tokens that the texts spell are text. Files come as llama.cpp writes them: with
// the vocabulary's tokens for a repository and its files, else between lines of text.
Result<std::vector<TokenId>> infill_prompt(const Tokenizer* tokenizer, std::string_view prefix,
                                           std::string_view suffix,
                                           std::span<const InfillFile> files = {});

}  // namespace banyan
