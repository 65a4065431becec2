#include "grammar/rules.h"

#include "base/check.h"

namespace banyan {

Rules::Rules() {
  add({.kind = Kind::kEmpty});
  add({.kind = Kind::kNever});
}

ExpressionId Rules::text(std::string_view bytes) {
  if (bytes.empty()) return empty();
  return add({.kind = Kind::kText, .text = std::string(bytes)});
}

ExpressionId Rules::dfa(Dfa dfa) {
  return this->dfa(std::make_shared<const Dfa>(std::move(dfa)));
}

ExpressionId Rules::dfa(std::shared_ptr<const Dfa> dfa) {
  if (dfa->empty()) return never();
  return add({.kind = Kind::kDfa, .dfa = std::move(dfa)});
}

ExpressionId Rules::counted(std::shared_ptr<const Dfa> dfa, uint32_t min, uint32_t max) {
  if (dfa->empty() || min > max) return never();
  if (max == 0) return dfa->accepting(dfa->start()) ? empty() : never();
  return add({.kind = Kind::kDfa,
              .dfa = std::move(dfa),
              .counts_characters = true,
              .min = min,
              .max = max});
}

ExpressionId Rules::sequence(const std::vector<ExpressionId>& parts) {
  std::vector<ExpressionId> flat;
  for (ExpressionId part : parts) {
    const Expression& e = expressions_[part];
    if (e.kind == Kind::kNever) return never();
    if (e.kind == Kind::kEmpty) continue;
    bool joins =
        e.kind == Kind::kText && !flat.empty() && expressions_[flat.back()].kind == Kind::kText;
    if (joins) {
      flat.back() = text(std::string(expressions_[flat.back()].text) + expressions_[part].text);
    } else {
      flat.push_back(part);
    }
  }
  if (flat.empty()) return empty();
  if (flat.size() == 1) return flat[0];
  return add({.kind = Kind::kSequence, .children = std::move(flat)});
}

ExpressionId Rules::choice(const std::vector<ExpressionId>& ways) {
  std::vector<ExpressionId> left;
  for (ExpressionId way : ways) {
    if (expressions_[way].kind == Kind::kNever) continue;
    bool repeated = false;
    for (size_t i = 0; i < left.size() && i < 8; ++i) repeated |= left[i] == way;
    if (!repeated) left.push_back(way);
  }
  if (left.empty()) return never();
  if (left.size() == 1) return left[0];
  return add({.kind = Kind::kChoice, .children = std::move(left)});
}

ExpressionId Rules::repeat(ExpressionId part, uint32_t min, uint32_t max) {
  CHECK(min <= max, "a repetition of {} to {}", min, max);
  if (max == 0 || expressions_[part].kind == Kind::kEmpty) return empty();
  if (expressions_[part].kind == Kind::kNever) return min == 0 ? empty() : never();
  if (min == 1 && max == 1) return part;
  return add({.kind = Kind::kRepeat, .min = min, .max = max, .children = {part}});
}

RuleId Rules::add_rule(std::string name) {
  rules_.push_back({.name = std::move(name)});
  return static_cast<RuleId>(rules_.size() - 1);
}

ExpressionId Rules::call(RuleId rule) {
  return add({.kind = Kind::kCall, .rule = rule});
}

ExpressionId Rules::import(const Rules& other) {
  auto expressions = static_cast<uint32_t>(expressions_.size());
  auto rules = static_cast<uint32_t>(rules_.size());
  for (Expression e : other.expressions_) {
    for (ExpressionId& child : e.children) child += expressions;
    e.rule += rules;
    add(std::move(e));
  }
  for (const Rule& rule : other.rules_) rules_.push_back({rule.name, rule.body + expressions});
  notes.insert(notes.end(), other.notes.begin(), other.notes.end());
  return call(rules + other.root);
}

void Rules::unroll_left_recursion() {
  for (RuleId rule = 0; rule < rules_.size(); ++rule) {
    auto is_self = [&](ExpressionId id) {
      return expressions_[id].kind == Kind::kCall && expressions_[id].rule == rule;
    };
    std::vector<ExpressionId> ways = {rules_[rule].body};
    if (expressions_[ways[0]].kind == Kind::kChoice) ways = expressions_[ways[0]].children;
    std::vector<ExpressionId> seeds, tails;
    for (ExpressionId way : ways) {
      const Expression& e = expressions_[way];
      if (is_self(way)) continue;  // `a ::= a` adds nothing
      if (e.kind == Kind::kSequence && is_self(e.children[0])) {
        tails.push_back(sequence({e.children.begin() + 1, e.children.end()}));
      } else {
        seeds.push_back(way);
      }
    }
    if (tails.empty() && seeds.size() == ways.size()) continue;
    rules_[rule].body = sequence({choice(seeds), repeat(choice(tails), 0, kUnbounded)});
  }
}

}  // namespace banyan
