// Added tokens: strings that are matched before any other processing of a text and become one token
// each.
//
// Immutable once built; const use is thread-safe.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "banyan/request.h"
#include "banyan/status.h"

namespace banyan {

struct AddedToken {
  static constexpr size_t kBytesMax = 1024;

  TokenId id = -1;
  std::string content = {};
  bool special = false;      // omitted by decode(skip_special_tokens)
  bool normalized = false;   // matched in normalized text, in normalized form
  bool single_word = false;  // matched only between non-word characters
  bool lstrip = false;       // also consumes the spaces before it
  bool rstrip = false;       // also consumes the spaces after it
};

// Finds the added tokens of one kind (normalized or not) in a text: leftmost, then longest. Linear
// in the text for any set of tokens: an Aho-Corasick automaton of the reversed tokens scans
// backwards and finds the longest token at each start.
class AddedTokenMatcher {
 public:
  // An added token, or the text between two.
  struct Section {
    uint32_t begin, end;
    TokenId id;  // -1 for text
  };

  static constexpr size_t kPatternBytesMax = 4 << 20;  // total; each takes some 24 bytes of memory

  // `pattern` is the string to match: the token's content or its normalized form. If a pattern is
  // added twice, the first token wins.
  Status add(const AddedToken& token, std::string_view pattern);
  // Call after the last add() and before the first split().
  void link();
  bool empty() const { return tokens_.empty(); }

  // Appends the sections of `text` in order. The text of a token that strips spaces may overlap the
  // previous token's. `specials`: also match special tokens.
  void split(std::string_view text, bool specials, std::vector<Section>& sections) const;

 private:
  // A state of the automaton: a suffix of a pattern, in a trie that starts at the last byte.
  struct Node {
    unsigned char byte = 0;
    int32_t child = -1, sibling = -1;
    int32_t token = -1;   // index into tokens_ if this is a whole pattern
    int32_t shorter = 0;  // node of the longest proper prefix of this string
    int32_t inner = -1;   // token of the longest such prefix that is a pattern, itself included
  };
  struct Found {
    uint32_t begin;
    int32_t token;
  };

  int32_t child_of(int32_t node, unsigned char byte) const;
  int32_t step(int32_t node, unsigned char byte) const;
  // The longest pattern at each start position that has one, from the end of the text backwards.
  std::vector<Found> find_all(std::string_view text) const;

  std::vector<AddedToken> tokens_;
  std::vector<uint32_t> sizes_;  // pattern length of each token
  size_t pattern_bytes_ = 0;
  std::vector<Node> nodes_{1};
  std::array<int32_t, 256> roots_ = [] {
    std::array<int32_t, 256> none;
    none.fill(-1);
    return none;
  }();
};

}  // namespace banyan
