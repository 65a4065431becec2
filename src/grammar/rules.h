// The intermediate form between source languages (regexes, schemas, EBNF) and the automaton: rules
// of expressions over bytes. A bounded repetition stays a counter, so its cost does not depend on
// the bounds.
//
// Expressions are shared: one id may be used in many places. Thread-compatible, like a vector.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "banyan/status.h"
#include "grammar/budget.h"
#include "grammar/regex/dfa.h"

namespace banyan {

using ExpressionId = uint32_t;
using RuleId = uint32_t;

class Rules {
 public:
  static constexpr uint32_t kUnbounded = UINT32_MAX;

  enum class Kind : uint8_t { kEmpty, kNever, kText, kDfa, kSequence, kChoice, kRepeat, kCall };
  struct Expression {
    Kind kind = Kind::kEmpty;
    std::string text;                // kText, not empty
    std::shared_ptr<const Dfa> dfa;  // kDfa
    bool counts_characters = false;  // kDfa: min and max bound the number of characters
    uint32_t min = 0, max = kUnbounded;
    uint32_t rule = 0;                   // kCall
    std::vector<ExpressionId> children;  // made before their parent
  };

  Rules();

  ExpressionId empty() const { return 0; }
  ExpressionId never() const { return 1; }
  ExpressionId text(std::string_view bytes);
  ExpressionId dfa(Dfa dfa);
  ExpressionId dfa(std::shared_ptr<const Dfa> dfa);
  // Strings of min to max characters accepted by a Dfa with kCharacterEnd.
  ExpressionId counted(std::shared_ptr<const Dfa> dfa, uint32_t min, uint32_t max);
  ExpressionId sequence(const std::vector<ExpressionId>& parts);
  ExpressionId choice(const std::vector<ExpressionId>& ways);
  ExpressionId optional(ExpressionId part) { return choice({part, empty()}); }
  ExpressionId repeat(ExpressionId part, uint32_t min, uint32_t max);

  // Adds a rule without a body yet, so that rules may call each other.
  RuleId add_rule(std::string name);
  void set_body(RuleId rule, ExpressionId body) { rules_[rule].body = body; }
  ExpressionId body(RuleId rule) const { return rules_[rule].body; }
  ExpressionId call(RuleId rule);

  const Expression& operator[](ExpressionId id) const { return expressions_[id]; }
  size_t size() const { return expressions_.size(); }
  size_t rules() const { return rules_.size(); }
  const std::string& name(RuleId rule) const { return rules_[rule].name; }

  // Turns direct left recursion (`sum ::= sum "+" term | term`) into repetition. Indirect left
  // recursion stays; the automaton rejects it with the rule's name.
  void unroll_left_recursion();

  // Copies all of `other`; returns a call of its root.
  ExpressionId import(const Rules& other);

  RuleId root = 0;                 // the rule to match
  std::vector<std::string> notes;  // constraints that were relaxed

 private:
  struct Rule {
    std::string name;
    ExpressionId body = 1;
  };
  ExpressionId add(Expression e) {
    expressions_.push_back(std::move(e));
    return static_cast<ExpressionId>(expressions_.size() - 1);
  }

  std::vector<Expression> expressions_;
  std::vector<Rule> rules_;
};

}  // namespace banyan
