// The interpreter's expressions.
#include <algorithm>

#include "base/check.h"
#include "jinja/interpreter.h"

namespace banyan::jinja {

Result<Value> Interpreter::evaluate(const Expr& expr, Scope& scope) {
  TRY(rt_.charge());
  if (expr.kind == ExprKind::kConstant) return expr.constant;
  if (expr.kind == ExprKind::kName) return evaluate_name(expr, scope);
  Nested nested(rt_);
  TRY(rt_.check_depth());
  return evaluate_node(expr, scope);
}

Result<Value> Interpreter::evaluate_node(const Expr& expr, Scope& scope) {
  switch (expr.kind) {
    case ExprKind::kTuple:
    case ExprKind::kList:
      return evaluate_items(expr, scope);
    case ExprKind::kDict:
      return evaluate_dict(expr, scope);
    case ExprKind::kCall:
      return evaluate_call(expr, scope, nullptr);
    case ExprKind::kFilter:
      return evaluate_filter(expr, TRY(evaluate(*expr.base, scope)), scope);
    case ExprKind::kTest:
      return evaluate_test(expr, scope);
    case ExprKind::kAttribute:
      return get_attribute(rt_, TRY(evaluate(*expr.base, scope)), expr.name);
    case ExprKind::kItem: {
      Value base = TRY(evaluate(*expr.base, scope));
      return get_item(rt_, base, TRY(evaluate(*expr.items[0], scope)));
    }
    case ExprKind::kSlice:
      return evaluate_slice(expr, scope);
    case ExprKind::kNot:
      return make_bool(!truth(TRY(evaluate(*expr.base, scope))));
    case ExprKind::kNegate:
      return negate(TRY(evaluate(*expr.base, scope)));
    case ExprKind::kPlus:
      return arithmetic(rt_, Arithmetic::kAdd, make_int(0), TRY(evaluate(*expr.base, scope)));
    case ExprKind::kArithmetic: {
      Value left = TRY(evaluate(*expr.items[0], scope));
      return arithmetic(rt_, expr.arithmetic, left, TRY(evaluate(*expr.items[1], scope)));
    }
    case ExprKind::kAnd:
    case ExprKind::kOr:
      return evaluate_logic(expr, scope);
    case ExprKind::kConcat:
      return evaluate_concat(expr, scope);
    case ExprKind::kCompare:
      return evaluate_compare(expr, scope);
    case ExprKind::kConditional:
      if (truth(TRY(evaluate(*expr.items[0], scope)))) return evaluate(*expr.items[1], scope);
      if (expr.items[2] != nullptr) return evaluate(*expr.items[2], scope);
      return make_undefined_message(
          rt_, "the inline if-expression evaluated to false and no else section was defined.");
    default:
      CHECK(false, "expression kind {} is not evaluated here", static_cast<int>(expr.kind));
  }
}

Result<Value> Interpreter::evaluate_name(const Expr& expr, const Scope& scope) {
  int64_t seen = 0;
  Value value = find(expr.symbol, scope, seen);
  TRY(rt_.charge(seen / 16));
  if (value.absent()) return make_undefined(rt_, expr.name);
  return value;
}

Result<Value> Interpreter::evaluate_items(const Expr& expr, Scope& scope) {
  std::vector<Value> items;
  items.reserve(expr.items.size());
  for (const Expr* item : expr.items) items.push_back(TRY(evaluate(*item, scope)));
  return make_list(rt_, items, expr.kind == ExprKind::kList ? Kind::kList : Kind::kTuple);
}

Result<Value> Interpreter::evaluate_dict(const Expr& expr, Scope& scope) {
  Dict* dict = make_dict(rt_);
  for (size_t i = 0; i < expr.items.size(); i += 2) {
    Value key = TRY(evaluate(*expr.items[i], scope));
    TRY(dict_set(rt_, *dict, key, TRY(evaluate(*expr.items[i + 1], scope))));
  }
  return dict_value(dict);
}

Result<Interpreter::Evaluated> Interpreter::evaluate_arguments(const Expr& expr, Scope& scope) {
  Evaluated result;
  result.positional.reserve(expr.items.size());
  for (const Expr* item : expr.items) result.positional.push_back(TRY(evaluate(*item, scope)));
  if (expr.star != nullptr) {
    auto more = TRY(iterate(rt_, TRY(evaluate(*expr.star, scope))));
    TRY(rt_.charge(std::ssize(more)));
    result.positional.insert(result.positional.end(), more.begin(), more.end());
  }
  for (const NamedExpr& keyword : expr.keywords) {
    result.keywords.push_back({keyword.name, TRY(evaluate(*keyword.value, scope))});
  }
  if (expr.double_star == nullptr) return result;
  Value mapping = TRY(evaluate(*expr.double_star, scope));
  if (!mapping.is(Kind::kDict)) {
    return invalid_argument("argument after ** must be a mapping, not {}", type_name(mapping));
  }
  TRY(rt_.charge(mapping.dict->size + 1));
  const size_t written = result.keywords.size();
  for (const Dict::Entry& entry : mapping.dict->all()) {
    if (!entry.key.is_string()) return invalid_argument("keywords must be strings");
    result.keywords.push_back({entry.key.text(), entry.value});
  }
  for (size_t i = 0; i < written; ++i) {
    if (TRY(dict_find(rt_, *mapping.dict, result.keywords[i].name)) == nullptr) continue;
    return invalid_argument("got multiple values for keyword argument '{}'",
                            result.keywords[i].name);
  }
  return result;
}

Result<Value> Interpreter::evaluate_call(const Expr& expr, Scope& scope, const Value* caller) {
  Value function = TRY(evaluate(*expr.base, scope));
  Evaluated arguments = TRY(evaluate_arguments(expr, scope));
  if (caller != nullptr) arguments.keywords.push_back({"caller", *caller});
  return call(function, arguments.args());
}

Result<Value> Interpreter::evaluate_filter(const Expr& expr, const Value& input, Scope& scope) {
  if (expr.builtin == nullptr) return invalid_argument("No filter named '{}'", expr.name);
  if (expr.items.empty() && expr.keywords.empty() && expr.star == nullptr &&
      expr.double_star == nullptr) {
    return call_builtin(rt_, *expr.builtin, input, {});
  }
  Evaluated arguments = TRY(evaluate_arguments(expr, scope));
  return call_builtin(rt_, *expr.builtin, input, arguments.args());
}

Result<Value> Interpreter::evaluate_test(const Expr& expr, Scope& scope) {
  Value value = TRY(evaluate(*expr.base, scope));
  if (expr.builtin == nullptr) return invalid_argument("No test named '{}'", expr.name);
  Evaluated arguments = TRY(evaluate_arguments(expr, scope));
  return call_builtin(rt_, *expr.builtin, value, arguments.args());
}

Result<Value> Interpreter::evaluate_slice(const Expr& expr, Scope& scope) {
  Value base = TRY(evaluate(*expr.base, scope));
  Value parts[3];
  for (size_t i = 0; i < 3; ++i) {
    if (expr.items[i] != nullptr) parts[i] = TRY(evaluate(*expr.items[i], scope));
  }
  return get_slice(rt_, base, parts[0], parts[1], parts[2]);
}

Result<Value> Interpreter::evaluate_logic(const Expr& expr, Scope& scope) {
  bool stop_at = expr.kind == ExprKind::kOr;
  Value value;
  for (const Expr* item : expr.items) {
    value = TRY(evaluate(*item, scope));
    if (truth(value) == stop_at) return value;
  }
  return value;
}

Result<Value> Interpreter::evaluate_concat(const Expr& expr, Scope& scope) {
  Value first = TRY(soft_str(rt_, TRY(evaluate(*expr.items[0], scope))));
  std::string rest;
  for (const Expr* item : std::span(expr.items).subspan(1)) {
    TRY(append_str(rt_, rest, TRY(evaluate(*item, scope))));
  }
  return join_strings(rt_, first.text(), rest);
}

Result<bool> Interpreter::compare(Comparison comparison, const Value& left, const Value& right) {
  switch (comparison) {
    case Comparison::kEq:
      return equals(rt_, left, right);
    case Comparison::kNe:
      return !TRY(equals(rt_, left, right));
    case Comparison::kLt:
      return TRY(order(rt_, left, right)) < 0;
    case Comparison::kLe:
      return TRY(order(rt_, left, right)) <= 0;
    case Comparison::kGt:
      return TRY(order(rt_, left, right)) > 0;
    case Comparison::kGe:
      return TRY(order(rt_, left, right)) >= 0;
    case Comparison::kIn:
      return contains(rt_, right, left);
    case Comparison::kNotIn:
      return !TRY(contains(rt_, right, left));
  }
  return false;
}

Result<Value> Interpreter::evaluate_compare(const Expr& expr, Scope& scope) {
  Value left = TRY(evaluate(*expr.base, scope));
  for (size_t i = 0; i < expr.items.size(); ++i) {
    Value right = TRY(evaluate(*expr.items[i], scope));
    if (!TRY(compare(expr.comparisons[i], left, right))) return make_bool(false);
    left = right;
  }
  return make_bool(true);
}

}  // namespace banyan::jinja
