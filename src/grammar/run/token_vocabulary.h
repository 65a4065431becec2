// What a grammar must know of a tokenizer: the bytes of every token, as a trie, and which tokens
// stay within the text of a JSON string.
//
// Special tokens have no text. They stand in the trie as kSpecialBegin, their name, kSpecialEnd,
// two bytes that no UTF-8 holds, so that a grammar can ask for one by name and no text matches one
// by accident. Tokens that are part of a character, byte-fallback tokens among them, are bytes like
// all others; tokens with the byte 0xff can be in no text and are never allowed.
//
// Immutable after make(); const use is thread-safe. Shared by all grammars of a tokenizer.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "banyan/request.h"
#include "grammar/regex/dfa.h"
#include "grammar/run/token_slices.h"

namespace banyan {

class Tokenizer;

constexpr char kSpecialBegin = '\xff', kSpecialEnd = '\xfe';
// How a grammar spells the special token called `name`.
std::string special_token_text(std::string_view name);

// Texts with a value each, sorted into a trie in preorder: a node's subtree is the range
// [node, end). Texts may repeat.
class TokenTrie {
 public:
  static constexpr uint8_t kHasValues = 1;

  // Eight bytes: walking a trie is reading it from memory.
  struct Node {
    uint8_t byte = 0;
    uint8_t marks = 0;   // bit 0: it has values; others: see mark_within()
    uint16_t depth = 0;  // 1: a first byte
    uint32_t end = 0;    // one past the subtree
  };

  TokenTrie() = default;
  explicit TokenTrie(std::vector<std::pair<std::string, uint32_t>> texts);

  size_t size() const { return nodes_.size(); }
  const Node& operator[](size_t i) const { return nodes_[i]; }
  std::span<const uint32_t> values(size_t node) const {
    return {values_.data() + values_begin_[node], values_begin_[node + 1] - values_begin_[node]};
  }
  // Of the node and all below it.
  std::span<const uint32_t> subtree_values(size_t node) const {
    return {values_.data() + values_begin_[node],
            values_begin_[nodes_[node].end] - values_begin_[node]};
  }
  // Sets bit `bit` of the nodes below which all that comes is a text of `texts`, as far as it goes,
  // of at most kSliceBytesMax bytes.
  void mark_within(int bit, const Dfa& texts);

  size_t depth_max() const { return depth_max_; }
  size_t bytes() const { return nodes_.size() * (sizeof(Node) + 4) + values_.size() * 4; }

 private:
  std::vector<Node> nodes_;
  std::vector<uint32_t> values_begin_ = {0};  // by node, and one more
  std::vector<uint32_t> values_;
  size_t depth_max_ = 0;
};

class TokenVocabulary {
 public:
  // `ends`: tokens that end an output; allowed where the text may end. Masks have `mask_tokens`
  // bits (a model's vocabulary may be padded); 0: as many as there are tokens.
  static std::shared_ptr<const TokenVocabulary> make(const Tokenizer& tokenizer,
                                                     std::vector<TokenId> ends,
                                                     int mask_tokens = 0);
  // From the tokens' bytes, by id; an empty string: no such token.
  static std::shared_ptr<const TokenVocabulary> make(std::vector<std::string> bytes,
                                                     std::vector<TokenId> ends,
                                                     int mask_tokens = 0);

  size_t mask_words() const { return mask_words_; }
  int mask_tokens() const { return mask_tokens_; }
  std::string_view bytes_of(TokenId token) const;
  bool ends_output(TokenId token) const;
  const std::vector<TokenId>& ends() const { return ends_; }
  // The id whose bytes are `bytes`; -1 if there is none.
  TokenId find_special(std::string_view name) const;
  uint32_t token_bytes_max() const { return static_cast<uint32_t>(trie_.depth_max()); }
  uint64_t id() const { return id_; }  // no two vocabularies of a process share one
  size_t bytes() const;

  const TokenTrie& trie() const { return trie_; }
  // The tokens that stay within token_slices()[i], for where all of them may follow.
  struct Slice {
    std::vector<uint32_t> mask;         // of at most kSliceBytesMax bytes
    std::vector<uint32_t> long_tokens;  // the others
    // All tokens that do so for kSliceBytesMax bytes or more, whatever follows then.
    TokenTrie long_texts;
    // All tokens that leave the slice, by the byte_group() of the first byte that does.
    std::array<TokenTrie, kByteGroups> others;
  };
  const Slice& slice(size_t i) const { return slices_[i]; }

  // Within the quotes of a JSON string without a pattern, where a character begins: tokens that
  // stay in the string and need no more than `characters` (the begun one included).
  std::span<const uint32_t> string_mask(uint32_t characters) const;
  // Quotes within tokens, not at their beginning: the rests from there on, valued by index into
  // these.
  struct Exit {
    static constexpr uint32_t kNoString = UINT32_MAX;

    TokenId token = 0;
    uint32_t bytes = 0;               // before the quote
    uint32_t characters = kNoString;  // the same, if a JSON string without a pattern may end there
  };
  const TokenTrie& exit_trie() const { return exit_trie_; }
  const Exit& exit(uint32_t index) const { return exits_[index]; }

 private:
  TokenVocabulary() = default;
  void build(std::vector<TokenId> ends, int mask_tokens);
  void build_slices();
  void build_string_tables();

  std::vector<std::string> bytes_;
  std::vector<TokenId> ends_;
  int mask_tokens_ = 0;
  size_t mask_words_ = 0;
  uint64_t id_ = 0;
  TokenTrie trie_, exit_trie_;
  std::vector<Slice> slices_;
  std::vector<uint32_t>
      string_masks_;  // [characters + 1, words], each a superset of the one before
  std::vector<Exit> exits_;
};

// Any text between the quotes of a JSON string, every escape allowed, with kCharacterEnd. Surrogate
// escapes come in pairs, and a pair is one character.
const std::shared_ptr<const Dfa>& json_string_dfa();

}  // namespace banyan
