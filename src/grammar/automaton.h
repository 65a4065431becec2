// The automaton that an output is matched against: terminals (byte strings and byte DFAs) joined by
// nodes, with a stack where rules call each other and counters where something is repeated.
//
// A *routine* is a rule or the body of a counted repetition. Its nodes end in kReturnNode. Calling
// one puts a frame on the stack; a call that is the last thing in its routine does not, so lists
// that are written by right recursion need no more stack than loops.
//
// Invariants: no terminal accepts the empty text on its own account (a nullable one has a way
// around it); no routine can reach itself without reading a byte. Immutable after build().
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "banyan/status.h"
#include "grammar/regex/dfa.h"
#include "grammar/rules.h"
#include "grammar/run/token_slices.h"

namespace banyan {

// Of a Dfa with kCharacterEnd, per state: the fewest and the most characters that can still come,
// the one that is being read included (UINT32_MAX: no bound).
struct CharacterCounts {
  std::vector<uint32_t> shortest, longest;
  // From every state all numbers from shortest to longest can come: then these two suffice to know
  // whether a text can still be completed within bounds.
  bool no_gaps = true;
  uint32_t shortest_max = 0;       // of all states
  bool endless_everywhere = true;  // no state has a longest

  static Result<CharacterCounts> of(const Dfa& dfa, Budget& budget);
};

struct Terminal {
  std::string text;  // or, when empty:
  std::shared_ptr<const Dfa> dfa;
  bool counts_characters = false;
  uint32_t min = 0, max = Rules::kUnbounded;
  CharacterCounts counts;                   // of a dfa that counts
  std::shared_ptr<const DfaSlices> slices;  // of a dfa

  bool nullable() const { return dfa && dfa->accepting(dfa->start()) && min == 0; }
  // Of one that counts, in state `place` after `count` characters: a text of a length within the
  // bounds can still come of it.
  bool within_bounds(uint32_t place, uint64_t count) const {
    return count + counts.shortest[place] <= max &&
           (counts.longest[place] == UINT32_MAX || count + counts.longest[place] >= min);
  }
};

enum class NodeKind : uint8_t { kReturn, kTerminal, kSplit, kCall, kLoop };

struct AutomatonNode {
  NodeKind kind = NodeKind::kReturn;
  uint32_t next = 0;
  uint32_t index =
      0;  // kTerminal, kLoop: into the tables; kCall: the routine; kSplit: the other way
};

struct Routine {
  std::string name;
  uint32_t entry = 0;
  bool nullable = false;
  uint32_t rank = 0;  // greater than that of every routine that can call it before reading
};

struct Loop {
  uint32_t routine = 0;  // the body
  uint32_t min = 0, max = Rules::kUnbounded;
};

class Automaton {
 public:
  static constexpr uint32_t kReturnNode = 0;

  // Matches the root rule. Fails on left recursion, and when the budget does not suffice.
  static Result<std::shared_ptr<const Automaton>> build(Rules rules, Budget& budget);

  const AutomatonNode& node(uint32_t i) const { return nodes_[i]; }
  const Terminal& terminal_of(const AutomatonNode& n) const { return terminals_[n.index]; }
  const Terminal& terminal(uint32_t i) const { return terminals_[i]; }
  const Loop& loop(uint32_t i) const { return loops_[i]; }
  const Routine& routine(uint32_t i) const { return routines_[i]; }
  // The loop may be passed without running its body.
  bool skippable(const Loop& loop) const {
    return loop.min == 0 || routines_[loop.routine].nullable;
  }
  uint32_t root() const { return rules_.root; }
  size_t routines() const { return routines_.size(); }
  size_t nodes() const { return nodes_.size(); }
  size_t terminals() const { return terminals_.size(); }
  const std::vector<std::string>& notes() const { return rules_.notes; }
  const Rules& rules() const { return rules_; }
  uint64_t id() const { return id_; }  // no two automata of a process share one
  size_t bytes() const { return bytes_; }

 private:
  friend class AutomatonBuilder;

  Rules rules_;
  std::vector<AutomatonNode> nodes_;
  std::vector<Terminal> terminals_;
  std::vector<Loop> loops_;
  std::vector<Routine> routines_;
  uint64_t id_ = 0;
  size_t bytes_ = 0;
};

}  // namespace banyan
