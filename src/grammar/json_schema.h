// JSON schemas as rules over the compact spelling of JSON: properties in the schema's order, those
// that it does not name after them, one spelling for each name.
#pragma once

#include "banyan/grammar.h"
#include "base/json.h"
#include "grammar/rules.h"

namespace banyan {

// Whitespace characters that may stand at one place in the flexible mode.
constexpr int kJsonSpacesMax = 32;

// Rule 0 is a value of `schema`. An assertion that cannot be enforced is an error that names it and
// where it stands.
Result<Rules> rules_of_json_schema(const Json& schema, const JsonSchemaOptions& options,
                                   Budget& budget);

}  // namespace banyan
