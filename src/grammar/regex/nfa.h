// Nondeterministic automata over bytes, built back to front: every part is given the node that
// follows it. A temporary form between a regex's syntax tree and its Dfa.
#pragma once

#include <cstdint>
#include <map>
#include <string_view>
#include <vector>

#include "grammar/budget.h"
#include "grammar/regex/codepoints.h"
#include "grammar/regex/dfa.h"
#include "grammar/regex/regex.h"

namespace banyan {

class Nfa {
 public:
  enum class Kind : uint8_t { kByte, kSplit, kBegin, kEnd, kAccept };
  struct Node {
    Kind kind = Kind::kAccept;
    uint8_t first = 0, last = 0;   // kByte: inclusive range
    uint32_t next = 0, other = 0;  // `other`: kSplit's second branch
  };

  Nfa(CharacterCoding coding, Budget& budget) : coding_(coding), budget_(budget) {}

  uint32_t accept() { return add({.kind = Kind::kAccept}); }
  uint32_t text(std::string_view bytes, uint32_t next);
  uint32_t characters(const CodepointSet& set, uint32_t next);
  uint32_t split(uint32_t a, uint32_t b) { return add({Kind::kSplit, 0, 0, a, b}); }
  // Builds the part of `regex` below `root`, followed by `next`. The parser bounds the nesting.
  Result<uint32_t> part(const Regex& regex, uint32_t root, uint32_t next);
  uint32_t dfa(const Dfa& dfa, uint32_t next);
  // A loop head: a split whose first branch close_loop() sets.
  uint32_t open_loop(uint32_t next) { return split(0, next); }
  void close_loop(uint32_t loop, uint32_t body) { nodes_[loop].next = body; }
  size_t size() const { return nodes_.size(); }
  // Any number of characters of `set`, then `next`.
  uint32_t star(const CodepointSet& set, uint32_t next);

  // The strings on all paths from `start` to an accepting node; kBegin and kEnd match at the two
  // ends.
  Result<Dfa> determinize(uint32_t start) const;

 private:
  friend class Determinizer;
  uint32_t add(Node node) {
    nodes_.push_back(node);
    return static_cast<uint32_t>(nodes_.size() - 1);
  }
  uint32_t byte_range(uint8_t first, uint8_t last, uint32_t next);
  void utf8_range(char32_t first, char32_t last, uint32_t next, std::vector<uint32_t>& ways);
  Result<uint32_t> repeat(const Regex& regex, const Regex::Node& node, uint32_t next);

  CharacterCoding coding_;
  Budget& budget_;
  std::vector<Node> nodes_;
  // Shared byte nodes of one character set, by (first, last, next).
  std::map<std::tuple<uint8_t, uint8_t, uint32_t>, uint32_t> shared_;
};

}  // namespace banyan
