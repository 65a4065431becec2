// Grammars of a call's arguments where they are not JSON: between tags, or as literals. They are
// structural tag formats (llm/structural.h).
//
// Stateless; thread-safe.
#pragma once

#include <initializer_list>
#include <span>
#include <string>
#include <string_view>

#include "llm/messages/tool_calls.h"

namespace banyan {

// The elements of a sequence that spells `texts`.
Json text_elements(std::initializer_list<std::string_view> texts);

// All arguments of `tool`. kUnsupported names what the format cannot enforce in a strict tool.
Result<Json> tagged_arguments(const ToolCallFormat& format, const Tool& tool);
// Without the brackets around them; any arguments unless `enforced`.
Result<Json> literal_arguments(const ToolCallFormat& format, const Tool& tool, bool enforced);

// What both share.

// Rules for strings that no grammar of free text between marks enforces.
inline constexpr std::string_view kStringRules[] = {"minLength", "maxLength", "pattern", "format",
                                                    "anyOf",     "oneOf",     "allOf",   "$ref"};
// Rules that the grammar cannot enforce on lists and objects in a format's own notation.
inline constexpr std::string_view kStructureRules[] = {
    "anyOf",       "oneOf",       "allOf",
    "$ref",        "minItems",    "maxItems",
    "uniqueItems", "prefixItems", "patternProperties"};
// kUnsupported if `schema` has one of `rules`.
Result<void> check_enforceable(const ToolCallFormat& format, const Json& schema,
                               std::span<const std::string_view> rules, const std::string& place);

struct Members {
  Json properties, required;
  bool must(const std::string& key) const;
};
// The members of an object; kInvalidArgument if they are declared wrongly.
Result<Members> members_of(const Json& schema, const std::string& place);

// A value as JSON, with the definitions of the tool's schema.
Json json_value(const Json& schema, const Json& root);

}  // namespace banyan
