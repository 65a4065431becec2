// Minimal deterministic automata over bytes.
//
// Invariants: state 0 is dead and the only state that cannot reach an accepting one; all other
// states are reachable from the start. States are numbered in breadth-first order of byte classes.
// Automata of the same language are therefore equal member by member and have equal hashes.
// Immutable after make(); const use is thread-safe.
#pragma once

#include <array>
#include <bitset>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "banyan/status.h"
#include "grammar/budget.h"

namespace banyan {

// Labels of a state. kCharacterEnd, if used, marks states between characters: one has just ended or
// none has begun.
enum : uint8_t { kAccepts = 1, kCharacterEnd = 2 };

// A complete automaton as built: any numbering, possibly with dead and equivalent states.
struct DfaTable {
  std::array<uint8_t, 256> class_of{};  // bytes of one class behave the same in every state
  uint32_t classes = 1;
  std::vector<uint32_t> next;      // [states, classes]; state 0 is dead
  std::vector<uint8_t> accepting;  // kAccepts, kCharacterEnd; only states with equal labels merge
  uint32_t start = 0;

  uint32_t states() const { return static_cast<uint32_t>(accepting.size()); }
};

class Dfa {
 public:
  static constexpr uint32_t kDead = 0;
  static constexpr int kNoByte = -1;     // nothing may follow
  static constexpr int kManyBytes = -2;  // more than one byte may follow

  Dfa();  // accepts nothing
  // Minimizes `table`. Time: states x classes x log(states). Memory: a few copies of the table.
  static Result<Dfa> make(DfaTable table, Budget& budget);
  static Dfa of_bytes(const std::array<bool, 256>& bytes);  // accepts single bytes

  uint32_t start() const { return table_.start; }
  uint32_t states() const { return table_.states(); }  // including the dead state
  uint32_t classes() const { return table_.classes; }
  uint8_t class_of(uint8_t byte) const { return table_.class_of[byte]; }
  uint32_t step(uint32_t state, uint8_t byte) const {
    return table_.next[state * table_.classes + table_.class_of[byte]];
  }
  uint32_t step_class(uint32_t state, uint32_t byte_class) const {
    return table_.next[state * table_.classes + byte_class];
  }
  const std::bitset<256>& bytes_of_class(uint32_t byte_class) const {
    return class_bytes_[byte_class];
  }
  bool accepting(uint32_t state) const { return (table_.accepting[state] & kAccepts) != 0; }
  bool character_end(uint32_t state) const {
    return (table_.accepting[state] & kCharacterEnd) != 0;
  }
  // The one byte that may follow in `state`, kNoByte or kManyBytes.
  int only_byte(uint32_t state) const { return only_byte_[state]; }

  bool empty() const { return table_.start == kDead; }
  bool matches(std::string_view text) const;
  uint64_t hash() const { return hash_; }
  size_t bytes() const {
    return table_.next.size() * 4 + table_.accepting.size() * 5 + class_bytes_.size() * 32 +
           sizeof *this;
  }
  bool operator==(const Dfa& other) const {
    return table_.class_of == other.table_.class_of && table_.next == other.table_.next &&
           table_.accepting == other.table_.accepting && table_.start == other.table_.start;
  }

 private:
  DfaTable table_;
  std::vector<int16_t> only_byte_;
  std::vector<std::bitset<256>> class_bytes_;  // by class
  uint64_t hash_ = 0;
};

enum class DfaOperation : uint8_t { kIntersection, kUnion, kDifference };

// Fails when the product has more states than the budget allows.
Result<Dfa> combine(const Dfa& a, const Dfa& b, DfaOperation operation, Budget& budget);

// `dfa` with kCharacterEnd set. Its strings are sequences of characters in the encoding of
// `characters`, a Dfa that accepts any number of them and whose accepting states are character
// ends.
Result<Dfa> mark_character_ends(const Dfa& dfa, const Dfa& characters, Budget& budget);

// Accepts exactly `texts`, in any order and with duplicates allowed. Time is their total length.
// Memory is bounded by the budget's states and transitions, however long the strings are.
Result<Dfa> dfa_of_texts(std::vector<std::string> texts, Budget& budget);

// One of the shortest accepted strings. Requires a non-empty language.
std::string shortest_text(const Dfa& dfa);

}  // namespace banyan
