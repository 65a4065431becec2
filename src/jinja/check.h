// Errors of Jinja's compiler that are not syntax errors.
#pragma once

#include "jinja/ast.h"

namespace banyan::jinja {

// Reports unknown filters and tests, except in branches (of if and of conditional expressions).
// There they are errors only when executed, so that a template may test `'x' is filter` first.
Status check_names(const Ast& ast);

}  // namespace banyan::jinja
