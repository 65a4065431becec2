// Converts JSON schemas to rules over compact JSON: properties in the schema's order, then unnamed
// ones, with one spelling for each name.
#pragma once

#include "banyan/grammar.h"
#include "base/json.h"
#include "grammar/rules.h"

namespace banyan {

// In flexible mode each gap may hold a space, or a line break and up to this many spaces or tabs.
// That covers what formatters write and keeps a model from emitting endless whitespace.
constexpr int kJsonIndentMax = 20;

// Rule 0 is a value of `schema`. An assertion that cannot be enforced is an error with its name and
// location.
Result<Rules> rules_of_json_schema(const Json& schema, const JsonSchemaOptions& options,
                                   Budget& budget);

}  // namespace banyan
