// How tokens are shown in answers that list them with their log-probabilities.
#pragma once

#include <string>
#include <string_view>

#include "banyan/request.h"
#include "text/tokenizer/tokenizer.h"

namespace banyan {

// The text that a token's bytes stand for, with U+FFFD for part of a character; empty without a
// tokenizer.
std::string token_text(const Tokenizer* tokenizer, TokenId id);

// The same, but part of a character is spelled "bytes:\xe2\x82", as OpenAI's completions do: in a
// JSON object of tokens, two halves of characters must not have one name.
std::string token_name(const Tokenizer* tokenizer, TokenId id);

// The number of characters that begin in `bytes`.
int64_t characters_begun(std::string_view bytes);

// `bytes` with U+FFFD for what is not UTF-8.
std::string valid_text(std::string_view bytes);

}  // namespace banyan
