// Which tokens may come next in a state, as bits over the vocabulary, and a cache of them.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <unordered_map>
#include <vector>

#include "grammar/parser.h"
#include "grammar/token_vocabulary.h"

namespace banyan {

// Masks by Parser::hash(), for one automaton and one vocabulary. Thread-safe. When it is full it
// starts anew: the states that are in use come back within as many walks.
class MaskCache {
 public:
  explicit MaskCache(size_t bytes_max) : bytes_max_(bytes_max) {}

  bool read(uint64_t hash, std::span<uint32_t> mask) const;
  void write(uint64_t hash, std::span<const uint32_t> mask);
  size_t bytes() const;

 private:
  // A short list of tokens, or all words.
  struct Entry {
    bool is_list = false;
    std::vector<uint32_t> values;
  };

  size_t bytes_max_;
  mutable std::mutex mutex_;
  std::unordered_map<uint64_t, Entry> entries_;
  size_t bytes_ = 0;
};

// Walks the token trie against the automaton. Holds working memory: one per thread.
class MaskBuilder {
 public:
  // Configurations that may be moved for one mask; what is not reached by then is not allowed. Only
  // grammars that are ambiguous on purpose get there, and a mask of theirs takes no longer.
  static constexpr size_t kWorkMax = 2'000'000;

  // Sets the bits of the tokens that may follow in `state`, which is the parser's; clears others.
  void build(Parser& parser, const ParseState& state, const TokenVocabulary& vocabulary,
             std::span<uint32_t> mask);

 private:
  struct WalkState {
    ParseState state;
    uint64_t hash;
    std::unique_ptr<int32_t[]> next;  // by byte: an index into states_, kDead or kUnknown
  };

  static uint8_t slice_of(const Parser& parser, const Configuration& c);
  bool string_part(Parser& parser, const Configuration& c, const TokenVocabulary& vocabulary,
                   std::span<uint32_t> mask);
  template <class Found>
  void walk(Parser& parser, const ParseState& state, const TokenTrie& trie, Found found);
  int32_t add(Parser& parser, const ParseState& state);
  void grow_index();
  int32_t step(Parser& parser, int32_t from, uint8_t byte);

  std::vector<WalkState> states_;
  size_t used_ = 0;
  std::vector<int32_t> index_;  // of states_ by hash; a power of two, at most half full
  std::vector<int32_t> path_;
  ParseState scratch_;
  size_t work_ = 0;
};

}  // namespace banyan
