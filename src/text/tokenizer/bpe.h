// Byte-pair encoding: a word becomes symbols (one per byte or per character), and the adjacent pair
// whose merge has the lowest rank is joined, leftmost first, until no pair can be.
//
// Immutable after make(); const use is thread-safe with one BpeScratch per thread.
// Time is linear in short words (a bounded cache remembers them) and n log n in long ones.
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
  // For a character that is not in the vocabulary. Without one it is left out; if this token is not
  // in the vocabulary either, such a character is an error.
  std::optional<std::string> unk_token = {};
  bool fuse_unk = false;       // a run of them becomes one token
  bool byte_fallback = false;  // before unk_token: as tokens <0x00> to <0xFF>
  bool ignore_merges = false;  // a word that is a token as a whole is that token
  std::string continuing_subword_prefix = {};
  std::string end_of_word_suffix = {};
};

// What two adjacent tokens become.
struct Merge {
  uint32_t rank = UINT32_MAX;
  TokenId id = -1;
};

// Pairs of tokens to merges; a repeated pair keeps its last rank, as the reference does.
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

// Working memory of one encode call, reused between calls; holds the word cache.
class BpeScratch;

class Bpe {
 public:
  // `vocabulary` must outlive the Bpe.
  static Result<Bpe> make(const Vocabulary& vocabulary, MergeTable merges, BpeOptions options);

  // Whether words may be given as raw bytes: every byte's character is a token, and neither prefix
  // nor suffix is used.
  bool takes_bytes() const { return takes_bytes_; }

  // Appends the tokens of one word. `raw_bytes`: `word` stands for its spelling in the byte-level
  // alphabet (requires takes_bytes()); else it is valid UTF-8, in the vocabulary's spelling.
  // A scratch serves one Bpe and one value of raw_bytes.
  Status encode(std::string_view word, bool raw_bytes, BpeScratch& scratch,
                std::vector<TokenId>& tokens) const;

 private:
  explicit Bpe(const Vocabulary& vocabulary) : vocabulary_(&vocabulary) {}

  void find_metaspace_boundaries();
  std::optional<TokenId> whole_word(std::string_view word, bool raw_bytes) const;
  // False: a character has no token.
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
  // Whether no merge joins "...x" and "▁...": then a long text may be cut between the byte x and a
  // "▁", and the parts encoded by themselves. All false if the vocabulary does not allow it.
  std::array<bool, 256> cut_after_byte_{};
};

class BpeScratch {
 public:
  BpeScratch() : cache_(kCacheWords) {}

 private:
  friend class Bpe;

  static constexpr size_t kCacheWords = 1 << 15;
  // One cache line: a short word and its tokens.
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
