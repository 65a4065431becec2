// Parser for llama.cpp's GBNF, which also covers the EBNF of xgrammar and SGLang.
//
//   root ::= greeting " " name{1,3} "!"     # a comment
//   greeting ::= "hello" | "good " ("day" | "night")
//   name ::= [A-Z] [a-z]*
//
// A rule extends to the next `name ::=`, regardless of line breaks. Direct left recursion becomes
// repetition; indirect left recursion is rejected with the rule's name.
#pragma once

#include <string_view>

#include "banyan/status.h"
#include "grammar/budget.h"
#include "grammar/rules.h"

namespace banyan {

Result<Rules> rules_of_ebnf(std::string_view source, std::string_view root, Budget& budget);

}  // namespace banyan
