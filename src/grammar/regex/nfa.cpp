#include "grammar/regex/nfa.h"

#include <xxhash.h>

#include <algorithm>
#include <unordered_map>

#include "grammar/schema/json_text.h"
#include "unicode/unicode.h"

namespace banyan {
namespace {

// Largest code point of each UTF-8 length.
constexpr char32_t kUtf8Ends[] = {0x7f, 0x7ff, 0xffff, 0x10ffff};

}  // namespace

uint32_t Nfa::text(std::string_view bytes, uint32_t next) {
  for (size_t i = bytes.size(); i-- > 0;) {
    auto byte = static_cast<uint8_t>(bytes[i]);
    next = add({Kind::kByte, byte, byte, next, 0});
  }
  return next;
}

uint32_t Nfa::byte_range(uint8_t first, uint8_t last, uint32_t next) {
  auto [it, fresh] = shared_.emplace(std::tuple(first, last, next), 0);
  if (fresh) it->second = add({Kind::kByte, first, last, next, 0});
  return it->second;
}

// Splits the range into pieces that are sequences of byte ranges: in each piece, all bytes after
// the first that differs run over all of 80..bf.
void Nfa::utf8_range(char32_t first, char32_t last, uint32_t next, std::vector<uint32_t>& ways) {
  for (char32_t end : kUtf8Ends) {
    if (first <= end && last > end) {
      utf8_range(first, end, next, ways);
      first = end + 1;
    }
  }
  for (int bits = 6; bits <= 18 && last > 0x7f; bits += 6) {
    char32_t mask = (char32_t{1} << bits) - 1;
    if ((first & ~mask) == (last & ~mask)) break;
    if ((first & mask) != 0) {
      utf8_range(first, first | mask, next, ways);
      return utf8_range((first | mask) + 1, last, next, ways);
    }
    if ((last & mask) != mask) {
      utf8_range(first, (last & ~mask) - 1, next, ways);
      return utf8_range(last & ~mask, last, next, ways);
    }
  }
  std::string low, high;
  unicode::append(low, first);
  unicode::append(high, last);
  for (size_t i = low.size(); i-- > 0;) {
    next = byte_range(static_cast<uint8_t>(low[i]), static_cast<uint8_t>(high[i]), next);
  }
  ways.push_back(next);
}

uint32_t Nfa::characters(const CodepointSet& set, uint32_t next) {
  shared_.clear();
  std::vector<uint32_t> ways;
  const CodepointSet* plain = &set;
  CodepointSet unescaped;
  if (coding_ == CharacterCoding::kJson) {
    static const CodepointSet kEscaped = {{0, 0x1f}, {'"', '"'}, {'\\', '\\'}};
    unescaped = set.without(kEscaped);
    plain = &unescaped;
    for (const auto& range : kEscaped.ranges()) {
      for (char32_t c = range.first; c <= range.last; ++c) {
        if (!set.contains(c)) continue;
        ways.push_back(text(json_escape(static_cast<char>(c)), next));
      }
    }
  }
  for (const auto& range : plain->ranges()) utf8_range(range.first, range.last, next, ways);
  // An empty set matches nothing: a byte range without bytes.
  if (ways.empty()) return add({Kind::kByte, 1, 0, next, 0});
  uint32_t node = ways.back();
  for (size_t i = ways.size() - 1; i-- > 0;) node = split(ways[i], node);
  return node;
}

uint32_t Nfa::dfa(const Dfa& dfa, uint32_t next) {
  // One chain of splits per state. The targets are known only after every state has its entry.
  std::vector<uint32_t> entry(dfa.states());
  for (uint32_t s = 1; s < dfa.states(); ++s) entry[s] = split(0, 0);
  for (uint32_t s = 1; s < dfa.states(); ++s) {
    uint32_t ways = dfa.accepting(s) ? next : add({Kind::kByte, 1, 0, next, 0});
    for (int first = 0; first < 256;) {
      int last = first;
      uint32_t to = dfa.step(s, static_cast<uint8_t>(first));
      while (last < 255 && dfa.step(s, static_cast<uint8_t>(last + 1)) == to) ++last;
      if (to != Dfa::kDead) {
        uint32_t byte = add(
            {Kind::kByte, static_cast<uint8_t>(first), static_cast<uint8_t>(last), entry[to], 0});
        ways = split(byte, ways);
      }
      first = last + 1;
    }
    nodes_[entry[s]].next = nodes_[entry[s]].other = ways;
  }
  return entry[dfa.start()];
}

uint32_t Nfa::star(const CodepointSet& set, uint32_t next) {
  uint32_t loop = split(0, next);
  uint32_t body = characters(set, loop);
  nodes_[loop].next = body;
  return loop;
}

Result<uint32_t> Nfa::repeat(const Regex& regex, const Regex::Node& node, uint32_t next) {
  uint32_t child = node.children[0];
  uint32_t end = next;
  if (node.max == Regex::kUnbounded) {
    uint32_t loop = split(0, next);
    uint32_t body = TRY(part(regex, child, loop));
    nodes_[loop].next = body;
    next = loop;
  } else {
    for (int i = node.min; i < node.max; ++i) next = split(TRY(part(regex, child, next)), end);
  }
  for (int i = 0; i < node.min; ++i) next = TRY(part(regex, child, next));
  return next;
}

Result<uint32_t> Nfa::part(const Regex& regex, uint32_t root, uint32_t next) {
  TRY(Budget::fits("the expanded pattern (nodes)", nodes_.size(), budget_.limits().nodes_max));
  TRY(budget_.spend("expanding a pattern", 4));
  const Regex::Node& node = regex.nodes[root];
  switch (node.kind) {
    case Regex::Kind::kEmpty:
      return next;
    case Regex::Kind::kSet:
      return characters(regex.sets[node.set], next);
    case Regex::Kind::kBegin:
      return add({Kind::kBegin, 0, 0, next, 0});
    case Regex::Kind::kEnd:
      return add({Kind::kEnd, 0, 0, next, 0});
    case Regex::Kind::kConcatenation:
      for (size_t i = node.children.size(); i-- > 0;) {
        next = TRY(part(regex, node.children[i], next));
      }
      return next;
    case Regex::Kind::kAlternation: {
      uint32_t ways = TRY(part(regex, node.children.back(), next));
      for (size_t i = node.children.size() - 1; i-- > 0;) {
        ways = split(TRY(part(regex, node.children[i], next)), ways);
      }
      return ways;
    }
    case Regex::Kind::kRepeat:
      return repeat(regex, node, next);
  }
  return next;
}

// The subset construction. A state is the sorted set of byte and accepting nodes reachable without
// reading.
class Determinizer {
 public:
  explicit Determinizer(const Nfa& nfa) : nfa_(nfa), mark_(nfa.nodes_.size(), 0) { classify(); }

  Result<Dfa> run(uint32_t start) {
    add_state({}, false);
    table_.start = TRY(close({start}, true));
    std::vector<std::vector<uint32_t>> targets(table_.classes);
    for (uint32_t s = 1; s < sets_.size(); ++s) {
      for (auto& list : targets) list.clear();
      for (uint32_t node : sets_[s]) {
        const Nfa::Node& n = nfa_.nodes_[node];
        if (n.kind != Nfa::Kind::kByte || n.first > n.last) continue;
        for (uint32_t c = table_.class_of[n.first]; c <= table_.class_of[n.last]; ++c) {
          targets[c].push_back(n.next);
        }
      }
      for (uint32_t c = 0; c < table_.classes; ++c) {
        if (targets[c].empty()) continue;
        uint32_t to = TRY(close(targets[c], false));
        table_.next[size_t{s} * table_.classes + c] = to;
      }
      // Also charges the memory of a state's set.
      TRY(Budget::fits("the pattern (automaton states)", sets_.size(),
                       nfa_.budget_.limits().dfa_states_max));
      TRY(Budget::fits("the pattern (automaton)", nodes_total_,
                       nfa_.budget_.limits().nodes_max * 16));
    }
    return Dfa::make(std::move(table_), nfa_.budget_);
  }

 private:
  // Byte classes are intervals, so a node's range is a range of classes.
  void classify() {
    std::array<bool, 257> edge{};
    for (const Nfa::Node& n : nfa_.nodes_) {
      if (n.kind != Nfa::Kind::kByte || n.first > n.last) continue;
      edge[n.first] = true;
      edge[n.last + 1] = true;
    }
    uint32_t c = 0;
    for (int b = 0; b < 256; ++b) {
      if (b > 0 && edge[b]) ++c;
      table_.class_of[b] = static_cast<uint8_t>(c);
    }
    table_.classes = c + 1;
  }

  void push(uint32_t node) {
    if (mark_[node] == epoch_) return;
    mark_[node] = epoch_;
    stack_.push_back(node);
  }

  // Follows from `from` the edges that read no byte; puts the other nodes into `set`.
  void follow(const std::vector<uint32_t>& from, bool at_begin, bool at_end,
              std::vector<uint32_t>& set) {
    ++epoch_;
    for (uint32_t node : from) push(node);
    while (!stack_.empty()) {
      uint32_t node = stack_.back();
      stack_.pop_back();
      const Nfa::Node& n = nfa_.nodes_[node];
      bool passes = n.kind == Nfa::Kind::kSplit || (n.kind == Nfa::Kind::kBegin && at_begin) ||
                    (n.kind == Nfa::Kind::kEnd && at_end);
      if (passes) push(n.next);
      if (n.kind == Nfa::Kind::kSplit) push(n.other);
      // An end assertion that does not hold yet may hold if the text ends here.
      if (!passes && n.kind != Nfa::Kind::kBegin) set.push_back(node);
    }
  }

  Result<uint32_t> close(const std::vector<uint32_t>& from, bool at_begin) {
    std::vector<uint32_t> set;
    follow(from, at_begin, false, set);
    std::sort(set.begin(), set.end());
    TRY(nfa_.budget_.spend("making a pattern deterministic", set.size() + from.size() + 1));
    uint64_t hash = XXH3_64bits_withSeed(set.data(), set.size() * sizeof(uint32_t), at_begin);
    for (auto [it, end] = index_.equal_range(hash); it != end; ++it) {
      if (!at_begin && sets_[it->second] == set) return it->second;
    }
    bool accepts = false;
    bool needs_end = false;
    for (uint32_t node : set) {
      accepts |= nfa_.nodes_[node].kind == Nfa::Kind::kAccept;
      needs_end |= nfa_.nodes_[node].kind == Nfa::Kind::kEnd;
    }
    if (!accepts && needs_end) {
      std::vector<uint32_t> at_end;
      follow(set, at_begin, true, at_end);
      for (uint32_t node : at_end) accepts |= nfa_.nodes_[node].kind == Nfa::Kind::kAccept;
    }
    index_.emplace(hash, static_cast<uint32_t>(sets_.size()));
    return add_state(std::move(set), accepts);
  }

  uint32_t add_state(std::vector<uint32_t> set, bool accepts) {
    nodes_total_ += set.size();
    sets_.push_back(std::move(set));
    table_.accepting.push_back(accepts);
    table_.next.resize(sets_.size() * table_.classes, 0);
    return static_cast<uint32_t>(sets_.size() - 1);
  }

  const Nfa& nfa_;
  DfaTable table_;
  std::vector<std::vector<uint32_t>> sets_;
  std::unordered_multimap<uint64_t, uint32_t> index_;
  size_t nodes_total_ = 0;
  std::vector<uint32_t> mark_, stack_;
  uint32_t epoch_ = 0;
};

Result<Dfa> Nfa::determinize(uint32_t start) const {
  return Determinizer(*this).run(start);
}

Result<Dfa> compile_regex(const Regex& regex, RegexMatch match, CharacterCoding coding,
                          Budget& budget) {
  Nfa nfa(coding, budget);
  uint32_t end = nfa.accept();
  if (match == RegexMatch::kSearch) end = nfa.star(CodepointSet::all(), end);
  uint32_t start = TRY(nfa.part(regex, regex.root, end));
  if (match == RegexMatch::kSearch) start = nfa.star(CodepointSet::all(), start);
  return nfa.determinize(start);
}

Result<Dfa> compile_regex_part(const Regex& regex, uint32_t root, CharacterCoding coding,
                               Budget& budget) {
  Nfa nfa(coding, budget);
  uint32_t start = TRY(nfa.part(regex, root, nfa.accept()));
  return nfa.determinize(start);
}

Result<Dfa> dfa_of_regex(std::string_view pattern, Budget& budget, CharacterCoding coding) {
  Regex regex = TRY(parse_regex(pattern, RegexDialect::kRe2, budget));
  return compile_regex(regex, RegexMatch::kFull, coding, budget);
}

}  // namespace banyan
