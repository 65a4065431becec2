// JSON schemas as rules over the compact spelling of JSON: properties in the schema's order, those
// that it does not name after them, one spelling for each name.
#pragma once

#include "banyan/grammar.h"
#include "base/json.h"
#include "grammar/rules.h"

namespace banyan {

// In the flexible mode a space, or a line break and so many spaces or tabs, may stand at each
// place: what formatters write, and little enough that a model cannot lose itself in it.
constexpr int kJsonIndentMax = 20;

// Rule 0 is a value of `schema`. An assertion that cannot be enforced is an error that names it and
// where it stands.
Result<Rules> rules_of_json_schema(const Json& schema, const JsonSchemaOptions& options,
                                   Budget& budget);

}  // namespace banyan
