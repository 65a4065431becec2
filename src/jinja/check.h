// What Jinja's compiler refuses beyond syntax.
#pragma once

#include "jinja/ast.h"

namespace banyan::jinja {

// Unknown filters and tests, except in branches (of if, and of conditional expressions): those are
// errors only when they run, so that a template may ask `'x' is filter` first.
Status check_names(const Ast& ast);

}  // namespace banyan::jinja
