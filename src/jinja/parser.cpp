#include "jinja/parser.h"

#include <algorithm>

#include "jinja/check.h"
#include "jinja/library/unicode.h"

namespace banyan::jinja {

const Token& Parser::take() {
  const Token& token = tokens_[at_];
  if (at_ + 1 < tokens_.size()) ++at_;
  return token;
}

bool Parser::skip_name(std::string_view name) {
  if (!current().is_name(name)) return false;
  take();
  return true;
}

bool Parser::skip_operator(std::string_view symbol) {
  if (!current().is_operator(symbol)) return false;
  take();
  return true;
}

std::unexpected<Error> Parser::fail(std::string_view what, int line) const {
  return invalid_argument("chat template, line {}: {}", line == 0 ? current().line : line, what);
}

Status Parser::check_nesting() const {
  if (nesting_ <= nesting_max_) return {};
  return exhausted("chat template, line {}: nested deeper than {} levels", current().line,
                   nesting_max_);
}

namespace {

std::string describe(const Token& token) {
  switch (token.type) {
    case TokenType::kText:
      return "template text";
    case TokenType::kPrintBegin:
      return "{{";
    case TokenType::kPrintEnd:
      return "}}";
    case TokenType::kBlockBegin:
      return "{%";
    case TokenType::kBlockEnd:
      return "%}";
    case TokenType::kEnd:
      return "the end of the template";
    default:
      return std::string(token.text.substr(0, 80));
  }
}

}  // namespace

Status Parser::expect(TokenType type, std::string_view what) {
  if (current().type != type) {
    return fail(fmt::format("expected {}, got '{}'", what, describe(current())));
  }
  take();
  return {};
}

Status Parser::expect_operator(std::string_view symbol) {
  if (skip_operator(symbol)) return {};
  return fail(fmt::format("expected '{}', got '{}'", symbol, describe(current())));
}

Status Parser::expect_name(std::string_view name) {
  if (skip_name(name)) return {};
  return fail(fmt::format("expected '{}', got '{}'", name, describe(current())));
}

Result<std::string_view> Parser::take_name() {
  if (current().type != TokenType::kName) {
    return fail(fmt::format("expected a name, got '{}'", describe(current())));
  }
  return take().text;
}

Stmt* Parser::new_stmt(StmtKind kind, int line) {
  Stmt& stmt = ast_.statements.emplace_back();
  stmt.kind = kind;
  stmt.line = line;
  return &stmt;
}

Status Parser::run() {
  ast_.body = TRY(statements({}));
  return {};
}

Result<Body> Parser::body_until(std::initializer_list<std::string_view> ends, bool drop_end) {
  skip_operator(":");
  TRY(expect(TokenType::kBlockEnd, "'%}'"));
  Body body = TRY(statements(ends));
  if (current().type == TokenType::kEnd) {
    return fail(fmt::format("unexpected end of template: '{}' is not closed",
                            open_tags_.empty() ? "a tag" : open_tags_.back()));
  }
  if (drop_end) take();
  return body;
}

// Parses up to a tag whose name is in `ends`; that name is then the current token.
Result<Body> Parser::statements(std::initializer_list<std::string_view> ends) {
  Level level(*this);
  TRY(check_nesting());
  Body body;
  while (current().type != TokenType::kEnd) {
    const Token& token = take();
    if (token.type == TokenType::kText) {
      Stmt* text = new_stmt(StmtKind::kText, token.line);
      text->text = token.text;
      body.push_back(text);
    } else if (token.type == TokenType::kPrintBegin) {
      body.push_back(TRY(output(TRY(tuple({})))));
      TRY(expect(TokenType::kPrintEnd, "'}}'"));
    } else if (token.type == TokenType::kBlockBegin) {
      bool is_end = current().type == TokenType::kName &&
                    std::find(ends.begin(), ends.end(), current().text) != ends.end();
      if (is_end) return body;
      body.push_back(TRY(statement()));
      TRY(expect(TokenType::kBlockEnd, "'%}'"));
    } else {
      return fail(fmt::format("unexpected '{}'", describe(token)), token.line);
    }
  }
  return body;
}

Result<Stmt*> Parser::output(const Expr* value) {
  Stmt* stmt = new_stmt(StmtKind::kPrint, value->line);
  stmt->value = value;
  return stmt;
}

Result<const Stmt*> Parser::statement() {
  using Method = Result<const Stmt*> (Parser::*)();
  static const std::map<std::string_view, Method> kTags = {
      {"if", &Parser::if_statement},       {"for", &Parser::for_statement},
      {"set", &Parser::set_statement},     {"macro", &Parser::macro_statement},
      {"call", &Parser::call_statement},   {"filter", &Parser::filter_statement},
      {"with", &Parser::with_statement},   {"generation", &Parser::generation_statement},
      {"print", &Parser::print_statement}, {"autoescape", &Parser::autoescape_statement},
  };
  if (current().type != TokenType::kName) return fail("expected a tag's name");
  std::string_view name = current().text;
  if (name == "break") return jump_statement(StmtKind::kBreak);
  if (name == "continue") return jump_statement(StmtKind::kContinue);
  for (std::string_view refused : {"include", "import", "from", "extends", "block"}) {
    if (name == refused) {
      return unsupported(
          "chat template, line {}: the tag '{}' is not supported, since it loads other templates",
          current().line, name);
    }
  }
  auto found = kTags.find(name);
  if (found == kTags.end()) return fail(fmt::format("unknown tag '{}'", name.substr(0, 80)));
  open_tags_.push_back(name);
  const Stmt* result = TRY((this->*found->second)());
  open_tags_.pop_back();
  return result;
}

Result<const Stmt*> Parser::print_statement() {
  Stmt* group = new_stmt(StmtKind::kScope, take().line);
  group->kind = StmtKind::kIf;  // no branch: the otherwise body runs, in the enclosing scope
  while (current().type != TokenType::kBlockEnd) {
    if (!group->otherwise.empty()) TRY(expect_operator(","));
    group->otherwise.push_back(TRY(output(TRY(expression()))));
  }
  return group;
}

Result<const Stmt*> Parser::if_statement() {
  Stmt* stmt = new_stmt(StmtKind::kIf, take().line);
  while (true) {
    Branch branch;
    branch.condition = TRY(tuple({.conditional = false}));
    branch.body = TRY(body_until({"elif", "else", "endif"}, false));
    stmt->branches.push_back(std::move(branch));
    std::string_view end = take().text;
    if (end == "elif") continue;
    if (end == "else") stmt->otherwise = TRY(body_until({"endif"}, true));
    return stmt;
  }
}

Result<const Stmt*> Parser::for_statement() {
  Stmt* stmt = new_stmt(StmtKind::kFor, take().line);
  ++loops_lexical_;
  stmt->target = TRY(target({.targets_only = true}));
  TRY(expect_name("in"));
  stmt->value = TRY(tuple({.conditional = false}));
  if (skip_name("if")) stmt->condition = TRY(expression());
  stmt->recursive = skip_name("recursive");
  ++loops_;
  stmt->body = TRY(body_until({"endfor", "else"}, false));
  --loops_;
  if (take().text == "else") stmt->otherwise = TRY(body_until({"endfor"}, true));
  --loops_lexical_;
  return stmt;
}

Result<const Stmt*> Parser::set_statement() {
  Stmt* stmt = new_stmt(StmtKind::kSet, take().line);
  stmt->target = TRY(target({.targets_only = true, .namespaces = true}));
  if (skip_operator("=")) {
    stmt->value = TRY(tuple({}));
    return stmt;
  }
  stmt->kind = StmtKind::kSetBlock;
  while (skip_operator("|")) stmt->filters.push_back(TRY(filter(nullptr)));
  stmt->body = TRY(body_until({"endset"}, true));
  return stmt;
}

Status Parser::signature(Stmt& stmt) {
  TRY(expect_operator("("));
  std::unordered_set<Symbol> seen;
  while (!current().is_operator(")")) {
    if (!stmt.parameters.empty()) TRY(expect_operator(","));
    Parameter parameter;
    parameter.name = TRY(take_name());
    parameter.symbol = ast_.intern(parameter.name);
    if (skip_operator("=")) {
      parameter.otherwise = TRY(expression());
    } else if (!stmt.parameters.empty() && stmt.parameters.back().otherwise != nullptr) {
      return fail("non-default argument follows default argument");
    }
    if (!seen.insert(parameter.symbol).second) {
      return fail(fmt::format("the parameter '{}' appears twice", parameter.name));
    }
    stmt.parameters.push_back(parameter);
  }
  return expect_operator(")");
}

Result<Body> Parser::macro_body(Stmt& stmt, std::string_view end) {
  int loops = std::exchange(loops_, 0);
  macros_.emplace_back();
  Body body = TRY(body_until({end}, true));
  MacroUse use = macros_.back();
  macros_.pop_back();
  loops_ = loops;
  for (const Parameter& parameter : stmt.parameters) {
    if (use.caller && parameter.symbol == ast_.caller) {
      if (parameter.otherwise == nullptr) {
        return fail("the special argument 'caller' must be omitted or be given a default",
                    stmt.line);
      }
      stmt.explicit_caller = true;
    }
    if (parameter.symbol == ast_.kwargs) use.kwargs = false;
    if (parameter.symbol == ast_.varargs) use.varargs = false;
  }
  stmt.uses_caller = use.caller;
  stmt.uses_kwargs = use.kwargs;
  stmt.uses_varargs = use.varargs;
  return body;
}

Result<const Stmt*> Parser::macro_statement() {
  Stmt* stmt = new_stmt(StmtKind::kMacro, take().line);
  stmt->name = TRY(take_name());
  if (loops_lexical_ > 0 && stmt->name == "loop") return fail("'loop' cannot be assigned here");
  stmt->symbol = ast_.intern(stmt->name);
  TRY(signature(*stmt));
  stmt->body = TRY(macro_body(*stmt, "endmacro"));
  return stmt;
}

Result<const Stmt*> Parser::call_statement() {
  Stmt* stmt = new_stmt(StmtKind::kCall, take().line);
  if (current().is_operator("(")) TRY(signature(*stmt));
  stmt->value = TRY(expression());
  if (stmt->value->kind != ExprKind::kCall) return fail("expected a call", stmt->line);
  stmt->body = TRY(macro_body(*stmt, "endcall"));
  return stmt;
}

Result<const Stmt*> Parser::filter_statement() {
  Stmt* stmt = new_stmt(StmtKind::kFilter, take().line);
  do {
    stmt->filters.push_back(TRY(filter(nullptr)));
  } while (skip_operator("|"));
  stmt->body = TRY(body_until({"endfilter"}, true));
  return stmt;
}

Result<const Stmt*> Parser::with_statement() {
  Stmt* stmt = new_stmt(StmtKind::kWith, take().line);
  while (current().type != TokenType::kBlockEnd && !current().is_operator(":")) {
    if (!stmt->bindings.empty()) TRY(expect_operator(","));
    Binding binding;
    binding.target = TRY(target({.targets_only = true}));
    TRY(expect_operator("="));
    binding.value = TRY(expression());
    stmt->bindings.push_back(binding);
  }
  stmt->body = TRY(body_until({"endwith"}, true));
  return stmt;
}

Result<const Stmt*> Parser::generation_statement() {
  Stmt* stmt = new_stmt(StmtKind::kScope, take().line);
  stmt->body = TRY(macro_body(*stmt, "endgeneration"));
  return stmt;
}

Result<const Stmt*> Parser::autoescape_statement() {
  Stmt* stmt = new_stmt(StmtKind::kScope, take().line);
  const Expr* on = TRY(expression());
  if (on->kind != ExprKind::kConstant || truth(on->constant)) {
    return unsupported("chat template, line {}: automatic escaping can only be off", stmt->line);
  }
  stmt->body = TRY(body_until({"endautoescape"}, true));
  return stmt;
}

Result<const Stmt*> Parser::jump_statement(StmtKind kind) {
  const Token& token = take();
  if (loops_ == 0) return fail(fmt::format("'{}' outside a loop", token.text), token.line);
  return new_stmt(kind, token.line);
}

Symbol Ast::intern(std::string_view name) {
  auto [found, fresh] = symbols.try_emplace(name, static_cast<Symbol>(names.size()));
  if (fresh) names.push_back(name);
  return found->second;
}

Result<std::unique_ptr<Ast>> parse_template(std::string_view source, int nesting_max) {
  if (unicode::first_invalid(source)) return corrupt("chat template: the text is not UTF-8");
  auto ast = std::make_unique<Ast>();
  ast->source = normalize_source(source);
  ast->loop = ast->intern("loop");
  ast->caller = ast->intern("caller");
  ast->kwargs = ast->intern("kwargs");
  ast->varargs = ast->intern("varargs");
  Parser parser(*ast, TRY(tokenize(ast->source, ast->heap)), nesting_max);
  TRY(parser.run());
  TRY(check_names(*ast));
  return ast;
}

}  // namespace banyan::jinja
