// Executes a parsed template and writes its output. One per rendering.
//
// Scopes follow Jinja: for bodies (a new one per iteration), macros, call bodies, with, filter and
// set blocks open one; if does not. A macro sees the scope of its definition.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/json.h"
#include "jinja/ast.h"
#include "jinja/loop.h"
#include "jinja/runtime.h"

namespace banyan::jinja {

struct Variable {
  Symbol symbol = -1;
  Value value;
};

// The variables of one block; allocated in the heap.
struct Scope {
  Scope* parent = nullptr;
  Variable* variables = nullptr;
  int32_t count = 0;
  int32_t capacity = 0;
  bool captured = false;  // a macro or loop object refers to it, so it must not be reused
};

struct RunLimits {
  int64_t fuel = 0;
  int depth_max = 0;
  size_t memory_bytes_max = 0;
  size_t output_bytes_max = 0;
};

class Interpreter {
 public:
  Interpreter(const Ast& ast, const RunLimits& limits, int64_t now_unix_s);

  // `variables` must be an object and outlive the call.
  Result<std::string> render(const Json& variables);

  // Callbacks for runtime.h and loop.h.
  Result<Value> call(const Value& function, const Args& args);
  Result<bool> passes_condition(Loop& loop, const Value& item);
  // The next error is the template's own message: report it unchanged.
  void mark_raised() { located_ = true; }

 private:
  enum class Flow { kNext, kBreak, kContinue };

  // Statements.
  Result<Flow> run_body(const Body& body, Scope& scope);
  Result<Flow> run(const Stmt& stmt, Scope& scope);
  Result<Flow> run_here(const Stmt& stmt, Scope& scope);
  Result<Flow> run_if(const Stmt& stmt, Scope& scope);
  Result<Flow> run_for(const Stmt& stmt, Scope& scope);
  Result<Flow> run_loop(const Stmt& stmt, Scope& scope, const Value& iterable, int64_t depth0);
  Result<Flow> run_set_block(const Stmt& stmt, Scope& scope);
  Result<Flow> run_filter(const Stmt& stmt, Scope& scope);
  Result<Flow> run_with(const Stmt& stmt, Scope& scope);
  Status run_call(const Stmt& stmt, Scope& scope);
  Status print(const Value& value);
  Status print_text(const Value& value);
  Status write(std::string_view text);
  Status assign(const Expr& target, const Value& value, Scope& scope);
  Status assign_tuple(const Expr& target, const Value& value, Scope& scope);
  Status check_namespaces(const Expr& target, const Scope& scope);
  Result<Value> run_captured(const Body& body, Scope& scope, Flow& flow);
  Result<Value> apply_filters(const Stmt& stmt, Value value, Scope& scope);

  // Calls.
  Value new_macro(const Stmt& stmt, Scope& scope);
  Result<Value> call_macro(const Macro& macro, const Args& args);
  Status bind_macro(const Macro& macro, const Args& args, Scope& scope);
  Result<Value> call_loop(Loop& loop, const Args& args);

  // Expressions.
  Result<Value> evaluate(const Expr& expr, Scope& scope);
  Result<Value> evaluate_node(const Expr& expr, Scope& scope);
  Result<Value> evaluate_name(const Expr& expr, const Scope& scope);
  Result<Value> evaluate_items(const Expr& expr, Scope& scope);
  Result<Value> evaluate_dict(const Expr& expr, Scope& scope);
  Result<Value> evaluate_call(const Expr& expr, Scope& scope, const Value* caller);
  Result<Value> evaluate_filter(const Expr& expr, const Value& input, Scope& scope);
  Result<Value> evaluate_test(const Expr& expr, Scope& scope);
  Result<Value> evaluate_slice(const Expr& expr, Scope& scope);
  Result<Value> evaluate_logic(const Expr& expr, Scope& scope);
  Result<Value> evaluate_concat(const Expr& expr, Scope& scope);
  Result<Value> evaluate_compare(const Expr& expr, Scope& scope);
  Result<bool> compare(Comparison comparison, const Value& left, const Value& right);
  struct Evaluated {
    std::vector<Value> positional;
    std::vector<Keyword> keywords;
    Args args() const { return {positional, keywords}; }
  };
  Result<Evaluated> evaluate_arguments(const Expr& expr, Scope& scope);

  // Variables.
  Value find(Symbol symbol, const Scope& scope, int64_t& seen) const;
  void store(Symbol symbol, const Value& value, Scope& scope);
  Scope* new_scope(Scope* parent);
  Result<Value> import_json(const Json& json);
  Result<Value> import_text(const std::string& text);

  const Ast& ast_;
  size_t output_bytes_max_;
  Runtime rt_;
  std::vector<Value> globals_;  // by symbol: variables, host functions and top-level sets
  Scope root_;
  std::string* out_ = nullptr;
  bool located_ = false;  // the propagating error already names its line
};

}  // namespace banyan::jinja
