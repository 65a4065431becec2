// Recursive descent parser over a template's tokens; used only by parse_template. Statements are in
// parser.cpp, expressions in parse_expression.cpp.
#pragma once

#include <initializer_list>
#include <optional>
#include <unordered_set>
#include <utility>
#include <vector>

#include "jinja/ast.h"
#include "jinja/lexer.h"

namespace banyan::jinja {

class Parser {
 public:
  Parser(Ast& ast, std::vector<Token> tokens, int nesting_max)
      : ast_(ast), tokens_(std::move(tokens)), nesting_max_(nesting_max) {}

  Status run();

 private:
  // RAII guard for one level of nesting.
  struct Level {
    explicit Level(Parser& p) : parser(p) { ++parser.nesting_; }
    ~Level() { --parser.nesting_; }
    Level(const Level&) = delete;
    Parser& parser;
  };
  struct TupleOptions {
    bool conditional = true;    // "a if b" is one element
    bool targets_only = false;  // names and literals, as in an assignment's target
    bool namespaces = false;    // ns.name is a target
    bool parentheses = false;   // an empty tuple is allowed
  };
  struct Arguments {
    std::vector<const Expr*> items;
    std::vector<NamedExpr> keywords;
    std::unordered_set<std::string_view> names;  // names of the keywords
    const Expr* star = nullptr;
    const Expr* double_star = nullptr;
  };
  // Names that a macro's body mentions; `caller` and the others are its parameters only if
  // mentioned.
  struct MacroUse {
    bool caller = false, kwargs = false, varargs = false;
  };

  // Tokens.
  const Token& current() const { return tokens_[at_]; }
  const Token& ahead() const { return tokens_[std::min(at_ + 1, tokens_.size() - 1)]; }
  const Token& take();
  bool skip_name(std::string_view name);
  bool skip_operator(std::string_view symbol);
  Status expect(TokenType type, std::string_view what);
  Status expect_operator(std::string_view symbol);
  Status expect_name(std::string_view name);
  Result<std::string_view> take_name();
  std::unexpected<Error> fail(std::string_view what, int line = 0) const;
  Status check_nesting() const;

  // Statements.
  Result<Body> body_until(std::initializer_list<std::string_view> ends, bool drop_end);
  Result<Body> statements(std::initializer_list<std::string_view> ends);
  Result<const Stmt*> statement();
  Result<const Stmt*> print_statement();
  Result<const Stmt*> if_statement();
  Result<const Stmt*> for_statement();
  Result<const Stmt*> set_statement();
  Result<const Stmt*> macro_statement();
  Result<const Stmt*> call_statement();
  Result<const Stmt*> filter_statement();
  Result<const Stmt*> with_statement();
  Result<const Stmt*> generation_statement();
  Result<const Stmt*> autoescape_statement();
  Result<const Stmt*> jump_statement(StmtKind kind);
  Result<Stmt*> output(const Expr* value);
  Status signature(Stmt& stmt);
  Result<Body> macro_body(Stmt& stmt, std::string_view end);
  Stmt* new_stmt(StmtKind kind, int line);

  // Expressions.
  Result<const Expr*> target(TupleOptions options);
  Result<const Expr*> tuple(TupleOptions options);
  bool at_tuple_end() const;
  Result<const Expr*> expression() { return conditional(); }
  Result<const Expr*> conditional();
  Result<const Expr*> chain(ExprKind kind, std::string_view word,
                            Result<const Expr*> (Parser::*operand)());
  Result<const Expr*> disjunction();
  Result<const Expr*> conjunction();
  Result<const Expr*> negation();
  Result<const Expr*> comparison();
  Result<const Expr*> sum();
  Result<const Expr*> concatenation();
  Result<const Expr*> product();
  Result<const Expr*> power();
  Result<const Expr*> filtered_unary() { return unary(true); }
  Result<const Expr*> unary(bool with_filters);
  Result<const Expr*> primary(bool namespaces);
  Result<const Expr*> name_primary(bool namespaces);
  Result<const Expr*> string_primary();
  Result<const Expr*> list();
  Result<const Expr*> dict();
  Result<const Expr*> postfix(const Expr* base);
  Result<const Expr*> filters_and_tests(const Expr* base);
  Result<const Expr*> dot(const Expr* base);
  Result<const Expr*> subscript(const Expr* base);
  Result<const Expr*> subscript_key(const Expr* base);
  Result<const Expr*> call(const Expr* base);
  Result<Arguments> arguments();
  Status argument(Arguments& result);
  Result<const Expr*> filter(const Expr* base);
  Result<const Expr*> test(const Expr* base);
  Result<std::string_view> dotted_name();
  Result<const Expr*> arithmetic_node(Arithmetic op, const Expr* left, const Expr* right);
  std::optional<Comparison> take_comparison();
  void note_load(Symbol symbol);

  Expr* new_expr(ExprKind kind, int line);
  // Sets the node's depth from its children's; fails if it is too deep.
  Result<const Expr*> seal(Expr* expr);

  Ast& ast_;
  std::vector<Token> tokens_;
  size_t at_ = 0;
  int nesting_ = 0;
  int nesting_max_;
  int loops_ = 0;           // enclosing loops that break and continue may leave
  int loops_lexical_ = 0;   // all enclosing loops
  bool in_target_ = false;  // names are assigned, not read
  std::vector<MacroUse> macros_;
  std::vector<std::string_view> open_tags_;
};

}  // namespace banyan::jinja
