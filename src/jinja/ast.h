// The parsed template. The Ast owns all nodes in flat lists and nodes point to each other, so
// destruction never recurses. Immutable after parsing.
#pragma once

#include <deque>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "jinja/runtime.h"
#include "jinja/value.h"

namespace banyan::jinja {

using Symbol = int32_t;  // a variable's name, numbered per template

enum class ExprKind : uint8_t {
  kConstant,      // constant
  kName,          // symbol, name
  kNamespaceRef,  // symbol, name: the target ns.name of a set
  kTuple,         // items
  kList,          // items
  kDict,          // items: key, value, key, value, ...
  kCall,          // base, items, keywords, star, double_star
  kFilter,        // base, name, items, keywords, star, double_star
  kTest,          // base, name, items, keywords, star, double_star
  kAttribute,     // base, name
  kItem,          // base, items[0]
  kSlice,         // base, items: start, stop, step; null where not given
  kNot,           // base
  kNegate,        // base
  kPlus,          // base
  kArithmetic,    // arithmetic, items: left, right
  kAnd,           // items: two or more
  kOr,            // items: two or more
  kConcat,        // items
  kCompare,       // base, comparisons, items: right-hand sides
  kConditional,   // items: condition, then, else; null where there is no else
};

enum class Comparison : uint8_t { kEq, kNe, kLt, kLe, kGt, kGe, kIn, kNotIn };

struct Expr;

struct NamedExpr {
  std::string_view name;
  const Expr* value = nullptr;
};

struct Expr {
  ExprKind kind = ExprKind::kConstant;
  Arithmetic arithmetic = Arithmetic::kAdd;
  int line = 0;
  int depth = 1;  // nodes on the longest path down
  Symbol symbol = -1;
  Value constant;
  std::string_view name;
  const Builtin* builtin = nullptr;  // filter or test; null if the name is unknown
  const Expr* base = nullptr;
  std::vector<const Expr*> items;
  std::vector<Comparison> comparisons;
  std::vector<NamedExpr> keywords;
  const Expr* star = nullptr;
  const Expr* double_star = nullptr;
};

enum class StmtKind : uint8_t {
  kText,      // text
  kPrint,     // value
  kIf,        // branches, otherwise
  kFor,       // target, value, condition, recursive, body, otherwise
  kSet,       // target, value
  kSetBlock,  // target, filters, body
  kMacro,     // name, symbol, parameters, body
  kCall,      // value (a call), parameters, body
  kFilter,    // filters, body
  kWith,      // targets and values in branches' places: bindings, body
  kScope,     // body, in its own scope ({% generation %})
  kBreak,
  kContinue,
};

struct Stmt;
using Body = std::vector<const Stmt*>;

struct Branch {
  const Expr* condition = nullptr;
  Body body;
};

struct Parameter {
  Symbol symbol = -1;
  std::string_view name;
  const Expr* otherwise = nullptr;  // the default
};

struct Binding {
  const Expr* target = nullptr;
  const Expr* value = nullptr;
};

struct Stmt {
  StmtKind kind = StmtKind::kText;
  int line = 0;
  std::string_view text;
  const Expr* target = nullptr;
  const Expr* value = nullptr;
  const Expr* condition = nullptr;
  bool recursive = false;
  std::string_view name;
  Symbol symbol = -1;
  bool uses_caller = false, uses_kwargs = false, uses_varargs = false;
  bool explicit_caller = false;
  std::vector<Parameter> parameters;
  std::vector<const Expr*> filters;
  std::vector<Branch> branches;
  std::vector<Binding> bindings;
  Body body, otherwise;
};

struct Ast {
  std::string source;
  Heap heap;
  std::deque<Expr> expressions;
  std::deque<Stmt> statements;
  std::map<std::string_view, Symbol> symbols;
  std::vector<std::string_view> names;  // by symbol
  Symbol loop = -1, caller = -1, kwargs = -1, varargs = -1;
  Body body;

  Symbol intern(std::string_view name);
};

// Parses `source`; every error names the line. `nesting_max` bounds the nesting of tags and
// brackets, and thereby the recursion of all code that walks the tree.
Result<std::unique_ptr<Ast>> parse_template(std::string_view source, int nesting_max);

}  // namespace banyan::jinja
