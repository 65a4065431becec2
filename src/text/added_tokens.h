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
  static constexpr size_t kBytesMax = 4096;

  TokenId id = -1;
  std::string content = {};
  bool special = false;      // left out by decode(skip_special_tokens)
  bool normalized = false;   // looked for in the normalized text, in its normalized form
  bool single_word = false;  // only where no word character touches it
  bool lstrip = false;       // takes the spaces before it along
  bool rstrip = false;       // and those behind it
};

// Finds the added tokens of one kind (normalized or not) in a text: leftmost first, then longest.
class AddedTokenMatcher {
 public:
  // A part of a text that is an added token, or text between two.
  struct Section {
    uint32_t begin, end;
    TokenId id;  // -1: text
  };

  // `pattern` is what to look for: the token's content, or its normalized form. A pattern that is
  // already there keeps its first token.
  void add(const AddedToken& token, std::string_view pattern);
  bool empty() const { return tokens_.empty(); }

  // Appends the sections of `text`, in order; the text of tokens that strip may overlap what the
  // token before has taken. `specials`: whether special tokens are found.
  void split(std::string_view text, bool specials, std::vector<Section>& sections) const;

 private:
  struct Node {
    int32_t token = -1;  // index into tokens_: the pattern that ends here
    std::vector<std::pair<unsigned char, int32_t>> children;
  };

  int32_t child_of(int32_t node, unsigned char byte) const;
  // The longest pattern at `at`: its token and end.
  const AddedToken* match(std::string_view text, size_t at, size_t& end) const;

  std::vector<AddedToken> tokens_;
  std::vector<Node> nodes_{1};
  std::array<int32_t, 256> roots_ = [] {
    std::array<int32_t, 256> none;
    none.fill(-1);
    return none;
  }();
};

}  // namespace banyan
