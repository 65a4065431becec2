#include "jinja/interpreter.h"

#include <algorithm>

#include "jinja/library/builtins.h"
#include "unicode/unicode.h"

namespace banyan::jinja {

Interpreter::Interpreter(const Ast& ast, const RunLimits& limits, int64_t now_unix_s)
    : ast_(ast),
      output_bytes_max_(limits.output_bytes_max),
      rt_(*this, limits.fuel, limits.depth_max, limits.memory_bytes_max, now_unix_s),
      globals_(ast.names.size()) {}

Result<Value> Interpreter::import_text(const std::string& text) {
  if (auto at = unicode::first_invalid(text)) {
    return invalid_argument("a text in the variables is not UTF-8 at byte {}", *at);
  }
  return borrow(rt_, text);
}

Result<Value> Interpreter::import_json(const Json& json) {
  Nested nested(rt_);
  TRY(rt_.check_depth());
  switch (json.type()) {
    case Json::value_t::boolean:
      return make_bool(json.get<bool>());
    case Json::value_t::number_integer:
      return make_int(json.get<int64_t>());
    case Json::value_t::number_unsigned:
      if (json.get<uint64_t>() > INT64_MAX) {
        return invalid_argument("the variables have the integer {}, which is beyond 64 bits",
                                json.get<uint64_t>());
      }
      return make_int(json.get<int64_t>());
    case Json::value_t::number_float:
      return make_float(json.get<double>());
    case Json::value_t::string:
      return import_text(json.get_ref<const std::string&>());
    case Json::value_t::array: {
      std::vector<Value> items;
      items.reserve(json.size());
      for (const Json& item : json) items.push_back(TRY(import_json(item)));
      return make_list(rt_, items);
    }
    case Json::value_t::object: {
      Dict* dict = make_dict(rt_);
      for (const auto& [key, value] : json.items()) {
        TRY(dict_set(rt_, *dict, TRY(import_text(key)), TRY(import_json(value))));
      }
      return dict_value(dict);
    }
    default:
      return make_none();
  }
}

Result<std::string> Interpreter::render(const Json& variables) {
  for (const auto& [name, symbol] : ast_.symbols) {
    if (const Builtin* global = find_global(name)) {
      auto* function = rt_.heap.make<Function>();
      *function = {global, Value{}};
      Value value{.kind = Kind::kFunction, .integer = 0};
      value.function = function;
      globals_[symbol] = value;
    }
  }
  for (const auto& [name, json] : variables.items()) {
    auto found = ast_.symbols.find(name);
    if (found == ast_.symbols.end()) continue;
    globals_[found->second] = TRY(import_json(json));
  }
  std::string text;
  out_ = &text;
  TRY(run_body(ast_.body, root_));
  return text;
}

Value Interpreter::find(Symbol symbol, const Scope& scope, int64_t& seen) const {
  for (const Scope* at = &scope; at != nullptr; at = at->parent) {
    for (int32_t i = 0; i < at->count; ++i) {
      if (at->variables[i].symbol == symbol) {
        seen += i;
        return at->variables[i].value;
      }
    }
    seen += at->count + 1;
  }
  return globals_[symbol];
}

void Interpreter::store(Symbol symbol, const Value& value, Scope& scope) {
  if (&scope == &root_) {
    globals_[symbol] = value;
    return;
  }
  for (int32_t i = 0; i < scope.count; ++i) {
    if (scope.variables[i].symbol == symbol) {
      scope.variables[i].value = value;
      return;
    }
  }
  if (scope.count == scope.capacity) {
    scope.capacity = std::max(4, scope.capacity * 2);
    auto* grown = rt_.heap.make<Variable>(scope.capacity);
    std::copy_n(scope.variables, scope.count, grown);
    scope.variables = grown;
  }
  scope.variables[scope.count++] = {symbol, value};
}

Scope* Interpreter::new_scope(Scope* parent) {
  auto* scope = rt_.heap.make<Scope>();
  scope->parent = parent;
  return scope;
}

Status Interpreter::write(std::string_view text) {
  TRY(rt_.charge_bytes(text.size()));
  if (out_->size() + text.size() > output_bytes_max_) {
    return exhausted("the rendered text is longer than {} bytes", output_bytes_max_);
  }
  out_->append(text);
  return {};
}

Status Interpreter::print(const Value& value) {
  if (value.is_string()) return write(value.text());
  return write(TRY(to_str(rt_, value)));
}

// Unlike a print, a filter or call block does not convert its value.
Status Interpreter::print_text(const Value& value) {
  if (value.is_string()) return write(value.text());
  return invalid_argument("a filter or call block returned {}, not a string", type_name(value));
}

Result<Interpreter::Flow> Interpreter::run_body(const Body& body, Scope& scope) {
  for (const Stmt* stmt : body) {
    Flow flow = TRY(run(*stmt, scope));
    if (flow != Flow::kNext) return flow;
  }
  return Flow::kNext;
}

Result<Interpreter::Flow> Interpreter::run(const Stmt& stmt, Scope& scope) {
  Nested nested(rt_);
  TRY(rt_.charge());
  TRY(rt_.check_depth());
  auto result = run_here(stmt, scope);
  if (!result && !located_) {
    located_ = true;
    return make_error(result.error().code,
                      fmt::format("chat template, line {}: {}", stmt.line, result.error().message));
  }
  return result;
}

Result<Interpreter::Flow> Interpreter::run_here(const Stmt& stmt, Scope& scope) {
  switch (stmt.kind) {
    case StmtKind::kText:
      TRY(write(stmt.text));
      return Flow::kNext;
    case StmtKind::kPrint:
      TRY(print(TRY(evaluate(*stmt.value, scope))));
      return Flow::kNext;
    case StmtKind::kIf:
      return run_if(stmt, scope);
    case StmtKind::kFor:
      return run_for(stmt, scope);
    case StmtKind::kSet:
      TRY(check_namespaces(*stmt.target, scope));
      TRY(assign(*stmt.target, TRY(evaluate(*stmt.value, scope)), scope));
      return Flow::kNext;
    case StmtKind::kSetBlock:
      return run_set_block(stmt, scope);
    case StmtKind::kMacro:
      store(stmt.symbol, new_macro(stmt, scope), scope);
      return Flow::kNext;
    case StmtKind::kCall:
      TRY(run_call(stmt, scope));
      return Flow::kNext;
    case StmtKind::kFilter:
      return run_filter(stmt, scope);
    case StmtKind::kWith:
      return run_with(stmt, scope);
    case StmtKind::kScope:
      return run_body(stmt.body, *new_scope(&scope));
    case StmtKind::kBreak:
      return Flow::kBreak;
    case StmtKind::kContinue:
      return Flow::kContinue;
  }
  return Flow::kNext;
}

Result<Interpreter::Flow> Interpreter::run_if(const Stmt& stmt, Scope& scope) {
  for (const Branch& branch : stmt.branches) {
    TRY(rt_.charge());
    if (truth(TRY(evaluate(*branch.condition, scope)))) return run_body(branch.body, scope);
  }
  return run_body(stmt.otherwise, scope);
}

Result<Interpreter::Flow> Interpreter::run_for(const Stmt& stmt, Scope& scope) {
  Value iterable = TRY(evaluate(*stmt.value, scope));
  return run_loop(stmt, scope, iterable, 0);
}

// A break leaves the body early; only an iteration that reaches its end suppresses the else block.
Result<Interpreter::Flow> Interpreter::run_loop(const Stmt& stmt, Scope& scope,
                                                const Value& iterable, int64_t depth0) {
  auto* loop = rt_.heap.make<Loop>();
  loop->interpreter = this;
  loop->definition = &stmt;
  loop->outer = &scope;
  loop->source = TRY(iterate(rt_, iterable));
  loop->filtered = stmt.condition != nullptr;
  loop->depth0 = depth0;
  Value loop_value{.kind = Kind::kLoop, .integer = 0};
  loop_value.loop = loop;

  bool finished_a_turn = false;
  Scope* turn = new_scope(&scope);
  while (TRY(loop_advance(rt_, *loop))) {
    TRY(rt_.charge());
    if (turn->captured) turn = new_scope(&scope);
    turn->count = 0;
    store(ast_.loop, loop_value, *turn);
    TRY(assign(*stmt.target, loop->current, *turn));
    Flow flow = TRY(run_body(stmt.body, *turn));
    if (flow == Flow::kBreak) break;
    if (flow == Flow::kNext) finished_a_turn = true;
  }
  if (finished_a_turn || stmt.otherwise.empty()) return Flow::kNext;
  return run_body(stmt.otherwise, *new_scope(&scope));
}

Result<bool> Interpreter::passes_condition(Loop& loop, const Value& item) {
  Scope scope;
  scope.parent = loop.outer;
  TRY(assign(*loop.definition->target, item, scope));
  return truth(TRY(evaluate(*loop.definition->condition, scope)));
}

Result<Value> Interpreter::run_captured(const Body& body, Scope& scope, Flow& flow) {
  std::string text;
  std::string* outer = std::exchange(out_, &text);
  auto result = run_body(body, scope);
  out_ = outer;
  flow = TRY(std::move(result));
  return make_string(rt_, text);
}

Result<Value> Interpreter::apply_filters(const Stmt& stmt, Value value, Scope& scope) {
  for (const Expr* filter : stmt.filters) value = TRY(evaluate_filter(*filter, value, scope));
  return value;
}

Result<Interpreter::Flow> Interpreter::run_set_block(const Stmt& stmt, Scope& scope) {
  Flow flow = Flow::kNext;
  Scope* inner = new_scope(&scope);
  Value text = TRY(run_captured(stmt.body, *inner, flow));
  if (flow != Flow::kNext) return flow;
  TRY(assign(*stmt.target, TRY(apply_filters(stmt, text, *inner)), scope));
  return Flow::kNext;
}

Result<Interpreter::Flow> Interpreter::run_filter(const Stmt& stmt, Scope& scope) {
  Flow flow = Flow::kNext;
  Scope* inner = new_scope(&scope);
  Value text = TRY(run_captured(stmt.body, *inner, flow));
  if (flow != Flow::kNext) return flow;
  TRY(print_text(TRY(apply_filters(stmt, text, *inner))));
  return Flow::kNext;
}

Result<Interpreter::Flow> Interpreter::run_with(const Stmt& stmt, Scope& scope) {
  Scope* inner = new_scope(&scope);
  for (const Binding& binding : stmt.bindings) {
    TRY(assign(*binding.target, TRY(evaluate(*binding.value, scope)), *inner));
  }
  return run_body(stmt.body, *inner);
}

Status Interpreter::run_call(const Stmt& stmt, Scope& scope) {
  Value caller = new_macro(stmt, scope);
  return print_text(TRY(evaluate_call(*stmt.value, scope, &caller)));
}

Status Interpreter::check_namespaces(const Expr& target, const Scope& scope) {
  if (target.kind == ExprKind::kTuple) {
    for (const Expr* item : target.items) TRY(check_namespaces(*item, scope));
  }
  if (target.kind != ExprKind::kNamespaceRef) return {};
  int64_t seen = 0;
  if (find(target.symbol, scope, seen).is(Kind::kNamespace)) return {};
  return invalid_argument("cannot assign attribute on non-namespace object");
}

Status Interpreter::assign(const Expr& target, const Value& value, Scope& scope) {
  if (target.kind == ExprKind::kTuple) return assign_tuple(target, value, scope);
  if (target.kind == ExprKind::kName) {
    TRY(rt_.charge(scope.count / 16 + 1));
    store(target.symbol, value, scope);
    return {};
  }
  int64_t seen = 0;
  Value name_space = find(target.symbol, scope, seen);
  if (!name_space.is(Kind::kNamespace)) {
    return invalid_argument("cannot assign attribute on non-namespace object");
  }
  if (target.name.starts_with('_')) {
    return invalid_argument("a namespace cannot have the underscore-prefixed attribute '{}'",
                            target.name);
  }
  return dict_set(rt_, *name_space.name_space->attributes, borrow(rt_, target.name), value);
}

Status Interpreter::assign_tuple(const Expr& target, const Value& value, Scope& scope) {
  std::span<const Value> items = TRY(iterate(rt_, value));
  if (items.size() != target.items.size()) {
    return invalid_argument("cannot unpack {} values into {} names", items.size(),
                            target.items.size());
  }
  for (size_t i = 0; i < items.size(); ++i) {
    TRY(assign(*target.items[i], items[i], scope));
  }
  return {};
}

}  // namespace banyan::jinja
