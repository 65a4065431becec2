// Computes which tokens may come next in a state, as a bitmask over the vocabulary, and caches
// masks.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <unordered_map>
#include <vector>

#include "grammar/run/parser.h"
#include "grammar/run/token_vocabulary.h"
#include "grammar/run/token_walk.h"

namespace banyan {

// Masks by Parser::hash(), for one automaton and one vocabulary. Thread-safe. A full cache is
// cleared; each state in use costs one walk to restore.
class MaskCache {
 public:
  explicit MaskCache(size_t bytes_max) : bytes_max_(bytes_max) {}

  bool read(uint64_t hash, std::span<uint32_t> mask) const;
  void write(uint64_t hash, std::span<const uint32_t> mask);
  size_t bytes() const;

 private:
  // Either a short list of tokens or the whole mask.
  struct Entry {
    bool is_list = false;
    std::vector<uint32_t> values;
  };

  size_t bytes_max_;
  mutable std::mutex mutex_;
  std::unordered_map<uint64_t, Entry> entries_;
  size_t bytes_ = 0;
};

// Builds masks. Owns working memory: one per thread.
class MaskBuilder {
 public:
  // Sets the bits of the tokens that may follow in `state`, which belongs to `parser`; clears the
  // others.
  void build(Parser& parser, const ParseState& state, const TokenVocabulary& vocabulary,
             std::span<uint32_t> mask);

 private:
  uint8_t slice_of(const Configuration& c) const;
  bool quoted(const Configuration& c, std::span<uint32_t> mask);
  void inside(const Configuration& c, std::span<uint32_t> mask);
  void walk_terminal(const Configuration& c, const TokenTrie& trie, std::span<uint32_t> mask);
  bool ends_after(const Configuration& c, std::string_view bytes) const;

  Parser* parser_ = nullptr;
  const TokenVocabulary* vocabulary_ = nullptr;
  TokenWalk walk_;
  std::vector<Configuration> rest_;
  // By depth in a trie: DFA state and number of characters read.
  std::vector<std::pair<uint32_t, uint32_t>> path_;
};

}  // namespace banyan
