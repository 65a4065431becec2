#include "grammar/run/masks.h"

#include <algorithm>
#include <bit>
#include <bitset>

#include "base/check.h"

namespace banyan {
namespace {

// Up to this many configurations of a state are handled one by one; the rest are walked together.
constexpr size_t kAloneMax = 8;

// The number of set bits, counted up to `limit`.
size_t count_below(std::span<const uint32_t> mask, size_t limit) {
  size_t count = 0;
  for (uint32_t word : mask) {
    for (; word != 0; word &= word - 1) ++count;
    if (count >= limit) return limit;
  }
  return count;
}

void set_bit(std::span<uint32_t> mask, uint32_t token) {
  mask[token / 32] |= 1u << (token % 32);
}

void unite(std::span<uint32_t> mask, std::span<const uint32_t> other) {
  for (size_t i = 0; i < mask.size(); ++i) mask[i] |= other[i];
}

// True if, after `count` characters, no string of `more` characters that the dfa allows breaks the
// bounds of `t`.
bool far_from_bounds(const Terminal& t, uint32_t count, size_t more) {
  bool short_of_max =
      t.max == Rules::kUnbounded || uint64_t{count} + more + t.counts.shortest_max <= t.max;
  return short_of_max && (count >= t.min || t.counts.endless_everywhere);
}

}  // namespace

bool MaskCache::read(uint64_t hash, std::span<uint32_t> mask) const {
  std::lock_guard lock(mutex_);
  auto it = entries_.find(hash);
  if (it == entries_.end()) return false;
  const Entry& entry = it->second;
  if (entry.is_list) {
    std::fill(mask.begin(), mask.end(), 0);
    for (uint32_t token : entry.values) set_bit(mask, token);
  } else {
    std::copy(entry.values.begin(), entry.values.end(), mask.begin());
  }
  return true;
}

void MaskCache::write(uint64_t hash, std::span<const uint32_t> mask) {
  size_t tokens = count_below(mask, mask.size() / 4);
  Entry entry{.is_list = tokens < mask.size() / 4};
  if (entry.is_list) {
    entry.values.reserve(tokens);
    for (uint32_t i = 0; i < mask.size(); ++i) {
      for (uint32_t word = mask[i]; word != 0; word &= word - 1) {
        entry.values.push_back(i * 32 + static_cast<uint32_t>(std::countr_zero(word)));
      }
    }
  } else {
    entry.values.assign(mask.begin(), mask.end());
  }
  size_t bytes = entry.values.size() * 4 + sizeof(Entry) + 32;
  std::lock_guard lock(mutex_);
  if (bytes_ + bytes > bytes_max_) {
    entries_.clear();
    bytes_ = 0;
  }
  if (entries_.emplace(hash, std::move(entry)).second) bytes_ += bytes;
}

size_t MaskCache::bytes() const {
  std::lock_guard lock(mutex_);
  return bytes_;
}

void MaskBuilder::build(Parser& parser, const ParseState& state, const TokenVocabulary& vocabulary,
                        std::span<uint32_t> mask) {
  CHECK(mask.size() == vocabulary.mask_words(), "a mask of {} words", mask.size());
  std::fill(mask.begin(), mask.end(), 0);
  parser_ = &parser;
  vocabulary_ = &vocabulary;
  size_t mark = parser.stacks().mark();
  walk_.begin(parser);
  // A token is allowed if any configuration allows it, so each configuration is handled in the
  // cheapest way.
  rest_.clear();
  uint8_t slice = 0;
  size_t alone = 0;
  for (const Configuration& c : state.configurations) {
    if (alone < kAloneMax && quoted(c, mask)) {
      ++alone;
      continue;
    }
    rest_.push_back(c);
    uint8_t own = slice_of(c);
    if (own != 0 && (slice == 0 || own < slice)) slice = own;
  }
  auto found = [&](uint32_t token) { set_bit(mask, token); };
  if (slice != 0) {
    const TokenVocabulary::Slice& tokens = vocabulary.slice(slice - 1u);
    unite(mask, tokens.mask);
    walk_.run(rest_, tokens.long_texts, found);
    for (const TokenTrie& others : tokens.others) walk_.run(rest_, others, found);
  } else if (!rest_.empty()) {
    walk_.run(rest_, vocabulary.trie(), found);
  }
  if (state.complete) {
    for (TokenId end : vocabulary.ends()) set_bit(mask, static_cast<uint32_t>(end));
  }
  parser.stacks().rewind(mark);
}

// The slice (from 1) whose mask may follow in `c`; 0 if none.
uint8_t MaskBuilder::slice_of(const Configuration& c) const {
  const Terminal& t = parser_->automaton().terminal_of(parser_->automaton().node(c.node));
  if (!t.dfa || t.slices->by_state.empty()) return 0;
  if (t.counts_characters && !far_from_bounds(t, c.count, kSliceBytesMax)) return 0;
  return t.slices->by_state[c.place].number;
}

// For a terminal that only a quote can follow, as in JSON strings and keys. Each token either stays
// within the terminal, which a table walk finds, or contains that quote. Returns false if `c` is
// not such a case.
bool MaskBuilder::quoted(const Configuration& c, std::span<uint32_t> mask) {
  const AutomatonNode& node = parser_->automaton().node(c.node);
  const Terminal& t = parser_->automaton().terminal_of(node);
  if (!t.dfa) return false;
  int32_t end = walk_.end_of(c);
  if (end == TokenWalk::kNowhere) return false;
  std::bitset<256> others = walk_.bytes(end);
  if (others.reset('"').any()) return false;
  bool string = t.dfa == json_string_dfa() && t.counts_characters && t.dfa->character_end(c.place);
  uint32_t room = t.max == Rules::kUnbounded ? UINT32_MAX : t.max - c.count;
  if (string) {
    unite(mask, vocabulary_->string_mask(room));
  } else {
    inside(c, mask);
  }
  walk_.run(end, vocabulary_->exit_trie(), [&](uint32_t index) {
    const TokenVocabulary::Exit& exit = vocabulary_->exit(index);
    bool ends = false;
    if (string) {
      bool known = exit.characters != TokenVocabulary::Exit::kNoString;
      ends = known && exit.characters <= room && uint64_t{c.count} + exit.characters >= t.min;
    } else {
      ends = ends_after(c, vocabulary_->bytes_of(exit.token).substr(0, exit.bytes));
    }
    if (ends) set_bit(mask, static_cast<uint32_t>(exit.token));
  });
  return true;
}

// Sets the tokens that stay within the terminal of `c`.
void MaskBuilder::inside(const Configuration& c, std::span<uint32_t> mask) {
  uint8_t slice = slice_of(c);
  if (slice == 0) return walk_terminal(c, vocabulary_->trie(), mask);
  const Terminal& t = parser_->automaton().terminal_of(parser_->automaton().node(c.node));
  const TokenVocabulary::Slice& tokens = vocabulary_->slice(slice - 1u);
  unite(mask, tokens.mask);
  if (t.slices->by_state[c.place].endless && !t.counts_characters) {
    for (uint32_t token : tokens.long_tokens) set_bit(mask, token);
  } else {
    walk_terminal(c, tokens.long_texts, mask);
  }
  for (size_t g = 0; g < kByteGroups; ++g) {
    bool may = (t.slices->groups[slice - 1u] >> g & 1) != 0;
    if (may) walk_terminal(c, tokens.others[g], mask);
  }
}

void MaskBuilder::walk_terminal(const Configuration& c, const TokenTrie& trie,
                                std::span<uint32_t> mask) {
  const Terminal& t = parser_->automaton().terminal_of(parser_->automaton().node(c.node));
  const Dfa& dfa = *t.dfa;
  bool far = !t.counts_characters || far_from_bounds(t, c.count, trie.depth_max());
  path_.resize(trie.depth_max() + 1);
  path_[0] = {c.place, c.count};
  for (size_t i = 0; i < trie.size();) {
    const TokenTrie::Node& node = trie[i];
    auto [place, count] = path_[node.depth - 1u];
    place = dfa.step(place, node.byte);
    bool alive = place != Dfa::kDead;
    if (!far && alive) {
      count += dfa.character_end(place) ? 1 : 0;
      alive = t.within_bounds(place, count);
    }
    if (!alive) {
      i = node.end;
      continue;
    }
    // If a whole slice may follow and nothing else, no walk is needed.
    uint8_t slice = far && !t.slices->by_state.empty() ? t.slices->by_state[place].number : 0;
    if (slice != 0 && (node.marks >> slice & 1) != 0) {
      for (uint32_t token : trie.subtree_values(i)) set_bit(mask, token);
      i = node.end;
      continue;
    }
    path_[node.depth] = {place, count};
    if ((node.marks & TokenTrie::kHasValues) != 0) {
      for (uint32_t token : trie.values(i)) set_bit(mask, token);
    }
    ++i;
  }
}

// Whether the terminal of `c` may end after `bytes`.
bool MaskBuilder::ends_after(const Configuration& c, std::string_view bytes) const {
  const Terminal& t = parser_->automaton().terminal_of(parser_->automaton().node(c.node));
  const Dfa& dfa = *t.dfa;
  uint32_t place = c.place, count = c.count;
  for (char byte : bytes) {
    place = dfa.step(place, static_cast<uint8_t>(byte));
    if (place == Dfa::kDead) return false;
    count += dfa.character_end(place) ? 1 : 0;
  }
  return dfa.accepting(place) && (!t.counts_characters || (count >= t.min && count <= t.max));
}

}  // namespace banyan
