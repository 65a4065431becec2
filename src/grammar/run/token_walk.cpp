#include "grammar/run/token_walk.h"

#include <xxhash.h>

#include <algorithm>

namespace banyan {
namespace {

constexpr size_t kSlotsMin = 64;
// Number of states whose memory is kept for the next mask; few grammars need more.
constexpr size_t kStatesKept = 1024;

template <class T>
uint64_t hash_of(std::span<const T> values, uint64_t seed) {
  return XXH3_64bits_withSeed(values.data(), values.size_bytes(), seed);
}

template <class Body>
void for_each_byte(const std::bitset<256>& bytes, const Body& body) {
  for (size_t b = bytes._Find_first(); b < 256; b = bytes._Find_next(b)) body(b);
}

}  // namespace

void HashIndex::clear() {
  hashes_.clear();
  slots_.assign(kSlotsMin, kNone);
}

void HashIndex::put(uint64_t hash, int32_t number) {
  size_t slot = hash & (slots_.size() - 1);
  while (slots_[slot] >= 0) slot = (slot + 1) & (slots_.size() - 1);
  slots_[slot] = number;
}

int32_t HashIndex::add(uint64_t hash) {
  auto number = static_cast<int32_t>(hashes_.size());
  hashes_.push_back(hash);
  if (2 * hashes_.size() <= slots_.size()) {
    put(hash, number);
    return number;
  }
  slots_.assign(slots_.size() * 2, kNone);
  for (int32_t i = 0; i <= number; ++i) put(hashes_[i], i);
  return number;
}

void TokenWalk::begin(Parser& parser) {
  parser_ = &parser;
  if (states_.size() > kStatesKept) {
    states_ = {};
    next_ = {};
  }
  if (ends_.size() > kStatesKept) ends_.clear();
  end_index_.clear();
  ends_used_ = 0;
  work_ = 0;
}

void TokenWalk::start() {
  state_index_.clear();
  states_used_ = 0;
}

int32_t TokenWalk::end_of(uint32_t next, StackId stack) {
  uint64_t key = uint64_t{next} << 32 | stack;
  uint64_t hash = XXH3_64bits(&key, sizeof key);
  int32_t known = end_index_.find(
      hash, [&](int32_t i) { return ends_[i]->next == next && ends_[i]->stack == stack; });
  if (known != HashIndex::kNone) return ends_[known]->dead ? kNowhere : known;
  if (work_ > kWorkMax) return kNowhere;  // a single step may create many states
  int32_t number = end_index_.add(hash);
  if (ends_used_ == ends_.size()) ends_.push_back(std::make_unique<End>());
  End& end = *ends_[ends_used_++];
  ParseState state = parser_->after(next, stack);
  end.next = next;
  end.stack = stack;
  end.dead = state.dead();
  assign(end.places, state.configurations);
  work_ += end.places.all.size() + 1;
  return end.dead ? kNowhere : number;
}

int32_t TokenWalk::add(std::span<const Configuration> places, std::span<const int32_t> ends) {
  uint64_t hash = hash_of(ends, hash_of(places, 0));
  int32_t known = state_index_.find(hash, [&](int32_t i) {
    const State& other = states_[i];
    return std::ranges::equal(other.places.all, places) && std::ranges::equal(other.ends, ends);
  });
  if (known != HashIndex::kNone) return known;
  int32_t number = state_index_.add(hash);
  if (states_used_ == states_.size()) {
    states_.emplace_back();
    next_.resize(states_.size() * 256);
  }
  State& state = states_[states_used_++];
  assign(state.places, places);
  state.ends.assign(ends.begin(), ends.end());
  std::bitset<256> bytes = state.places.bytes;
  for (int32_t end : ends) bytes |= this->bytes(end);
  int32_t* next = next_.data() + int64_t{number} * 256;
  std::fill_n(next, 256, kNowhere);
  for_each_byte(bytes, [&](size_t b) { next[b] = kUnknown; });
  return number;
}

void TokenWalk::assign(Places& places, std::span<const Configuration> from) const {
  places.all.assign(from.begin(), from.end());
  places.only.clear();
  places.texts.reset();
  places.bytes.reset();
  for (const Configuration& c : from) {
    const Terminal& t = parser_->automaton().terminal_of(parser_->automaton().node(c.node));
    if (t.dfa) {
      places.only.push_back(Places::kMany);
      parser_->add_next_bytes(c, places.bytes);
    } else {
      auto byte = static_cast<uint8_t>(t.text[c.place]);
      places.only.push_back(byte);
      places.texts.set(byte);
    }
  }
  places.bytes |= places.texts;
}

// Keeps in `alike` only the bytes that move `places` the same way as `byte`.
void TokenWalk::move(const Places& places, uint8_t byte, std::bitset<256>& alike) {
  if (!places.bytes.test(byte)) {
    alike &= ~places.bytes;
    return;
  }
  work_ += places.all.size();
  if (places.texts.test(byte)) {
    alike.reset();
    alike.set(byte);
  } else {
    alike &= ~places.texts;
  }
  for (size_t i = 0; i < places.all.size(); ++i) {
    if (places.only[i] == byte) {
      move(places.all[i], byte);
    } else if (places.only[i] == Places::kMany) {
      const Configuration& c = places.all[i];
      const Dfa& dfa = *parser_->automaton().terminal_of(parser_->automaton().node(c.node)).dfa;
      alike &= dfa.bytes_of_class(dfa.class_of(byte));
      move(c, byte);
    }
  }
}

void TokenWalk::move(Configuration c, uint8_t byte) {
  uint32_t next = parser_->automaton().node(c.node).next;
  bool ends = false, stays = false;
  if (!parser_->advance(c, byte, ends, stays)) return;
  if (stays) places_made_.push_back(c);
  if (!ends) return;
  int32_t end = end_of(next, c.stack);
  if (end != kNowhere) ends_made_.push_back(end);
}

int32_t TokenWalk::step(int32_t from, uint8_t byte) {
  if (work_ > kWorkMax) return kNowhere;
  places_made_.clear();
  ends_made_.clear();
  std::bitset<256> alike;
  alike.set();
  const State& state = states_[from];
  move(state.places, byte, alike);
  for (int32_t end : state.ends) move(ends_[end]->places, byte, alike);
  parser_->unite_alike(places_made_);
  std::sort(ends_made_.begin(), ends_made_.end());
  ends_made_.erase(std::unique(ends_made_.begin(), ends_made_.end()), ends_made_.end());
  work_ += places_made_.size() + ends_made_.size();
  bool alive = !places_made_.empty() || !ends_made_.empty();
  int32_t to = alive ? add(places_made_, ends_made_) : kNowhere;
  int32_t* next = next_.data() + int64_t{from} * 256;
  for_each_byte(alike, [&](size_t b) { next[b] = to; });
  return to;
}

}  // namespace banyan
