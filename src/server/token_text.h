// Formats tokens for answers that list them with their log-probabilities. Stateless; thread-safe.
#pragma once

#include <string>
#include <string_view>

#include "banyan/request.h"
#include "text/tokenizer/tokenizer.h"

namespace banyan {

// The text of a token's bytes, with U+FFFD for partial characters; empty without a tokenizer.
std::string token_text(const Tokenizer* tokenizer, TokenId id);

// The same, but partial characters are spelled "bytes:\xe2\x82", as in OpenAI's completions. Tokens
// are keys of a JSON object there, and two partial characters must not share a key.
std::string token_name(const Tokenizer* tokenizer, TokenId id);

// The number of characters that start in `bytes`.
int64_t characters_begun(std::string_view bytes);

// `bytes` with invalid UTF-8 replaced by U+FFFD.
std::string valid_text(std::string_view bytes);

}  // namespace banyan
