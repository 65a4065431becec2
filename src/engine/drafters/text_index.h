// An index of a growing text that finds earlier occurrences of its own end or of another text's
// end. It has two hash chains, over the last two and the last four tokens, like the match finder of
// a compressor. Appending and lookup take constant time; a lookup follows a limited number of
// links, so it may miss old occurrences.
//
// Takes 12 bytes per token plus a table of at most 512 kB. Memory grows only beyond the
// reservation. One thread at a time.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "banyan/token.h"

namespace banyan {

class TextIndex {
 public:
  // Matches are compared up to this length.
  static constexpr int64_t kContextMax = 32;
  static constexpr size_t kMatchesMax = 16;
  static constexpr int kMatchMin = 2;
  // Separates texts; matches nothing.
  static constexpr TokenId kSeparator = -1;

  struct Match {
    int64_t end = 0;     // index of the token after the match
    int64_t length = 0;  // number of matching tokens
  };

  explicit TextIndex(int64_t tokens_expected);

  void append(std::span<const TokenId> tokens);

  // Finds occurrences of the last kMatchMin or more tokens of `context`, newest first; only those
  // of four or more if there are any. Skips the one that ends at `except`. Returns the used part of
  // `out`.
  std::span<Match> find(std::span<const TokenId> context, int64_t except,
                        std::span<Match, kMatchesMax> out) const;

  int64_t size() const { return std::ssize(tokens_); }
  TokenId operator[](int64_t i) const { return tokens_[static_cast<size_t>(i)]; }

 private:
  // Ends of the previous positions with the same hash of two and of four tokens; 0: none.
  struct Links {
    int32_t two = 0, four = 0;
  };
  using Chain = int32_t Links::*;

  size_t slot(std::span<const TokenId> tokens) const;
  int64_t common_length(std::span<const TokenId> context, int64_t end) const;
  std::span<Match> follow(Chain chain, int64_t tokens, std::span<const TokenId> context,
                          int64_t except, std::span<Match, kMatchesMax> out) const;

  std::vector<TokenId> tokens_;
  std::vector<Links> before_;  // per token: previous occurrences of the tokens that end there
  std::vector<Links> newest_;  // by hash; a power of two in size
};

}  // namespace banyan
