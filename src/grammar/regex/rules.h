// A regex as rules: one automaton when that is small, otherwise its parts, with repetitions as
// counters.
#pragma once

#include "grammar/regex/regex.h"
#include "grammar/rules.h"

namespace banyan {

Result<ExpressionId> add_regex(Rules& rules, const Regex& regex, Budget& budget);

// `rules` with expressions that need neither stack nor counter made into automata, and rules that
// do not call themselves written out where they are called, as far as both stay small.
Result<Rules> compact(const Rules& rules, Budget& budget);

}  // namespace banyan
