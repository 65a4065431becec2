// Added tokens: strings that are found in a text before anything else is done to it, and become one
// token each.
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
  bool special = false;      // left out by decode(skip_special_tokens)
  bool normalized = false;   // looked for in the normalized text, in its normalized form
  bool single_word = false;  // only where no word character touches it
  bool lstrip = false;       // takes the spaces before it along
  bool rstrip = false;       // and those after it
};

// Finds the added tokens of one kind (normalized or not) in a text: leftmost first, then longest.
// The time is linear in the text, whatever the tokens are: an automaton (Aho and Corasick) of the
// reversed tokens reads the text backwards and meets the longest token that begins at each place.
class AddedTokenMatcher {
 public:
  // A part of a text that is an added token, or text between two.
  struct Section {
    uint32_t begin, end;
    TokenId id;  // -1: text
  };

  static constexpr size_t kPatternBytesMax = 4 << 20;  // of all patterns; some 24 bytes each

  // `pattern` is what to look for: the token's content, or its normalized form. A pattern that is
  // already there keeps its first token.
  Status add(const AddedToken& token, std::string_view pattern);
  // Between the last add() and the first split().
  void link();
  bool empty() const { return tokens_.empty(); }

  // Appends the sections of `text`, in order; the text of tokens that strip may overlap what the
  // token before has taken. `specials`: whether special tokens are found.
  void split(std::string_view text, bool specials, std::vector<Section>& sections) const;

 private:
  // A node stands for the end of a pattern, the ends of one length in a tree from the last byte on.
  struct Node {
    unsigned char byte = 0;
    int32_t child = -1, sibling = -1;
    int32_t token = -1;   // index into tokens_: the pattern that is spelled out here
    int32_t shorter = 0;  // the node of the longest proper beginning of this one's text
    int32_t inner =
        -1;  // the longest such beginning, itself included, that is a pattern: its token
  };
  struct Found {
    uint32_t begin;
    int32_t token;
  };

  int32_t child_of(int32_t node, unsigned char byte) const;
  int32_t step(int32_t node, unsigned char byte) const;
  // The longest pattern at each place that has one, from the end of the text to its start.
  std::vector<Found> find_all(std::string_view text) const;

  std::vector<AddedToken> tokens_;
  std::vector<uint32_t> sizes_;  // of each token's pattern
  size_t pattern_bytes_ = 0;
  std::vector<Node> nodes_{1};
  std::array<int32_t, 256> roots_ = [] {
    std::array<int32_t, 256> none;
    none.fill(-1);
    return none;
  }();
};

}  // namespace banyan
