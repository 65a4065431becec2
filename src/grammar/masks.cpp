#include "grammar/masks.h"

#include <xxhash.h>

#include <algorithm>
#include <bit>
#include <bitset>

#include "base/check.h"

namespace banyan {
namespace {

constexpr int32_t kNowhere = -1, kUnknown = -2;

template <class Body>
void for_each_byte(const std::bitset<256>& bytes, const Body& body) {
  for (size_t b = bytes._Find_first(); b < 256; b = bytes._Find_next(b)) body(b);
}

// How many bits are set, if fewer than `limit`.
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

uint64_t exact_hash(const ParseState& state) {
  return XXH3_64bits_withSeed(state.configurations.data(),
                              state.configurations.size() * sizeof(Configuration),
                              state.complete ? 1 : 0);
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
  size_t mark = parser.stacks().mark();
  work_ = 0;
  // A token is allowed if one configuration allows it, so each may be treated in its best way.
  ParseState rest;
  uint8_t slice = 0;
  for (const Configuration& c : state.configurations) {
    if (string_part(parser, c, vocabulary, mask)) continue;
    rest.configurations.push_back(c);
    uint8_t own = slice_of(parser, c);
    if (own != 0 && (slice == 0 || own < slice)) slice = own;
  }
  if (slice != 0) unite(mask, vocabulary.slice(slice - 1).mask);
  if (!rest.configurations.empty()) {
    walk(parser, rest, slice != 0 ? vocabulary.slice(slice - 1).others : vocabulary.trie(),
         [&](uint32_t token) { set_bit(mask, token); });
  }
  if (state.complete) {
    for (TokenId end : vocabulary.ends()) set_bit(mask, static_cast<uint32_t>(end));
  }
  parser.stacks().rewind(mark);
}

// The slice (from 1) that may follow in `c` as a whole, its longest token included; 0: none.
uint8_t MaskBuilder::slice_of(const Parser& parser, const Configuration& c) {
  const Terminal& t = parser.automaton().terminal_of(parser.automaton().node(c.node));
  if (t.slice.empty() || t.slice[c.place] == 0 || !t.counts_characters) {
    return t.slice.empty() ? 0 : t.slice[c.place];
  }
  uint64_t most = uint64_t{c.count} + TokenVocabulary::kSliceCharactersMax + t.counts.shortest_max;
  bool short_of_max = t.max == Rules::kUnbounded || most <= t.max;
  bool above_min = c.count >= t.min || t.counts.endless_everywhere;
  return short_of_max && above_min ? t.slice[c.place] : 0;
}

// Between the quotes of a string without a pattern, the tokens that stay within were listed once
// and for all; those that leave it are walked from their quote on.
bool MaskBuilder::string_part(Parser& parser, const Configuration& c,
                              const TokenVocabulary& vocabulary, std::span<uint32_t> mask) {
  const AutomatonNode& node = parser.automaton().node(c.node);
  const Terminal& t = parser.automaton().terminal_of(node);
  if (t.dfa != json_string_dfa() || !t.counts_characters) return false;
  if (!t.dfa->character_end(c.place)) return false;
  uint32_t room = t.max == Rules::kUnbounded ? UINT32_MAX : t.max - c.count;
  unite(mask, vocabulary.string_mask(room));
  ParseState after = parser.after_terminal(c);
  walk(parser, after, vocabulary.exit_trie(), [&](uint32_t index) {
    const TokenVocabulary::StringExit& exit = vocabulary.exit(index);
    uint64_t count = uint64_t{c.count} + exit.characters;
    if (exit.characters <= room && count >= t.min) {
      set_bit(mask, static_cast<uint32_t>(exit.token));
    }
  });
  return true;
}

template <class Found>
void MaskBuilder::walk(Parser& parser, const ParseState& state, const TokenTrie& trie,
                       Found found) {
  used_ = 0;
  index_.assign(64, kNowhere);
  path_.resize(trie.depth_max() + 1);
  path_[0] = add(parser, state);
  size_t size = trie.size();
  for (size_t i = 0; i < size;) {
    const TokenTrie::Node& node = trie[i];
    int32_t from = path_[node.depth - 1];
    int32_t to = states_[from].next[node.byte];
    if (to == kUnknown) to = step(parser, from, node.byte);
    if (to == kNowhere) {
      i = node.end;
      continue;
    }
    path_[node.depth] = to;
    if (node.has_values) {
      for (uint32_t value : trie.values(i)) found(value);
    }
    ++i;
  }
}

int32_t MaskBuilder::add(Parser& parser, const ParseState& state) {
  if (2 * (used_ + 1) > index_.size()) grow_index();
  uint64_t hash = exact_hash(state);
  size_t slot = hash & (index_.size() - 1);
  for (; index_[slot] >= 0; slot = (slot + 1) & (index_.size() - 1)) {
    const WalkState& other = states_[index_[slot]];
    if (other.hash == hash && other.state == state) return index_[slot];
  }
  if (used_ == states_.size()) {
    states_.push_back({{}, 0, std::make_unique_for_overwrite<int32_t[]>(256)});
  }
  auto index = static_cast<int32_t>(used_++);
  index_[slot] = index;
  WalkState& added = states_[index];
  added.state = state;
  added.hash = hash;
  std::bitset<256> bytes;
  parser.next_bytes(state, bytes);
  std::fill_n(added.next.get(), 256, kNowhere);
  for_each_byte(bytes, [&](size_t b) { added.next[b] = kUnknown; });
  return index;
}

void MaskBuilder::grow_index() {
  index_.assign(std::max<size_t>(64, index_.size() * 2), kNowhere);
  for (size_t i = 0; i < used_; ++i) {
    size_t slot = states_[i].hash & (index_.size() - 1);
    while (index_[slot] >= 0) slot = (slot + 1) & (index_.size() - 1);
    index_[slot] = static_cast<int32_t>(i);
  }
}

int32_t MaskBuilder::step(Parser& parser, int32_t from, uint8_t byte) {
  work_ += states_[from].state.configurations.size();
  if (work_ > kWorkMax) return kNowhere;
  parser.step(states_[from].state, byte, scratch_);
  work_ += scratch_.configurations.size();
  int32_t to = scratch_.dead() ? kNowhere : add(parser, scratch_);
  WalkState& state = states_[from];
  state.next[byte] = to;
  // What is one class of bytes to the only terminal there is need be found once.
  if (state.state.configurations.size() != 1) return to;
  const AutomatonNode& node = parser.automaton().node(state.state.configurations[0].node);
  const Terminal& t = parser.automaton().terminal_of(node);
  if (!t.dfa) return to;
  for_each_byte(t.dfa->bytes_of_class(t.dfa->class_of(byte)),
                [&](size_t b) { state.next[b] = to; });
  return to;
}

}  // namespace banyan
