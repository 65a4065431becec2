#include "grammar/regex/rules.h"

#include <algorithm>
#include <map>

#include "grammar/regex/nfa.h"

namespace banyan {
namespace {

constexpr size_t kSmallNodes = 20'000;    // largest NFA for which a DFA is attempted
constexpr size_t kSmallStates = 4096;     // largest DFA that is kept
constexpr double kNestedCountsMax = 1e5;  // product of the bounds of nested counters
constexpr uint32_t kWrittenOutMax = 64;   // repetitions up to this count are expanded

class Decomposer {
 public:
  Decomposer(Rules& rules, const Regex& regex, Budget& budget)
      : rules_(rules), regex_(regex), budget_(budget) {}

  bool has_anchor(uint32_t root) const {
    const Regex::Node& n = regex_.nodes[root];
    bool anchor = n.kind == Regex::Kind::kBegin || n.kind == Regex::Kind::kEnd;
    return anchor || std::any_of(n.children.begin(), n.children.end(),
                                 [this](uint32_t child) { return has_anchor(child); });
  }

  // Number of NFA nodes of the part with its repetitions expanded.
  double size(uint32_t root) const {
    const Regex::Node& n = regex_.nodes[root];
    double total = n.kind == Regex::Kind::kSet ? 2.0 * regex_.sets[n.set].ranges().size() : 1;
    for (uint32_t child : n.children) total += size(child);
    if (n.kind != Regex::Kind::kRepeat) return total;
    return total * std::max({n.min, n.max, 1});
  }

  Result<ExpressionId> part(uint32_t root) {
    TRY(budget_.spend("taking a pattern apart", 64));
    const Regex::Node& n = regex_.nodes[root];
    if (n.kind == Regex::Kind::kEmpty) return rules_.empty();
    if (n.kind == Regex::Kind::kSet || size(root) < kSmallNodes) {
      Budget small = budget_.with_states_max(kSmallStates);
      auto dfa = compile_regex_part(regex_, root, CharacterCoding::kUtf8, small);
      if (dfa) return rules_.dfa(*std::move(dfa));
      if (n.kind == Regex::Kind::kSet) return std::unexpected(dfa.error());
    }
    if (n.kind == Regex::Kind::kRepeat) return repeat(n);
    std::vector<ExpressionId> parts;
    for (uint32_t child : n.children) parts.push_back(TRY(part(child)));
    return n.kind == Regex::Kind::kAlternation ? rules_.choice(parts) : rules_.sequence(parts);
  }

 private:
  // The largest product of the bounds of nested repetitions that are not expanded.
  double counts(uint32_t root) const {
    const Regex::Node& n = regex_.nodes[root];
    double most = 1;
    for (uint32_t child : n.children) most = std::max(most, counts(child));
    int bound = std::max(n.min, n.max);
    bool counter = n.kind == Regex::Kind::kRepeat && bound > static_cast<int>(kWrittenOutMax);
    return counter ? most * bound : most;
  }

  Result<ExpressionId> repeat(const Regex::Node& n) {
    double nested = 1;
    for (uint32_t child : n.children) nested = std::max(nested, counts(child));
    if (nested > 1 && nested * std::max(n.min, n.max) > kNestedCountsMax) {
      return exhausted(
          "the pattern's repetitions within repetitions are too large: more than {:.0f} "
          "times in all",
          kNestedCountsMax);
    }
    uint32_t min = static_cast<uint32_t>(n.min);
    uint32_t max = n.max == Regex::kUnbounded ? Rules::kUnbounded : static_cast<uint32_t>(n.max);
    const Regex::Node& child = regex_.nodes[n.children[0]];
    if (child.kind != Regex::Kind::kSet) {
      return rules_.repeat(TRY(part(n.children[0])), min, max);
    }
    Nfa nfa(CharacterCoding::kUtf8, budget_);
    Dfa star = TRY(nfa.determinize(nfa.star(regex_.sets[child.set], nfa.accept())));
    Dfa marked = TRY(mark_character_ends(star, star, budget_));
    return rules_.counted(std::make_shared<const Dfa>(std::move(marked)), min, max);
  }

  Rules& rules_;
  const Regex& regex_;
  Budget& budget_;
};

class Compactor {
 public:
  Compactor(const Rules& from, Budget& budget)
      : from_(from), budget_(budget), state_(from.rules(), kUnknown) {}

  Result<Rules> run() {
    for (RuleId rule = 0; rule < from_.rules(); ++rule) to_.add_rule(from_.name(rule));
    to_.root = from_.root;
    to_.notes = from_.notes;
    for (RuleId rule = 0; rule < from_.rules(); ++rule) {
      to_.set_body(rule, TRY(copy(from_.body(rule), 0)));
    }
    return std::move(to_);
  }

 private:
  enum State : uint8_t { kUnknown, kLooking, kRegular, kNot };

  // Whether the expression is regular and small. Follows calls; counted repetitions are not
  // regular.
  bool regular(ExpressionId id, int depth) {
    const Rules::Expression& e = from_[id];
    if (depth > budget_.limits().depth_max || e.counts_characters) return false;
    if (e.kind == Rules::Kind::kCall) {
      State& state = state_[e.rule];
      if (state == kUnknown) {
        state = kLooking;
        bool yes = regular(from_.body(e.rule), depth + 1);
        state_[e.rule] = yes ? kRegular : kNot;
      }
      return state_[e.rule] == kRegular;
    }
    if (e.kind == Rules::Kind::kRepeat) {
      bool large = e.min > kWrittenOutMax || (e.max != Rules::kUnbounded && e.max > kWrittenOutMax);
      if (large) return false;
    }
    return std::all_of(e.children.begin(), e.children.end(),
                       [&](ExpressionId child) { return regular(child, depth + 1); });
  }

  Result<uint32_t> build(Nfa& nfa, ExpressionId id, uint32_t next) {
    const Rules::Expression& e = from_[id];
    TRY(Budget::fits("a part of the grammar (nodes)", nfa.size(), kSmallNodes));
    TRY(budget_.spend("making a grammar compact", 16));
    switch (e.kind) {
      case Rules::Kind::kEmpty:
        return next;
      case Rules::Kind::kNever:
        return nfa.characters(CodepointSet(), next);
      case Rules::Kind::kText:
        return nfa.text(e.text, next);
      case Rules::Kind::kDfa:
        return nfa.dfa(*e.dfa, next);
      case Rules::Kind::kCall:
        return build(nfa, from_.body(e.rule), next);
      case Rules::Kind::kSequence:
        for (size_t i = e.children.size(); i-- > 0;) {
          next = TRY(build(nfa, e.children[i], next));
        }
        return next;
      case Rules::Kind::kChoice: {
        uint32_t ways = TRY(build(nfa, e.children.back(), next));
        for (size_t i = e.children.size() - 1; i-- > 0;) {
          ways = nfa.split(TRY(build(nfa, e.children[i], next)), ways);
        }
        return ways;
      }
      case Rules::Kind::kRepeat:
        return build_repeat(nfa, e, next);
    }
    return next;
  }

  Result<uint32_t> build_repeat(Nfa& nfa, const Rules::Expression& e, uint32_t next) {
    uint32_t end = next;
    if (e.max == Rules::kUnbounded) {
      uint32_t loop = nfa.open_loop(next);
      nfa.close_loop(loop, TRY(build(nfa, e.children[0], loop)));
      next = loop;
    } else {
      for (uint32_t i = e.min; i < e.max; ++i) {
        next = nfa.split(TRY(build(nfa, e.children[0], next)), end);
      }
    }
    for (uint32_t i = 0; i < e.min; ++i) next = TRY(build(nfa, e.children[0], next));
    return next;
  }

  Result<ExpressionId> copy(ExpressionId id, int depth) {
    if (auto it = copied_.find(id); it != copied_.end()) return it->second;
    TRY(budget_.spend("making a grammar compact", 64));
    ExpressionId made = TRY(copy_new(id, depth));
    copied_.emplace(id, made);
    return made;
  }

  Result<ExpressionId> copy_new(ExpressionId id, int depth) {
    const Rules::Expression& e = from_[id];
    bool atom = e.kind == Rules::Kind::kText || e.kind == Rules::Kind::kDfa;
    if (!atom && regular(id, depth)) {
      Budget small = budget_.with_states_max(kSmallStates);
      Nfa nfa(CharacterCoding::kUtf8, small);
      auto start = build(nfa, id, nfa.accept());
      if (start) {
        auto dfa = nfa.determinize(*start);
        if (dfa) return to_.dfa(*std::move(dfa));
      }
    }
    std::vector<ExpressionId> children;
    for (ExpressionId child : e.children) children.push_back(TRY(copy(child, depth + 1)));
    switch (e.kind) {
      case Rules::Kind::kEmpty:
        return to_.empty();
      case Rules::Kind::kNever:
        return to_.never();
      case Rules::Kind::kText:
        return to_.text(e.text);
      case Rules::Kind::kDfa:
        return e.counts_characters ? to_.counted(e.dfa, e.min, e.max) : to_.dfa(e.dfa);
      case Rules::Kind::kSequence:
        return to_.sequence(children);
      case Rules::Kind::kChoice:
        return to_.choice(children);
      case Rules::Kind::kRepeat:
        return to_.repeat(children[0], e.min, e.max);
      case Rules::Kind::kCall:
        return to_.call(e.rule);
    }
    return to_.never();
  }

  const Rules& from_;
  Budget& budget_;
  Rules to_;
  std::vector<State> state_;
  std::map<ExpressionId, ExpressionId> copied_;
};

}  // namespace

Result<ExpressionId> add_regex(Rules& rules, const Regex& regex, Budget& budget) {
  Decomposer decomposer(rules, regex, budget);
  bool anchored = decomposer.has_anchor(regex.root);
  if (anchored || decomposer.size(regex.root) < kSmallNodes) {
    Budget small = budget.with_states_max(kSmallStates);
    auto dfa =
        compile_regex(regex, RegexMatch::kFull, CharacterCoding::kUtf8, anchored ? budget : small);
    if (dfa) return rules.dfa(*std::move(dfa));
    if (anchored) return std::unexpected(dfa.error());
  }
  return decomposer.part(regex.root);
}

Result<Rules> compact(const Rules& rules, Budget& budget) {
  return Compactor(rules, budget).run();
}

}  // namespace banyan
