// Grammars as people write them: llama.cpp's GBNF, of which the EBNF of xgrammar and SGLang is a
// form.
//
//   root ::= greeting " " name{1,3} "!"     # a comment
//   greeting ::= "hello" | "good " ("day" | "night")
//   name ::= [A-Z] [a-z]*
//
// A rule goes on to the next `name ::=`, whatever the lines. Left recursion within a rule is turned
// into repetition; by way of other rules it is refused by name.
#pragma once

#include <string_view>

#include "banyan/status.h"
#include "grammar/budget.h"
#include "grammar/rules.h"

namespace banyan {

Result<Rules> rules_of_ebnf(std::string_view source, std::string_view root, Budget& budget);

}  // namespace banyan
