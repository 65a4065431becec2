// The parser's expressions; statements are in parser.cpp.
#include <algorithm>

#include "jinja/library/unicode.h"
#include "jinja/parser.h"

namespace banyan::jinja {

Expr* Parser::new_expr(ExprKind kind, int line) {
  Expr& expr = ast_.expressions.emplace_back();
  expr.kind = kind;
  expr.line = line;
  return &expr;
}

Result<const Expr*> Parser::seal(Expr* expr) {
  int deepest = 0;
  auto see = [&](const Expr* child) {
    if (child != nullptr) deepest = std::max(deepest, child->depth);
  };
  see(expr->base);
  see(expr->star);
  see(expr->double_star);
  for (const Expr* item : expr->items) see(item);
  for (const NamedExpr& keyword : expr->keywords) see(keyword.value);
  expr->depth = deepest + 1;
  if (expr->depth > nesting_max_) {
    return exhausted("chat template, line {}: an expression of more than {} levels", expr->line,
                     nesting_max_);
  }
  return expr;
}

void Parser::note_load(Symbol symbol) {
  for (MacroUse& use : macros_) {
    use.caller |= symbol == ast_.caller;
    use.kwargs |= symbol == ast_.kwargs;
    use.varargs |= symbol == ast_.varargs;
  }
}

Result<const Expr*> Parser::target(TupleOptions options) {
  bool outer = std::exchange(in_target_, true);
  const Expr* result = TRY(tuple(options));
  in_target_ = outer;
  std::vector<const Expr*> parts = {result};
  while (!parts.empty()) {
    const Expr* part = parts.back();
    parts.pop_back();
    if (part->kind == ExprKind::kTuple) {
      parts.insert(parts.end(), part->items.begin(), part->items.end());
    } else if (part->kind == ExprKind::kName) {
      if (loops_lexical_ > 0 && part->symbol == ast_.loop) {
        return fail("can't assign to the special loop variable", part->line);
      }
    } else if (part->kind != ExprKind::kNamespaceRef) {
      return fail("can't assign to this expression", part->line);
    }
  }
  return result;
}

bool Parser::at_tuple_end() const {
  TokenType type = current().type;
  if (type == TokenType::kPrintEnd || type == TokenType::kBlockEnd) return true;
  return current().is_operator(")");
}

Result<const Expr*> Parser::tuple(TupleOptions options) {
  Level level(*this);
  TRY(check_nesting());
  int line = current().line;
  std::vector<const Expr*> items;
  bool is_tuple = false;
  while (true) {
    if (!items.empty()) TRY(expect_operator(","));
    if (at_tuple_end()) break;
    if (options.targets_only) {
      items.push_back(TRY(primary(options.namespaces)));
    } else {
      items.push_back(TRY(options.conditional ? conditional() : disjunction()));
    }
    if (!current().is_operator(",")) break;
    is_tuple = true;
  }
  if (!is_tuple && !items.empty()) return items[0];
  if (!is_tuple && !options.parentheses) return fail("expected an expression");
  Expr* expr = new_expr(ExprKind::kTuple, line);
  expr->items = std::move(items);
  return seal(expr);
}

Result<const Expr*> Parser::conditional() {
  Level level(*this);
  TRY(check_nesting());
  const Expr* value = TRY(disjunction());
  while (skip_name("if")) {
    Expr* expr = new_expr(ExprKind::kConditional, value->line);
    const Expr* condition = TRY(disjunction());
    const Expr* otherwise = skip_name("else") ? TRY(conditional()) : nullptr;
    expr->items = {condition, value, otherwise};
    value = TRY(seal(expr));
  }
  return value;
}

Result<const Expr*> Parser::chain(ExprKind kind, std::string_view word,
                                  Result<const Expr*> (Parser::*operand)()) {
  const Expr* first = TRY((this->*operand)());
  if (!current().is_name(word)) return first;
  Expr* expr = new_expr(kind, first->line);
  expr->items.push_back(first);
  while (skip_name(word)) expr->items.push_back(TRY((this->*operand)()));
  return seal(expr);
}

Result<const Expr*> Parser::disjunction() {
  return chain(ExprKind::kOr, "or", &Parser::conjunction);
}

Result<const Expr*> Parser::conjunction() {
  return chain(ExprKind::kAnd, "and", &Parser::negation);
}

Result<const Expr*> Parser::negation() {
  if (!current().is_name("not")) return comparison();
  Level level(*this);
  TRY(check_nesting());
  Expr* expr = new_expr(ExprKind::kNot, take().line);
  expr->base = TRY(negation());
  return seal(expr);
}

std::optional<Comparison> Parser::take_comparison() {
  static constexpr std::pair<std::string_view, Comparison> kOperators[] = {
      {"==", Comparison::kEq}, {"!=", Comparison::kNe}, {"<", Comparison::kLt},
      {"<=", Comparison::kLe}, {">", Comparison::kGt},  {">=", Comparison::kGe},
  };
  for (auto [symbol, comparison] : kOperators) {
    if (skip_operator(symbol)) return comparison;
  }
  if (skip_name("in")) return Comparison::kIn;
  if (current().is_name("not") && ahead().is_name("in")) {
    take();
    take();
    return Comparison::kNotIn;
  }
  return std::nullopt;
}

Result<const Expr*> Parser::comparison() {
  const Expr* first = TRY(sum());
  Expr* expr = nullptr;
  while (auto comparison = take_comparison()) {
    if (expr == nullptr) {
      expr = new_expr(ExprKind::kCompare, first->line);
      expr->base = first;
    }
    expr->comparisons.push_back(*comparison);
    expr->items.push_back(TRY(sum()));
  }
  if (expr == nullptr) return first;
  return seal(expr);
}

Result<const Expr*> Parser::arithmetic_node(Arithmetic op, const Expr* left, const Expr* right) {
  Expr* expr = new_expr(ExprKind::kArithmetic, left->line);
  expr->arithmetic = op;
  expr->items = {left, right};
  return seal(expr);
}

Result<const Expr*> Parser::sum() {
  const Expr* left = TRY(concatenation());
  while (true) {
    if (skip_operator("+")) {
      left = TRY(arithmetic_node(Arithmetic::kAdd, left, TRY(concatenation())));
    } else if (skip_operator("-")) {
      left = TRY(arithmetic_node(Arithmetic::kSubtract, left, TRY(concatenation())));
    } else {
      return left;
    }
  }
}

Result<const Expr*> Parser::concatenation() {
  const Expr* first = TRY(product());
  if (!current().is_operator("~")) return first;
  Expr* expr = new_expr(ExprKind::kConcat, first->line);
  expr->items.push_back(first);
  while (skip_operator("~")) expr->items.push_back(TRY(product()));
  return seal(expr);
}

Result<const Expr*> Parser::product() {
  static constexpr std::pair<std::string_view, Arithmetic> kOperators[] = {
      {"*", Arithmetic::kMultiply},
      {"/", Arithmetic::kDivide},
      {"//", Arithmetic::kFloorDivide},
      {"%", Arithmetic::kModulo},
  };
  const Expr* left = TRY(power());
  while (true) {
    auto found = std::find_if(std::begin(kOperators), std::end(kOperators), [&](const auto& entry) {
      return current().is_operator(entry.first);
    });
    if (found == std::end(kOperators)) return left;
    take();
    left = TRY(arithmetic_node(found->second, left, TRY(power())));
  }
}

Result<const Expr*> Parser::power() {
  const Expr* left = TRY(filtered_unary());
  while (skip_operator("**")) {
    left = TRY(arithmetic_node(Arithmetic::kPower, left, TRY(filtered_unary())));
  }
  return left;
}

Result<const Expr*> Parser::unary(bool with_filters) {
  const Expr* node = nullptr;
  if (current().is_operator("-") || current().is_operator("+")) {
    Level level(*this);
    TRY(check_nesting());
    ExprKind kind = current().is_operator("-") ? ExprKind::kNegate : ExprKind::kPlus;
    Expr* expr = new_expr(kind, take().line);
    expr->base = TRY(unary(false));
    node = TRY(seal(expr));
  } else {
    node = TRY(primary(false));
  }
  node = TRY(postfix(node));
  return with_filters ? filters_and_tests(node) : node;
}

Result<const Expr*> Parser::name_primary(bool namespaces) {
  const Token& token = take();
  Expr* expr = new_expr(ExprKind::kConstant, token.line);
  std::string_view name = token.text;
  if (name == "true" || name == "True") {
    expr->constant = make_bool(true);
  } else if (name == "false" || name == "False") {
    expr->constant = make_bool(false);
  } else if (name == "none" || name == "None") {
    expr->constant = make_none();
  } else {
    expr->kind = ExprKind::kName;
    expr->name = name;
    expr->symbol = ast_.intern(name);
    if (namespaces && skip_operator(".")) {
      expr->kind = ExprKind::kNamespaceRef;
      expr->name = TRY(take_name());
    }
    if (!in_target_ || expr->kind == ExprKind::kNamespaceRef) note_load(expr->symbol);
  }
  return seal(expr);
}

Result<const Expr*> Parser::string_primary() {
  const Token& token = take();
  std::string_view text = token.text;
  if (current().type == TokenType::kString) {
    std::string joined(text);
    while (current().type == TokenType::kString) joined += take().text;
    text = ast_.heap.copy(joined);
  }
  Expr* expr = new_expr(ExprKind::kConstant, token.line);
  auto* string = ast_.heap.make<String>();
  string->text = text;
  string->length = count_code_points(text);
  expr->constant.kind = Kind::kString;
  expr->constant.string = string;
  return seal(expr);
}

Result<const Expr*> Parser::primary(bool namespaces) {
  const Token& token = current();
  switch (token.type) {
    case TokenType::kName:
      return name_primary(namespaces);
    case TokenType::kString:
      return string_primary();
    case TokenType::kInteger:
    case TokenType::kFloat: {
      Expr* expr = new_expr(ExprKind::kConstant, take().line);
      bool integer = token.type == TokenType::kInteger;
      expr->constant = integer ? make_int(token.integer) : make_float(token.real);
      return seal(expr);
    }
    default:
      break;
  }
  if (skip_operator("(")) {
    const Expr* inner = TRY(tuple({.parentheses = true}));
    TRY(expect_operator(")"));
    return inner;
  }
  if (token.is_operator("[")) return list();
  if (token.is_operator("{")) return dict();
  return fail(token.type == TokenType::kEnd ? "unexpected end of template"
                                            : fmt::format("unexpected '{}'", token.text));
}

Result<const Expr*> Parser::list() {
  Expr* expr = new_expr(ExprKind::kList, take().line);
  while (!current().is_operator("]")) {
    if (!expr->items.empty()) TRY(expect_operator(","));
    if (current().is_operator("]")) break;
    expr->items.push_back(TRY(expression()));
  }
  TRY(expect_operator("]"));
  return seal(expr);
}

Result<const Expr*> Parser::dict() {
  Expr* expr = new_expr(ExprKind::kDict, take().line);
  while (!current().is_operator("}")) {
    if (!expr->items.empty()) TRY(expect_operator(","));
    if (current().is_operator("}")) break;
    expr->items.push_back(TRY(expression()));
    TRY(expect_operator(":"));
    expr->items.push_back(TRY(expression()));
  }
  TRY(expect_operator("}"));
  return seal(expr);
}

Result<const Expr*> Parser::postfix(const Expr* base) {
  while (true) {
    if (current().is_operator(".")) {
      base = TRY(dot(base));
    } else if (current().is_operator("[")) {
      base = TRY(subscript(base));
    } else if (current().is_operator("(")) {
      base = TRY(call(base));
    } else {
      return base;
    }
  }
}

Result<const Expr*> Parser::filters_and_tests(const Expr* base) {
  while (true) {
    if (skip_operator("|")) {
      base = TRY(filter(base));
    } else if (current().is_name("is")) {
      base = TRY(test(base));
    } else if (current().is_operator("(")) {
      base = TRY(call(base));
    } else {
      return base;
    }
  }
}

Result<const Expr*> Parser::dot(const Expr* base) {
  int line = take().line;
  const Token& token = take();
  if (token.type == TokenType::kName) {
    Expr* expr = new_expr(ExprKind::kAttribute, line);
    expr->base = base;
    expr->name = token.text;
    return seal(expr);
  }
  if (token.type != TokenType::kInteger) return fail("expected a name or a number", token.line);
  Expr* key = new_expr(ExprKind::kConstant, token.line);
  key->constant = make_int(token.integer);
  Expr* expr = new_expr(ExprKind::kItem, line);
  expr->base = base;
  expr->items = {key};
  return seal(expr);
}

// A key or slice; a slice's node already has its `base`.
Result<const Expr*> Parser::subscript_key(const Expr* base) {
  Expr* slice = new_expr(ExprKind::kSlice, current().line);
  slice->items = {nullptr, nullptr, nullptr};
  if (!current().is_operator(":")) {
    slice->items[0] = TRY(expression());
    if (!current().is_operator(":")) return slice->items[0];
  }
  for (size_t part = 1; part < 3 && skip_operator(":"); ++part) {
    bool given =
        !current().is_operator(":") && !current().is_operator("]") && !current().is_operator(",");
    if (given) slice->items[part] = TRY(expression());
  }
  slice->base = base;
  return seal(slice);
}

Result<const Expr*> Parser::subscript(const Expr* base) {
  int line = take().line;
  std::vector<const Expr*> keys;
  while (!current().is_operator("]")) {
    if (!keys.empty()) TRY(expect_operator(","));
    keys.push_back(TRY(subscript_key(base)));
  }
  TRY(expect_operator("]"));
  if (keys.size() == 1 && keys[0]->kind == ExprKind::kSlice && keys[0]->base == base) {
    return keys[0];
  }
  Expr* expr = new_expr(ExprKind::kItem, line);
  expr->base = base;
  if (keys.size() == 1) {
    expr->items = {keys[0]};
    return seal(expr);
  }
  for (const Expr* key : keys) {
    if (key->kind == ExprKind::kSlice && key->base == base) return fail("a slice in a tuple");
  }
  Expr* key = new_expr(ExprKind::kTuple, line);
  key->items = std::move(keys);
  expr->items = {TRY(seal(key))};
  return seal(expr);
}

Status Parser::argument(Arguments& result) {
  auto ensure = [&](bool valid) -> Status {
    if (!valid) return fail("invalid syntax for function call expression");
    return {};
  };
  if (skip_operator("*")) {
    TRY(ensure(result.star == nullptr && result.double_star == nullptr));
    result.star = TRY(expression());
    return {};
  }
  if (skip_operator("**")) {
    TRY(ensure(result.double_star == nullptr));
    result.double_star = TRY(expression());
    return {};
  }
  if (current().type == TokenType::kName && ahead().is_operator("=")) {
    TRY(ensure(result.double_star == nullptr));
    std::string_view name = take().text;
    take();
    if (!result.names.insert(name).second) {
      return fail(fmt::format("the argument '{}' appears twice", name));
    }
    result.keywords.push_back({name, TRY(expression())});
    return {};
  }
  TRY(ensure(result.star == nullptr && result.double_star == nullptr && result.keywords.empty()));
  result.items.push_back(TRY(expression()));
  return {};
}

Result<Parser::Arguments> Parser::arguments() {
  TRY(expect_operator("("));
  Arguments result;
  bool first = true;
  while (!current().is_operator(")")) {
    if (!first) TRY(expect_operator(","));
    if (!first && current().is_operator(")")) break;
    TRY(argument(result));
    first = false;
  }
  TRY(expect_operator(")"));
  return result;
}

Result<const Expr*> Parser::call(const Expr* base) {
  Expr* expr = new_expr(ExprKind::kCall, current().line);
  Arguments given = TRY(arguments());
  expr->base = base;
  expr->items = std::move(given.items);
  expr->keywords = std::move(given.keywords);
  expr->star = given.star;
  expr->double_star = given.double_star;
  return seal(expr);
}

Result<std::string_view> Parser::dotted_name() {
  std::string_view name = TRY(take_name());
  if (!current().is_operator(".")) return name;
  std::string joined(name);
  while (skip_operator(".")) joined.append(".").append(TRY(take_name()));
  return ast_.heap.copy(joined);
}

// After the "|"; `base` is null for the filters of a set or filter block.
Result<const Expr*> Parser::filter(const Expr* base) {
  Expr* expr = new_expr(ExprKind::kFilter, current().line);
  expr->name = TRY(dotted_name());
  expr->builtin = find_filter(expr->name);
  expr->base = base;
  if (current().is_operator("(")) {
    Arguments given = TRY(arguments());
    expr->items = std::move(given.items);
    expr->keywords = std::move(given.keywords);
    expr->star = given.star;
    expr->double_star = given.double_star;
  }
  return seal(expr);
}

Result<const Expr*> Parser::test(const Expr* base) {
  int line = take().line;
  bool negated = skip_name("not");
  Expr* expr = new_expr(ExprKind::kTest, line);
  expr->name = TRY(dotted_name());
  expr->builtin = find_test(expr->name);
  expr->base = base;
  TokenType type = current().type;
  bool literal = type == TokenType::kName || type == TokenType::kString ||
                 type == TokenType::kInteger || type == TokenType::kFloat ||
                 current().is_operator("[") || current().is_operator("{");
  bool word = current().is_name("else") || current().is_name("or") || current().is_name("and");
  if (current().is_operator("(")) {
    Arguments given = TRY(arguments());
    expr->items = std::move(given.items);
    expr->keywords = std::move(given.keywords);
    expr->star = given.star;
    expr->double_star = given.double_star;
  } else if (literal && !word) {
    if (current().is_name("is")) return fail("You cannot chain multiple tests with is");
    expr->items = {TRY(postfix(TRY(primary(false))))};
  }
  const Expr* result = TRY(seal(expr));
  if (!negated) return result;
  Expr* inverse = new_expr(ExprKind::kNot, line);
  inverse->base = result;
  return seal(inverse);
}

}  // namespace banyan::jinja
