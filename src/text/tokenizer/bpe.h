// Byte-pair encoding: splits a word into symbols (bytes or characters), then repeatedly merges the
// adjacent pair of lowest rank, leftmost first, until no pair merges.
//
// Immutable after make(); const use is thread-safe with one BpeScratch per thread. Short words take
// linear time (a bounded cache keeps their tokens), long words n log n.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "banyan/status.h"
#include "text/tokenizer/vocabulary.h"

namespace banyan {

struct BpeOptions {
  // The token for characters outside the vocabulary. Without it such characters are dropped. If it
  // is not in the vocabulary itself, they are an error.
  std::optional<std::string> unk_token = {};
  bool fuse_unk = false;       // a run of unknown characters becomes one token
  bool byte_fallback = false;  // tried before unk_token: tokens <0x00> to <0xFF>
  bool ignore_merges = false;  // a word in the vocabulary is encoded as that token
  std::string continuing_subword_prefix = {};
  std::string end_of_word_suffix = {};
};

// The result of merging two adjacent tokens.
struct Merge {
  uint32_t rank = UINT32_MAX;
  TokenId id = -1;
};

// Maps pairs of tokens to merges. A repeated pair keeps its last rank, as in the reference.
class MergeTable {
 public:
  void reserve(size_t merges);
  void set(TokenId left, TokenId right, Merge merge);
  // rank is UINT32_MAX if the pair does not merge.
  Merge find(TokenId left, TokenId right) const;
  size_t size() const { return count_; }

  template <class Visitor>  // visitor(TokenId left, TokenId right)
  void for_each_pair(Visitor visitor) const {
    for (const Slot& slot : slots_) {
      if (slot.pair == kEmpty) continue;
      visitor(static_cast<TokenId>(slot.pair >> 32), static_cast<TokenId>(slot.pair & UINT32_MAX));
    }
  }

 private:
  struct Slot {
    uint64_t pair = kEmpty;
    Merge merge;
  };
  static constexpr uint64_t kEmpty = UINT64_MAX;

  size_t slot_of(uint64_t pair) const;

  std::vector<Slot> slots_;
  size_t count_ = 0;
};

// Scratch memory of one encode call, reused between calls; holds the word cache.
class BpeScratch;

class Bpe {
 public:
  // `vocabulary` must outlive the Bpe.
  static Result<Bpe> make(const Vocabulary& vocabulary, MergeTable merges, BpeOptions options);

  // Whether words may be passed as raw bytes: every byte's character is a token, and there is no
  // prefix or suffix.
  bool takes_bytes() const { return takes_bytes_; }

  // Appends the tokens of one word. With `raw_bytes`, `word` is the raw text instead of its
  // byte-level spelling (requires takes_bytes()). Otherwise it is valid UTF-8 in the vocabulary's
  // spelling. A scratch serves one Bpe and one value of raw_bytes.
  Status encode(std::string_view word, bool raw_bytes, BpeScratch& scratch,
                std::vector<TokenId>& tokens) const;

 private:
  explicit Bpe(const Vocabulary& vocabulary) : vocabulary_(&vocabulary) {}

  void find_metaspace_boundaries();
  std::optional<TokenId> whole_word(std::string_view word, bool raw_bytes) const;
  // Returns false if a character has no token.
  bool encode_whole(std::string_view word, bool raw_bytes, BpeScratch& scratch,
                    std::vector<TokenId>& tokens) const;
  bool encode_uncached(std::string_view word, bool raw_bytes, BpeScratch& scratch,
                       std::vector<TokenId>& tokens) const;
  bool symbols_of(std::string_view word, bool raw_bytes, std::vector<TokenId>& symbols) const;
  bool add_fallback_bytes(std::string_view text, std::vector<TokenId>& symbols) const;

  const Vocabulary* vocabulary_;
  MergeTable merges_;
  BpeOptions options_;
  bool takes_bytes_ = false;
  std::array<TokenId, 256> byte_symbols_{};    // token of each byte's character, or -1
  std::array<TokenId, 128> ascii_symbols_{};   // token of each ASCII character, or -1
  std::array<TokenId, 256> fallback_bytes_{};  // tokens <0x00> to <0xFF>, or -1
  TokenId unk_ = -1;
  // True if no merge joins "...x" and "▁...". A long text may then be cut between byte x and "▁"
  // and its parts encoded separately. All false if the vocabulary does not allow it.
  std::array<bool, 256> cut_after_byte_{};
};

class BpeScratch {
 public:
  BpeScratch() : cache_(kCacheWords) {}

 private:
  friend class Bpe;

  static constexpr size_t kCacheWords = 1 << 15;
  // A short word and its tokens in one cache line.
  struct alignas(64) CachedWord {
    static constexpr size_t kBytesMax = 30;
    static constexpr size_t kTokensMax = 8;
    uint8_t size = 0;
    uint8_t count = 0;
    char bytes[kBytesMax];
    TokenId tokens[kTokensMax];
  };

  std::vector<CachedWord> cache_;
  std::vector<TokenId> symbols_;
  std::vector<Merge> merges_;
};

}  // namespace banyan
