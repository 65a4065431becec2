// Runs an automaton over bytes, following all alternatives in parallel. A *state* is the set of
// configurations that the bytes so far have reached: (node, place in its terminal, count, stacks).
// Paths that meet in one place become one configuration with the union of their stacks, so states
// stay small even for ambiguous grammars.
//
// A Parser owns its working memory and the stacks that its states refer to: not thread-safe. States
// are plain values, valid with the parser that made them.
#pragma once

#include <bitset>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "grammar/automaton.h"
#include "grammar/run/stacks.h"

namespace banyan {

struct Configuration {
  uint32_t node = 0;
  uint32_t place = 0;  // bytes of the text read so far, or the DFA state
  uint32_t count = 0;  // characters read, in a terminal that counts them
  StackId stack = 0;

  bool operator==(const Configuration&) const = default;
  uint64_t key() const { return uint64_t{node} << 32 | place; }
};

// Sorted by (node, place, count), which are unique.
struct ParseState {
  std::vector<Configuration> configurations;
  bool complete = false;  // the text so far is in the language

  bool dead() const { return configurations.empty() && !complete; }
  bool operator==(const ParseState&) const = default;
};

class Parser {
 public:
  // Grammars that exceed this at one place are rejected (run/ways.h). If many places are reached at
  // once, the excess is dropped: the parser then rejects part of the language but accepts nothing
  // wrong.
  static constexpr size_t kConfigurationsMax = 4096;

  // Hashes ignore differences in counts that are more than `horizon` steps from a bound, since
  // these cannot change what may follow within `horizon` bytes.
  explicit Parser(std::shared_ptr<const Automaton> automaton, uint32_t horizon = 0);

  const Automaton& automaton() const { return *automaton_; }
  Stacks& stacks() { return stacks_; }

  ParseState start();
  // `to` must not alias `from`.
  void step(const ParseState& from, uint8_t byte, ParseState& to);
  // Returns false, with `state` unspecified, if no string of the language continues this way.
  bool run(ParseState& state, std::string_view bytes);

  // The state after a terminal has led to node `next`.
  ParseState after(uint32_t next, StackId stack);
  // Moves `c` over `byte` within its terminal. `ends`: the terminal may end after it. `stays`: it
  // may continue. False if it cannot move.
  bool advance(Configuration& c, uint8_t byte, bool& ends, bool& stays) const;
  // Sorts, and merges configurations in the same place by uniting their stacks.
  void unite_alike(std::vector<Configuration>& configurations);

  // The bytes for which step() may succeed; it fails for all others.
  void next_bytes(const ParseState& state, std::bitset<256>& bytes) const;
  void add_next_bytes(const Configuration& c, std::bitset<256>& bytes) const;
  // The byte that must follow, or Dfa::kNoByte. kManyBytes if there is a choice, which includes
  // ending the text.
  int only_byte(const ParseState& state) const;
  // Appends what must follow, at most `bytes_max` bytes, and moves `state` past it.
  void forced(ParseState& state, std::string& bytes, size_t bytes_max);

  // Equal for states of any parser of this automaton with this horizon after which the same bytes
  // may follow within the horizon.
  uint64_t hash(const ParseState& state) const;

 private:
  struct Item {
    uint32_t node;
    StackId stack;
  };

  void begin_closure();
  void complete_terminal(uint32_t next, StackId stack);
  void pop(StackId stack);
  void run_pops();
  void enter(uint32_t routine, StackId stack);
  StackId entry_stack(uint32_t routine);
  void run_entries();
  void expand(uint32_t entry, StackId stack);
  void enter_node(const AutomatonNode& n, uint32_t index, StackId stack);
  void emit(uint32_t node, StackId stack);
  void finish(ParseState& to);
  uint32_t clamp(uint32_t count, uint32_t min, uint32_t max) const;

  std::shared_ptr<const Automaton> automaton_;
  uint32_t horizon_;
  Stacks stacks_;

  // The closure in progress.
  std::vector<Item> work_;
  // Nodes reached by completions, with the first stack of each; further stacks are linked.
  std::vector<std::pair<uint32_t, StackId>> first_stack_;  // by node: epoch, stack
  std::vector<Item> more_stacks_;
  std::vector<std::pair<uint32_t, uint32_t>> pending_;  // heap of (rank, routine)
  // The stacks with which routines are entered: a linked list per routine.
  std::vector<uint32_t> entry_;
  std::vector<std::pair<StackId, uint32_t>> entries_;
  std::vector<StackId> uniting_;
  std::vector<uint32_t> entered_;     // by routine: epoch
  std::vector<uint32_t> seen_nodes_;  // by node: epoch of expand()
  std::vector<uint32_t> node_stack_;
  uint32_t epoch_ = 0, expand_epoch_ = 0;
  std::vector<Configuration> made_;
  bool complete_ = false;
};

}  // namespace banyan
