// The automaton that an output is matched against: terminals (byte strings and byte DFAs) joined by
// nodes, with a stack for rule calls and counters for repetitions.
//
// A *routine* is a rule or the body of a counted repetition. Its nodes end in kReturnNode. Calling
// a routine pushes a frame, except in tail position, so right-recursive lists need no more stack
// than loops do.
//
// Invariants: no terminal accepts the empty string by itself (a nullable terminal has a bypass); no
// routine can reach itself without reading a byte. Immutable after build().
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

// For each state of a Dfa with kCharacterEnd: the fewest and the most characters that can still
// follow, including the one being read (UINT32_MAX: unbounded).
struct CharacterCounts {
  std::vector<uint32_t> shortest, longest;
  // Every count from shortest to longest is possible from every state. The two bounds then decide
  // whether a string can still be completed within limits.
  bool no_gaps = true;
  uint32_t shortest_max = 0;       // over all states
  bool endless_everywhere = true;  // no state has a finite longest

  static Result<CharacterCounts> of(const Dfa& dfa, Budget& budget);
};

struct Terminal {
  std::string text;  // if empty, see dfa:
  std::shared_ptr<const Dfa> dfa;
  bool counts_characters = false;
  uint32_t min = 0, max = Rules::kUnbounded;
  CharacterCounts counts;                   // kDfa with counted characters
  std::shared_ptr<const DfaSlices> slices;  // kDfa only

  bool nullable() const { return dfa && dfa->accepting(dfa->start()) && min == 0; }
  // For a terminal that counts: from state `place`, after `count` characters, a string within the
  // bounds is still possible.
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
      0;  // kTerminal, kLoop: table index; kCall: the routine; kSplit: the other branch
};

struct Routine {
  std::string name;
  uint32_t entry = 0;
  bool nullable = false;
  uint32_t rank = 0;  // greater than that of any routine that can call it before reading
};

struct Loop {
  uint32_t routine = 0;  // the body
  uint32_t min = 0, max = Rules::kUnbounded;
};

class Automaton {
 public:
  static constexpr uint32_t kReturnNode = 0;

  // Builds an automaton for the root rule. Fails on left recursion or an exhausted budget.
  static Result<std::shared_ptr<const Automaton>> build(Rules rules, Budget& budget);

  const AutomatonNode& node(uint32_t i) const { return nodes_[i]; }
  const Terminal& terminal_of(const AutomatonNode& n) const { return terminals_[n.index]; }
  const Terminal& terminal(uint32_t i) const { return terminals_[i]; }
  const Loop& loop(uint32_t i) const { return loops_[i]; }
  const Routine& routine(uint32_t i) const { return routines_[i]; }
  // The loop may be skipped without running its body.
  bool skippable(const Loop& loop) const {
    return loop.min == 0 || routines_[loop.routine].nullable;
  }
  uint32_t root() const { return rules_.root; }
  size_t routines() const { return routines_.size(); }
  size_t nodes() const { return nodes_.size(); }
  size_t terminals() const { return terminals_.size(); }
  const std::vector<std::string>& notes() const { return rules_.notes; }
  const Rules& rules() const { return rules_; }
  uint64_t id() const { return id_; }  // unique within the process
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
