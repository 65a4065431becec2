// A text in which earlier occurrences of its end, or of the end of another text, are found: two
// hash chains, over the last four and the last two tokens, as match finders of compressors have
// them. Appending a token and looking up take constant time; a lookup follows few links and so may
// miss old occurrences among many.
//
// 12 bytes a token and a table of at most 512 kB. Memory grows only beyond what was reserved.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "banyan/token.h"

namespace banyan {

class TextIndex {
 public:
  // Of a match, no more tokens are compared.
  static constexpr int64_t kContextMax = 32;
  static constexpr size_t kMatchesMax = 16;
  static constexpr int kMatchMin = 2;
  // Stands between texts, and matches nothing.
  static constexpr TokenId kSeparator = -1;

  struct Match {
    int64_t end = 0;     // the tokens that follow begin here
    int64_t length = 0;  // tokens before it that agree
  };

  explicit TextIndex(int64_t tokens_expected);

  void append(std::span<const TokenId> tokens);

  // Occurrences of the last kMatchMin or more tokens of `context`, newest first; of four or more
  // where there are any. One that ends at `except` is left out. Returns the part of `out` in use.
  std::span<Match> find(std::span<const TokenId> context, int64_t except,
                        std::span<Match, kMatchesMax> out) const;

  int64_t size() const { return std::ssize(tokens_); }
  TokenId operator[](int64_t i) const { return tokens_[static_cast<size_t>(i)]; }

 private:
  // Ends of the last two and four tokens with the same hash; 0: none.
  struct Links {
    int32_t two = 0, four = 0;
  };
  using Chain = int32_t Links::*;

  size_t slot(std::span<const TokenId> tokens) const;
  int64_t common_length(std::span<const TokenId> context, int64_t end) const;
  std::span<Match> follow(Chain chain, int64_t tokens, std::span<const TokenId> context,
                          int64_t except, std::span<Match, kMatchesMax> out) const;

  std::vector<TokenId> tokens_;
  std::vector<Links> before_;  // of each token: the occurrences before the ones that end with it
  std::vector<Links> newest_;  // by hash; a power of two
};

}  // namespace banyan
