#include "grammar/run/ways.h"

#include <vector>

#include "grammar/run/parser.h"

namespace banyan {
namespace {

class WayCounter {
 public:
  explicit WayCounter(const Automaton& automaton)
      : automaton_(automaton), seen_(automaton.nodes(), 0), known_(automaton.nodes(), false) {}

  // Counts alternatives from `start`, unless a place that reaches it without reading was already
  // counted: its count includes this one.
  Status check(uint32_t start, Budget& budget) {
    if (known_[start]) return {};
    ++epoch_;
    size_t ways = 0, steps = 0;
    push(start);
    while (!stack_.empty() && ways <= Parser::kConfigurationsMax) {
      const AutomatonNode& n = automaton_.node(stack_.back());
      stack_.pop_back();
      ways += n.kind == NodeKind::kTerminal ? 1 : 0;
      push_next(n);
      ++steps;
    }
    TRY(budget.spend("the ways to go on", steps));
    return Budget::fits("the number of ways in which a text may go on at one place", ways,
                        Parser::kConfigurationsMax);
  }

 private:
  void push(uint32_t node) {
    if (seen_[node] == epoch_) return;
    seen_[node] = epoch_;
    known_[node] = true;
    stack_.push_back(node);
  }

  // Pushes the nodes that may follow without a byte in between.
  void push_next(const AutomatonNode& n) {
    switch (n.kind) {
      case NodeKind::kTerminal:
      case NodeKind::kReturn:
        break;
      case NodeKind::kSplit:
        push(n.next);
        push(n.index);
        break;
      case NodeKind::kCall:
        push(automaton_.routine(n.index).entry);
        if (automaton_.routine(n.index).nullable) push(n.next);
        break;
      case NodeKind::kLoop: {
        const Loop& loop = automaton_.loop(n.index);
        push(automaton_.routine(loop.routine).entry);
        if (automaton_.skippable(loop)) push(n.next);
        break;
      }
    }
  }

  const Automaton& automaton_;
  std::vector<uint32_t> seen_;  // by node: epoch
  std::vector<bool> known_;
  std::vector<uint32_t> stack_;
  uint32_t epoch_ = 0;
};

}  // namespace

Status check_ways(const Automaton& automaton, Budget& budget) {
  WayCounter counter(automaton);
  TRY(counter.check(automaton.routine(automaton.root()).entry, budget));
  for (uint32_t i = 0; i < automaton.nodes(); ++i) {
    const AutomatonNode& n = automaton.node(i);
    if (n.kind == NodeKind::kReturn || n.kind == NodeKind::kSplit) continue;
    TRY(counter.check(n.next, budget));
  }
  return {};
}

}  // namespace banyan
