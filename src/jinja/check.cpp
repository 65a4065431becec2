#include "jinja/check.h"

namespace banyan::jinja {
namespace {

Status check_expr(const Expr* expr, bool branch) {
  if (expr == nullptr) return {};
  bool named = expr->kind == ExprKind::kFilter || expr->kind == ExprKind::kTest;
  if (named && expr->builtin == nullptr && !branch) {
    return invalid_argument("chat template, line {}: No {} named '{}'", expr->line,
                            expr->kind == ExprKind::kFilter ? "filter" : "test", expr->name);
  }
  branch |= expr->kind == ExprKind::kConditional;
  TRY(check_expr(expr->base, branch));
  for (const Expr* item : expr->items) TRY(check_expr(item, branch));
  for (const NamedExpr& keyword : expr->keywords) TRY(check_expr(keyword.value, branch));
  TRY(check_expr(expr->star, branch));
  return check_expr(expr->double_star, branch);
}

Status check_body(const Body& body, bool branch);

Status check_stmt(const Stmt& stmt, bool branch) {
  bool is_if = stmt.kind == StmtKind::kIf;
  // A loop's iterable and the value of a set belong to the enclosing frame; bodies open a new one.
  TRY(check_expr(stmt.value, branch));
  TRY(check_expr(stmt.condition, false));
  for (const Expr* filter : stmt.filters) TRY(check_expr(filter, false));
  for (const Parameter& parameter : stmt.parameters) TRY(check_expr(parameter.otherwise, false));
  for (const Binding& binding : stmt.bindings) TRY(check_expr(binding.value, branch));
  for (const Branch& arm : stmt.branches) {
    TRY(check_expr(arm.condition, true));
    TRY(check_body(arm.body, true));
  }
  TRY(check_body(stmt.body, false));
  return check_body(stmt.otherwise, is_if && (branch || !stmt.branches.empty()));
}

Status check_body(const Body& body, bool branch) {
  for (const Stmt* stmt : body) TRY(check_stmt(*stmt, branch));
  return {};
}

}  // namespace

Status check_names(const Ast& ast) {
  return check_body(ast.body, false);
}

}  // namespace banyan::jinja
