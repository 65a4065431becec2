// The parts of a tokenizer, read from any file format, and the readers of tokenizer.json and
// tiktoken.model.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "banyan/status.h"
#include "base/json.h"
#include "text/tokenizer/added_tokens.h"
#include "text/tokenizer/bpe.h"
#include "text/tokenizer/decoder.h"
#include "text/tokenizer/normalizer.h"
#include "text/tokenizer/post_processor.h"
#include "text/tokenizer/pre_tokenizer.h"
#include "text/tokenizer/vocabulary.h"

namespace banyan {

struct TokenizerParts {
  std::unique_ptr<const Vocabulary> vocabulary;  // the model's tokens; the Bpe points to it
  std::unique_ptr<const Bpe> bpe;
  std::vector<AddedToken> added;  // with final ids; some are in the vocabulary too
  Normalizer normalizer;
  PreTokenizer pre_tokenizer;
  PostProcessor post_processor;
  Decoder decoder;
};

constexpr size_t kTokenizerFileBytesMax = 96 << 20;

// Reads the bytes of a tokenizer.json; `what` names the file in errors. Unsupported features are
// rejected by name. `truncation` and `padding` are settings for batches and are ignored.
Result<TokenizerParts> read_tokenizer_json(std::string_view text, const std::string& what);

// Reads the bytes of a tiktoken.model: lines with a token's bytes in base64 and its rank, which is
// its id. `config` is tokenizer_config.json, whose added_tokens_decoder names the special tokens
// after them. Unnamed ids, up to 256, become <|reserved_token_ID|>.
Result<TokenizerParts> read_tiktoken(std::string_view text, const std::string& what,
                                     const Json& config, const std::string& config_what);

}  // namespace banyan
