// Converts text to token ids and back, exactly as in training.
//
// encode() and decode() match the `tokenizers` package for the same tokenizer.json. (`transformers`
// may differ: it can rebuild the post-processor from add_bos_token, and cleans up spaces when
// decoding.) For a tiktoken.model they match tiktoken.
//
// Immutable after load; const use is thread-safe (each call borrows scratch memory from a pool).
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
  bool add_special_tokens = true;  // those of the post-processor, such as bos
  // Parse special tokens spelled out in the text. False prevents injection from user text. Added
  // tokens that are not marked special are always parsed, since they are ordinary text.
  bool parse_special = true;
};

class Tokenizer {
 public:
  static constexpr size_t kTextBytesMax = size_t{1} << 30;

  // Loads tokenizer.json, else tiktoken.model, with the files next to it (tokenizer_config.h); or a
  // GGUF file's metadata (gguf_tokenizer.h).
  static Result<std::unique_ptr<Tokenizer>> load(const std::string& model_dir);
  // Builds a tokenizer from its parts and the special tokens' configuration.
  static Result<std::unique_ptr<Tokenizer>> make(TokenizerParts parts, TokenizerConfig config);
  ~Tokenizer();

  // Invalid UTF-8 is an error that gives its byte offset. A pattern that exceeds its limits is an
  // error.
  Result<std::vector<TokenId>> encode(std::string_view text, EncodeOptions options = {}) const;

  // Ids without a token (padding of a model's vocabulary) decode to nothing; a negative id is an
  // error. Invalid UTF-8 becomes U+FFFD.
  Result<std::string> decode(std::span<const TokenId> ids, bool skip_special_tokens = false) const;

  // The spelling in the vocabulary ("Ġthe", "▁the"); empty if there is none.
  std::string_view token(TokenId id) const;
  // The raw bytes of the token in the middle of a text.
  std::string token_bytes(TokenId id) const;
  std::optional<TokenId> find(std::string_view token) const;
  bool is_special(TokenId id) const;
  // The highest id + 1.
  int vocab_size() const { return static_cast<int>(added_of_.size()); }

  const SpecialTokens& special() const { return config_.special; }
  // The source of the Jinja chat template.
  const std::optional<std::string>& chat_template() const { return config_.chat_template; }
  void set_chat_template(std::string jinja) { config_.chat_template = std::move(jinja); }

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
  // The token's spelling as the decoder takes it; nothing if it is skipped or unknown.
  std::optional<std::string_view> decodable(TokenId id, bool skip_special_tokens) const;

  TokenizerParts parts_;
  TokenizerConfig config_;
  bool raw_bytes_ = false;  // pieces go to the BPE as raw bytes
  AddedTokenMatcher matcher_, normalized_matcher_;
  std::vector<int32_t> added_of_;  // by id: index into parts_.added, or -1
  std::unordered_map<std::string, TokenId> added_ids_;
  // Added tokens whose normalized form differs; the reference decodes that form.
  std::unordered_map<TokenId, std::string> normalized_added_;
  std::vector<bool> skipped_;  // by id: omitted with skip_special_tokens

  mutable std::mutex pool_mutex_;
  mutable std::vector<std::unique_ptr<Scratch>> pool_;
};

}  // namespace banyan
