// Text to token ids and back, exactly as the model was trained with.
//
// encode() and decode() give what the `tokenizers` package gives for the same tokenizer.json
// (`transformers` may differ: it can rebuild the post-processor from add_bos_token, and cleans up
// spaces when decoding). For a tiktoken.model they give what tiktoken gives.
//
// Immutable after load; const use is thread-safe (each call borrows working memory from a pool).
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "banyan/status.h"
#include "text/tokenizer/tokenizer_config.h"
#include "text/tokenizer/tokenizer_parts.h"

namespace banyan {

struct EncodeOptions {
  bool add_special_tokens = true;  // the post-processor's, for example bos in front
  // Recognise special tokens that are spelled out in the text. False keeps a user's text from
  // injecting them; added tokens that are not marked special are recognised all the same, as they
  // are part of how text is written.
  bool parse_special = true;
};

class Tokenizer {
 public:
  static constexpr size_t kTextBytesMax = size_t{1} << 30;

  // Reads tokenizer.json, or else tiktoken.model, and the files next to it (tokenizer_config.h); or
  // a GGUF file's metadata (gguf_tokenizer.h).
  static Result<std::unique_ptr<Tokenizer>> load(const std::string& model_dir);
  // From parts and what is known of special tokens.
  static Result<std::unique_ptr<Tokenizer>> make(TokenizerParts parts, TokenizerConfig config);
  ~Tokenizer();

  // Invalid UTF-8 is an error that names the byte; so is a pattern that exceeds its limits.
  Result<std::vector<TokenId>> encode(std::string_view text, EncodeOptions options = {}) const;

  // Ids without a token (the padding of a model's vocabulary) decode to nothing; a negative id is
  // an error. Bytes that are not UTF-8 become U+FFFD.
  Result<std::string> decode(std::span<const TokenId> ids, bool skip_special_tokens = false) const;

  // As spelled in the vocabulary ("Ġthe", "▁the"); empty if there is none.
  std::string_view token(TokenId id) const;
  // The raw bytes that the token contributes to a text, away from its ends.
  std::string token_bytes(TokenId id) const;
  std::optional<TokenId> find(std::string_view token) const;
  bool is_special(TokenId id) const;
  // The highest id + 1.
  int vocab_size() const { return static_cast<int>(added_of_.size()); }

  const SpecialTokens& special() const { return config_.special; }
  // The Jinja text of the chat template.
  const std::optional<std::string>& chat_template() const { return config_.chat_template; }

 private:
  friend class StreamDecoder;
  struct Scratch;
  class ScratchLoan;

  Tokenizer(TokenizerParts parts, TokenizerConfig config);

  Status index_added_tokens();
  void resolve_special_tokens();
  Status encode_section(std::string_view text, bool at_start, bool specials, Scratch& scratch,
                        std::vector<TokenId>& ids) const;
  Status encode_text(std::string_view text, bool at_start, Scratch& scratch,
                     std::vector<TokenId>& ids) const;
  // What the decoder sees of a token; nothing if it is skipped or there is no such token.
  std::optional<std::string_view> decodable(TokenId id, bool skip_special_tokens) const;

  TokenizerParts parts_;
  TokenizerConfig config_;
  bool raw_bytes_ = false;  // pieces go to the model as bytes, not spelled
  AddedTokenMatcher matcher_, normalized_matcher_;
  std::vector<int32_t> added_of_;  // by id: index into parts_.added, or -1
  std::unordered_map<std::string, TokenId> added_ids_;
  // Added tokens in their normalized form where it differs: that is what the reference decodes.
  std::unordered_map<TokenId, std::string> normalized_added_;
  std::vector<bool> skipped_;  // by id: left out with skip_special_tokens

  mutable std::mutex pool_mutex_;
  mutable std::vector<std::unique_ptr<Scratch>> pool_;
};

}  // namespace banyan
