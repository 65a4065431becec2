#include "grammar/automaton.h"

#include <algorithm>
#include <atomic>
#include <unordered_map>

#include "base/check.h"
#include "base/quote.h"

namespace banyan {

namespace {

// Charges one pass over the DFA. Each function below may make as many passes as the DFA has states.
Status spend_pass(const Dfa& dfa, Budget& budget) {
  return budget.spend("counting the characters of a pattern", size_t{dfa.states()} * dfa.classes());
}

Result<std::vector<uint32_t>> shortest_of(const Dfa& dfa, Budget& budget) {
  std::vector<uint32_t> shortest(dfa.states(), UINT32_MAX);
  for (uint32_t s = 1; s < dfa.states(); ++s) {
    if (dfa.accepting(s)) shortest[s] = 0;
  }
  bool changed = true;
  while (changed) {
    changed = false;
    TRY(spend_pass(dfa, budget));
    for (uint32_t s = dfa.states(); s-- > 1;) {
      for (uint32_t c = 0; c < dfa.classes(); ++c) {
        uint32_t to = dfa.step_class(s, c);
        if (to == 0 || shortest[to] == UINT32_MAX) continue;
        uint32_t length = shortest[to] + (dfa.character_end(to) ? 1 : 0);
        if (length >= shortest[s]) continue;
        shortest[s] = length;
        changed = true;
      }
    }
  }
  return shortest;
}

// A value that exceeds the number of states must lie on a cycle.
Result<std::vector<uint32_t>> longest_of(const Dfa& dfa, Budget& budget) {
  uint32_t n = dfa.states();
  std::vector<uint32_t> longest(n, 0);
  bool changed = true;
  while (changed) {
    changed = false;
    TRY(spend_pass(dfa, budget));
    for (uint32_t s = n; s-- > 1;) {
      for (uint32_t c = 0; c < dfa.classes(); ++c) {
        uint32_t to = dfa.step_class(s, c);
        if (to == 0) continue;
        uint32_t length = longest[to];
        if (length != UINT32_MAX) length += dfa.character_end(to) ? 1 : 0;
        if (length <= longest[s]) continue;
        longest[s] = length > n ? UINT32_MAX : length;
        changed = true;
      }
    }
  }
  return longest;
}

}  // namespace

Result<CharacterCounts> CharacterCounts::of(const Dfa& dfa, Budget& budget) {
  CharacterCounts counts{.shortest = TRY(shortest_of(dfa, budget)),
                         .longest = TRY(longest_of(dfa, budget))};
  TRY(spend_pass(dfa, budget));
  for (uint32_t s = 1; s < dfa.states(); ++s) {
    counts.shortest_max = std::max(counts.shortest_max, counts.shortest[s]);
    counts.endless_everywhere &= counts.longest[s] == UINT32_MAX;
    std::vector<std::pair<uint32_t, uint32_t>> spans;
    if (dfa.accepting(s)) spans.emplace_back(0, 0);
    for (uint32_t c = 0; c < dfa.classes(); ++c) {
      uint32_t to = dfa.step_class(s, c);
      if (to == 0) continue;
      uint32_t more = dfa.character_end(to) ? 1 : 0, longest = counts.longest[to];
      spans.emplace_back(counts.shortest[to] + more,
                         longest == UINT32_MAX ? longest : longest + more);
    }
    std::sort(spans.begin(), spans.end());
    uint32_t end = spans[0].second;
    for (auto [first, last] : spans) {
      if (end != UINT32_MAX && first > end + 1) counts.no_gaps = false;
      end = std::max(end, last);
    }
  }
  return counts;
}

class AutomatonBuilder {
 public:
  AutomatonBuilder(Automaton& out, Budget& budget)
      : out_(out), rules_(out.rules_), budget_(budget) {}

  Status run() {
    out_.nodes_.push_back({});  // kReturnNode
    for (RuleId rule = 0; rule < rules_.rules(); ++rule) {
      out_.routines_.push_back({.name = rules_.name(rule)});
    }
    for (RuleId rule = 0; rule < rules_.rules(); ++rule) {
      uint32_t entry = TRY(build(rules_.body(rule), Automaton::kReturnNode));
      out_.routines_[rule].entry = entry;
    }
    TRY(find_nullable());
    TRY(rank());
    return drop_endless();
  }

 private:
  uint32_t add(AutomatonNode node) {
    out_.nodes_.push_back(node);
    return static_cast<uint32_t>(out_.nodes_.size() - 1);
  }

  uint32_t add_terminal(Terminal terminal, uint32_t next) {
    out_.terminals_.push_back(std::move(terminal));
    auto index = static_cast<uint32_t>(out_.terminals_.size() - 1);
    return add({NodeKind::kTerminal, next, index});
  }

  // The node that matches `id` and continues at `next`. Results are memoized by this pair, so a
  // shared expression is built once.
  Result<uint32_t> build(ExpressionId id, uint32_t next) {
    uint64_t key = uint64_t{id} << 32 | next;
    if (auto it = built_.find(key); it != built_.end()) return it->second;
    TRY(Budget::fits("the grammar (nodes)", out_.nodes_.size(), budget_.limits().nodes_max));
    TRY(budget_.spend("building the automaton"));
    uint32_t node = TRY(build_new(id, next));
    built_.emplace(key, node);
    return node;
  }

  Result<uint32_t> build_new(ExpressionId id, uint32_t next) {
    const Rules::Expression& e = rules_[id];
    switch (e.kind) {
      case Rules::Kind::kEmpty:
        return next;
      case Rules::Kind::kNever:
        return add_never();
      case Rules::Kind::kText:
        return build_text(e.text, next);
      case Rules::Kind::kDfa:
        return build_dfa(e, next);
      case Rules::Kind::kSequence:
        for (size_t i = e.children.size(); i-- > 0;) next = TRY(build(e.children[i], next));
        return next;
      case Rules::Kind::kChoice: {
        uint32_t ways = TRY(build(e.children.back(), next));
        for (size_t i = e.children.size() - 1; i-- > 0;) {
          uint32_t way = TRY(build(e.children[i], next));
          ways = add({NodeKind::kSplit, way, ways});
        }
        return ways;
      }
      case Rules::Kind::kRepeat:
        return build_repeat(e, next);
      case Rules::Kind::kCall:
        return add({NodeKind::kCall, next, e.rule});
    }
    return next;
  }

  // A loop that makes no progress: a node that is its own successor.
  uint32_t add_never() {
    auto self = static_cast<uint32_t>(out_.nodes_.size());
    return add({NodeKind::kSplit, self, self});
  }

  // Merges with the text that follows, so a forced stretch becomes a single terminal.
  uint32_t build_text(const std::string& text, uint32_t next) {
    AutomatonNode after = out_.nodes_[next];
    if (after.kind == NodeKind::kTerminal) {
      const std::string& tail = out_.terminals_[after.index].text;
      if (!tail.empty() && text.size() + tail.size() <= kJoinedBytesMax) {
        return add_terminal({.text = text + tail}, after.next);
      }
    }
    return add_terminal({.text = text}, next);
  }

  Result<uint32_t> build_dfa(const Rules::Expression& e, uint32_t next) {
    Terminal terminal{.dfa = e.dfa, .counts_characters = e.counts_characters};
    std::shared_ptr<const DfaSlices>& slices = slices_[e.dfa.get()];
    if (!slices) slices = std::make_shared<DfaSlices>(TRY(DfaSlices::of(*e.dfa, budget_)));
    terminal.slices = slices;
    if (e.counts_characters) {
      terminal.min = e.min;
      terminal.max = e.max;
      terminal.counts = TRY(CharacterCounts::of(*e.dfa, budget_));
      if (!terminal.counts.no_gaps) {
        return exhausted("a pattern together with a length of {} to {} is too large", e.min, e.max);
      }
      uint32_t start = e.dfa->start();
      bool possible =
          terminal.counts.shortest[start] <= e.max && terminal.counts.longest[start] >= e.min;
      if (!possible) return add_never();
    }
    bool nullable = terminal.nullable();
    uint32_t node = add_terminal(std::move(terminal), next);
    return nullable ? add({NodeKind::kSplit, node, next}) : node;
  }

  Result<uint32_t> build_repeat(const Rules::Expression& e, uint32_t next) {
    ExpressionId part = e.children[0];
    bool small = e.max != Rules::kUnbounded ? e.max <= 1 : e.min <= 1;
    if (small) {
      if (e.max == 1) {
        uint32_t once = TRY(build(part, next));
        return e.min == 1 ? once : add({NodeKind::kSplit, once, next});
      }
      // A star is a cycle of nodes; a plus enters it through the body.
      uint32_t star = add({NodeKind::kSplit, 0, next});
      uint32_t body = TRY(build(part, star));
      out_.nodes_[star].next = body;
      return e.min == 0 ? star : body;
    }
    auto routine = static_cast<uint32_t>(out_.routines_.size());
    out_.routines_.push_back({.name = "a repetition"});
    uint32_t entry = TRY(build(part, Automaton::kReturnNode));
    out_.routines_[routine].entry = entry;
    out_.loops_.push_back({routine, e.min, e.max});
    return add({NodeKind::kLoop, next, static_cast<uint32_t>(out_.loops_.size() - 1)});
  }

  // Calls `visit(node)` for every node reachable from `entry` without reading a byte, given which
  // routines are nullable.
  template <class Visit>
  Status walk(uint32_t entry, Visit visit) {
    size_t visited = 0;
    seen_.resize(out_.nodes_.size(), 0);
    ++epoch_;
    std::vector<uint32_t> stack = {entry};
    auto push = [&](uint32_t node) {
      if (seen_[node] == epoch_) return;
      seen_[node] = epoch_;
      stack.push_back(node);
    };
    seen_[entry] = epoch_;
    while (!stack.empty()) {
      uint32_t i = stack.back();
      stack.pop_back();
      const AutomatonNode& n = out_.nodes_[i];
      visit(n);
      ++visited;
      bool passes = n.kind == NodeKind::kSplit ||
                    (n.kind == NodeKind::kCall && out_.routines_[n.index].nullable) ||
                    (n.kind == NodeKind::kLoop && out_.skippable(out_.loops_[n.index]));
      if (passes) push(n.next);
      if (n.kind == NodeKind::kSplit) push(n.index);
    }
    return budget_.spend("following the rules", visited);
  }

  Status find_nullable() {
    bool changed = true;
    while (changed) {
      changed = false;
      for (size_t r = out_.routines_.size(); r-- > 0;) {
        if (out_.routines_[r].nullable) continue;
        bool nullable = false;
        TRY(walk(out_.routines_[r].entry,
                 [&](const AutomatonNode& n) { nullable |= n.kind == NodeKind::kReturn; }));
        if (!nullable) continue;
        out_.routines_[r].nullable = true;
        changed = true;
      }
      TRY(budget_.spend("looking for empty rules", out_.routines_.size() * 8));
    }
    return {};
  }

  // Orders routines so that a caller that has read nothing comes before its callees.
  Status rank() {
    size_t count = out_.routines_.size();
    std::vector<std::vector<uint32_t>> calls(count);
    std::vector<uint32_t> callers(count, 0);
    for (size_t r = 0; r < count; ++r) {
      TRY(walk(out_.routines_[r].entry, [&](const AutomatonNode& n) {
        if (n.kind == NodeKind::kCall) calls[r].push_back(n.index);
        if (n.kind == NodeKind::kLoop) calls[r].push_back(out_.loops_[n.index].routine);
      }));
      TRY(budget_.spend("ordering the rules", calls[r].size() + 1));
      for (uint32_t callee : calls[r]) ++callers[callee];
    }
    std::vector<uint32_t> ready;
    for (uint32_t r = 0; r < count; ++r) {
      if (callers[r] == 0) ready.push_back(r);
    }
    uint32_t rank = 0;
    while (!ready.empty()) {
      uint32_t r = ready.back();
      ready.pop_back();
      out_.routines_[r].rank = rank++;
      for (uint32_t callee : calls[r]) {
        if (--callers[callee] == 0) ready.push_back(callee);
      }
    }
    for (uint32_t r = 0; r < count; ++r) {
      if (callers[r] == 0) continue;
      return unsupported(
          "rule {} is left-recursive: it can call itself before it reads anything; move the call "
          "to the end of the rule, or use * or +",
          quote(out_.routines_[r].name));
    }
    return {};
  }

  // Removes branches that can never be completed, such as a rule that always calls itself again. No
  // prefix is then allowed that leads to a dead end.
  Status drop_endless() {
    std::vector<bool> node_ends(out_.nodes_.size(), false), routine_ends(out_.routines_.size());
    node_ends[Automaton::kReturnNode] = true;
    bool changed = true;
    while (changed) {
      changed = false;
      // Nodes are built back to front, so most successors have smaller numbers.
      for (size_t i = 1; i < out_.nodes_.size(); ++i) {
        if (node_ends[i]) continue;
        const AutomatonNode& n = out_.nodes_[i];
        bool ends = node_ends[n.next];
        if (n.kind == NodeKind::kSplit) ends = ends || node_ends[n.index];
        if (n.kind == NodeKind::kCall) ends = ends && routine_ends[n.index];
        if (n.kind == NodeKind::kLoop) {
          const Loop& loop = out_.loops_[n.index];
          ends = ends && (routine_ends[loop.routine] || loop.min == 0);
        }
        if (ends) node_ends[i] = changed = true;
      }
      for (size_t r = 0; r < routine_ends.size(); ++r) {
        if (routine_ends[r] || !node_ends[out_.routines_[r].entry]) continue;
        routine_ends[r] = changed = true;
      }
      TRY(budget_.spend("looking for endless rules", out_.nodes_.size()));
    }
    for (size_t i = 1; i < out_.nodes_.size(); ++i) {
      if (!node_ends[i]) {
        auto self = static_cast<uint32_t>(i);
        out_.nodes_[i] = {NodeKind::kSplit, self, self};
      } else if (out_.nodes_[i].kind == NodeKind::kLoop &&
                 !routine_ends[out_.loops_[out_.nodes_[i].index].routine]) {
        out_.nodes_[i] = {NodeKind::kSplit, out_.nodes_[i].next, out_.nodes_[i].next};
      }
    }
    return {};
  }

  static constexpr size_t kJoinedBytesMax = 256;

  Automaton& out_;
  const Rules& rules_;
  Budget& budget_;
  std::unordered_map<uint64_t, uint32_t> built_;
  std::unordered_map<const Dfa*, std::shared_ptr<const DfaSlices>> slices_;
  std::vector<uint32_t> seen_;
  uint32_t epoch_ = 0;
};

Result<std::shared_ptr<const Automaton>> Automaton::build(Rules rules, Budget& budget) {
  static std::atomic<uint64_t> last_id = 0;
  CHECK(rules.rules() > 0);
  auto automaton = std::make_shared<Automaton>();
  automaton->rules_ = std::move(rules);
  automaton->id_ = ++last_id;
  TRY(AutomatonBuilder(*automaton, budget).run());
  size_t bytes = sizeof(Automaton) + automaton->nodes_.size() * sizeof(AutomatonNode);
  for (const Terminal& t : automaton->terminals_) {
    bytes += sizeof t + t.text.size() + t.counts.shortest.size() * 8;
    if (t.dfa) bytes += t.dfa->bytes();
    if (t.slices) bytes += t.slices->by_state.size() * sizeof(DfaSlices::Slice);
  }
  for (ExpressionId i = 0; i < automaton->rules_.size(); ++i) {
    const Rules::Expression& e = automaton->rules_[i];
    bytes += sizeof e + e.text.capacity() + e.children.capacity() * sizeof(ExpressionId);
  }
  bytes += automaton->routines_.size() * (sizeof(Routine) + sizeof(std::string));
  automaton->bytes_ = bytes;
  return automaton;
}

}  // namespace banyan
