// Counts the alternatives at each place of a grammar, which a parser must hold at once. Rejects
// grammars with more alternatives than the parser can hold, since it would drop the rest.
#pragma once

#include "banyan/status.h"
#include "grammar/automaton.h"
#include "grammar/budget.h"

namespace banyan {

// Returns kExhausted if some place has more than Parser::kConfigurationsMax alternatives.
//
// In an ambiguous grammar, a place reached from several others at once may still exceed it; the
// parser then drops the last alternatives.
Status check_ways(const Automaton& automaton, Budget& budget);

}  // namespace banyan
