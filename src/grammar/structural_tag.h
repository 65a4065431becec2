// Structural tags: free text until a trigger, then a tagged part that follows a grammar, then free
// text again.
#pragma once

#include <string>
#include <vector>

#include "banyan/grammar.h"
#include "base/json.h"
#include "grammar/rules.h"

namespace banyan {

// `description` is {"type": "structural_tag", ...} with either `structures` and `triggers`, or a
// `format` (const_string, any_text, regex, grammar, json_schema, sequence, or, tag, triggered_tags,
// tags_with_separator).
Result<Rules> rules_of_structural_tag(const Json& description, const JsonSchemaOptions& options,
                                      Budget& budget);

// Text up to and including the first occurrence of any of `tags`, which must be tags[which], either
// as text or as the special token of that name.
Result<ExpressionId> free_text_until(Rules& rules, const std::vector<std::string>& tags,
                                     size_t which, Budget& budget);
// Text that contains none of `tags`.
Result<ExpressionId> free_text_without(Rules& rules, const std::vector<std::string>& tags,
                                       Budget& budget);

}  // namespace banyan
