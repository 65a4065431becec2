// Walks a trie of tokens against an automaton, following all alternatives in parallel.
//
// A state of the walk is a set of places within terminals and a set of *ends*: what may follow
// completed terminals. Each end is expanded once per walk, and only for the bytes it can begin
// with. A number, for example, ends after each of its digits, but a token of digits never enters
// these ends.
//
// Owns working memory: one per thread. The stacks that a walk creates belong to the parser; the
// caller rewinds them.
#pragma once

#include <bitset>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "grammar/run/parser.h"
#include "grammar/run/token_vocabulary.h"

namespace banyan {

// A hash index of items that are numbered in the order of insertion.
class HashIndex {
 public:
  static constexpr int32_t kNone = -1;

  void clear();
  template <class Equal>
  int32_t find(uint64_t hash, const Equal& equal) const {
    size_t slot = hash & (slots_.size() - 1);
    for (; slots_[slot] >= 0; slot = (slot + 1) & (slots_.size() - 1)) {
      int32_t number = slots_[slot];
      if (hashes_[static_cast<size_t>(number)] == hash && equal(number)) return number;
    }
    return kNone;
  }
  int32_t add(uint64_t hash);

 private:
  void put(uint64_t hash, int32_t number);

  std::vector<uint64_t> hashes_;  // by item number
  std::vector<int32_t> slots_;    // size is a power of two, at most half full
};

class TokenWalk {
 public:
  // Limit on configuration moves per mask; tokens not reached by then are not allowed. Only
  // deliberately ambiguous grammars reach it, and it bounds the time of their masks.
  static constexpr size_t kWorkMax = 2'000'000;
  static constexpr int32_t kNowhere = -1;

  // Clears all ends; later states belong to `parser`.
  void begin(Parser& parser);

  // The end after the terminal of `c`; kNowhere if nothing may follow, not even the end of the
  // text.
  int32_t end_of(const Configuration& c) {
    return end_of(parser_->automaton().node(c.node).next, c.stack);
  }
  // The bytes that may follow an end.
  const std::bitset<256>& bytes(int32_t end) const {
    return ends_[static_cast<size_t>(end)]->places.bytes;
  }

  // Calls `found` with every value of `trie` whose string may follow.
  template <class Found>
  void run(std::span<const Configuration> from, const TokenTrie& trie, const Found& found) {
    start();
    walk(add(from, {}), trie, found);
  }
  template <class Found>
  void run(int32_t end, const TokenTrie& trie, const Found& found) {
    start();
    walk(add({}, {&end, 1}), trie, found);
  }

 private:
  static constexpr int32_t kUnknown = -2;

  struct Places {
    static constexpr uint16_t kMany = 256;

    std::vector<Configuration> all;
    std::vector<uint16_t> only;     // by place: the single byte of a text, or kMany
    std::bitset<256> texts, bytes;  // bytes that continue texts; bytes that continue anything
  };
  struct State {
    Places places;
    std::vector<int32_t> ends;
  };
  struct End {
    uint32_t next = 0;
    StackId stack = 0;
    bool dead = false;
    Places places;
  };

  void start();
  template <class Found>
  void walk(int32_t state, const TokenTrie& trie, const Found& found);
  int32_t end_of(uint32_t next, StackId stack);
  int32_t add(std::span<const Configuration> places, std::span<const int32_t> ends);
  int32_t step(int32_t from, uint8_t byte);
  void assign(Places& places, std::span<const Configuration> from) const;
  void move(const Places& places, uint8_t byte, std::bitset<256>& alike);
  void move(Configuration c, uint8_t byte);

  Parser* parser_ = nullptr;
  HashIndex state_index_, end_index_;
  std::vector<State> states_;
  std::vector<int32_t> next_;  // [states, 256]: a state, kNowhere or kUnknown
  size_t states_used_ = 0, ends_used_ = 0;
  std::vector<std::unique_ptr<End>> ends_;
  std::vector<int32_t> path_;  // by depth
  std::vector<Configuration> places_made_;
  std::vector<int32_t> ends_made_;
  size_t work_ = 0;
};

template <class Found>
void TokenWalk::walk(int32_t state, const TokenTrie& trie, const Found& found) {
  path_.resize(trie.depth_max() + 1);
  path_[0] = state;
  size_t size = trie.size();
  for (size_t i = 0; i < size;) {
    const TokenTrie::Node& node = trie[i];
    int32_t from = path_[node.depth - 1];
    int32_t to = next_[static_cast<size_t>(from) * 256 + node.byte];
    if (to == kUnknown) to = step(from, node.byte);
    if (to == kNowhere) {
      i = node.end;
      continue;
    }
    path_[node.depth] = to;
    if ((node.marks & TokenTrie::kHasValues) != 0) {
      for (uint32_t value : trie.values(i)) found(value);
    }
    ++i;
  }
}

}  // namespace banyan
