// Converts a regex to rules: one automaton if it is small, otherwise its parts, with repetitions as
// counters.
#pragma once

#include "grammar/regex/regex.h"
#include "grammar/rules.h"

namespace banyan {

Result<ExpressionId> add_regex(Rules& rules, const Regex& regex, Budget& budget);

// Compiles expressions that need neither stack nor counter into automata, and inlines rules that do
// not call themselves, as long as both stay small.
Result<Rules> compact(const Rules& rules, Budget& budget);

}  // namespace banyan
