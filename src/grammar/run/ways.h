// How many ways a text may go on at one place of a grammar: what a parser must hold at once when it
// gets there. Grammars with more than it holds are refused, as it would lose the rest.
#pragma once

#include "banyan/status.h"
#include "grammar/automaton.h"
#include "grammar/budget.h"

namespace banyan {

// kExhausted when some place has more than Parser::kConfigurationsMax ways.
//
// A place that several others lead to at once, in an ambiguous grammar, may still have more: then
// the parser gives up the last of them.
Status check_ways(const Automaton& automaton, Budget& budget);

}  // namespace banyan
