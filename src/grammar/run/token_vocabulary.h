// What a grammar needs from a tokenizer: the bytes of every token, as a trie, and which tokens stay
// within a JSON string.
//
// Special tokens have no text. In the trie they are kSpecialBegin, their name, kSpecialEnd. The two
// markers are bytes that UTF-8 never contains, so a grammar can name a special token and no text
// matches one by accident. Tokens that hold part of a character, such as byte-fallback tokens, are
// ordinary bytes. Tokens with the byte 0xff occur in no text and are never allowed.
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
// The bytes by which a grammar refers to the special token `name`.
std::string special_token_text(std::string_view name);

// Strings, each with a value, as a trie in preorder: a node's subtree is the range [node, end).
// Duplicates are allowed.
class TokenTrie {
 public:
  static constexpr uint8_t kHasValues = 1;

  // Eight bytes, since walking a trie is bound by memory reads.
  struct Node {
    uint8_t byte = 0;
    uint8_t marks = 0;   // bit 0: has values; others: see mark_within()
    uint16_t depth = 0;  // 1 for a first byte
    uint32_t end = 0;    // end of the subtree, exclusive
  };

  TokenTrie() = default;
  explicit TokenTrie(std::vector<std::pair<std::string, uint32_t>> texts);

  size_t size() const { return nodes_.size(); }
  const Node& operator[](size_t i) const { return nodes_[i]; }
  std::span<const uint32_t> values(size_t node) const {
    return {values_.data() + values_begin_[node], values_begin_[node + 1] - values_begin_[node]};
  }
  // Values of the node and of all nodes below it.
  std::span<const uint32_t> subtree_values(size_t node) const {
    return {values_.data() + values_begin_[node],
            values_begin_[nodes_[node].end] - values_begin_[node]};
  }
  // Sets bit `bit` of every node from which all continuations are prefixes of strings of `texts`,
  // up to kSliceBytesMax bytes.
  void mark_within(int bit, const Dfa& texts);

  size_t depth_max() const { return depth_max_; }
  size_t bytes() const { return nodes_.size() * (sizeof(Node) + 4) + values_.size() * 4; }

 private:
  std::vector<Node> nodes_;
  std::vector<uint32_t> values_begin_ = {0};  // [nodes + 1]
  std::vector<uint32_t> values_;
  size_t depth_max_ = 0;
};

class TokenVocabulary {
 public:
  // `ends`: tokens that end an output, allowed where the text may end. Masks have `mask_tokens`
  // bits, since a model's vocabulary may be padded; 0: the number of tokens.
  static std::shared_ptr<const TokenVocabulary> make(const Tokenizer& tokenizer,
                                                     std::vector<TokenId> ends,
                                                     int mask_tokens = 0);
  // From the bytes of each token, by id; an empty string means that there is no such token.
  static std::shared_ptr<const TokenVocabulary> make(std::vector<std::string> bytes,
                                                     std::vector<TokenId> ends,
                                                     int mask_tokens = 0);

  size_t mask_words() const { return mask_words_; }
  int mask_tokens() const { return mask_tokens_; }
  std::string_view bytes_of(TokenId token) const;
  bool ends_output(TokenId token) const;
  const std::vector<TokenId>& ends() const { return ends_; }
  // The id of the special token `name`; -1 if there is none.
  TokenId find_special(std::string_view name) const;
  uint32_t token_bytes_max() const { return static_cast<uint32_t>(trie_.depth_max()); }
  uint64_t id() const { return id_; }  // unique within the process
  size_t bytes() const;

  const TokenTrie& trie() const { return trie_; }
  // The tokens that stay within token_slices()[i], for places where all of them may follow.
  struct Slice {
    std::vector<uint32_t> mask;         // tokens of at most kSliceBytesMax bytes
    std::vector<uint32_t> long_tokens;  // longer tokens
    // Tokens whose first kSliceBytesMax bytes or more stay in the slice, whatever follows.
    TokenTrie long_texts;
    // Tokens that leave the slice, by the byte_group() of the first byte outside it.
    std::array<TokenTrie, kByteGroups> others;
  };
  const Slice& slice(size_t i) const { return slices_[i]; }

  // Within a JSON string without a pattern, at the start of a character: tokens that stay in the
  // string and need at most `characters` (the started one included).
  std::span<const uint32_t> string_mask(uint32_t characters) const;
  // Quotes inside tokens, not at the start: the remainder from the quote on, whose value is an
  // index into these.
  struct Exit {
    static constexpr uint32_t kNoString = UINT32_MAX;

    TokenId token = 0;
    uint32_t bytes = 0;               // before the quote
    uint32_t characters = kNoString;  // likewise, if a JSON string without a pattern may end there
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
      string_masks_;  // [characters + 1, words], each a superset of the previous one
  std::vector<Exit> exits_;
};

// Any contents of a JSON string, every escape allowed, with kCharacterEnd. Surrogate escapes come
// in pairs, and a pair is one character.
const std::shared_ptr<const Dfa>& json_string_dfa();

}  // namespace banyan
