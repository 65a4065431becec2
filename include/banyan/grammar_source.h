// The source text of a grammar, as a request carries it. banyan/grammar.h compiles it.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <tuple>
#include <utility>

namespace banyan {

struct JsonSchemaOptions {
  // When true, an assertion that cannot be enforced or an unknown `format` is an error. Otherwise
  // the assertions listed by `relaxed` in json_schema.cpp are dropped, and Grammar::notes() lists
  // them.
  bool strict = true;
  // Allows a space, or a line break with indentation, wherever JSON allows whitespace. Otherwise
  // separators are compact: {"a":1,"b":[2,3]}.
  bool flexible_whitespace = false;
  // An object with `properties` has only those, as in vLLM, SGLang, llama.cpp and OpenAI's strict
  // schemas, unless its schema mentions others (additionalProperties, patternProperties,
  // propertyNames, minProperties).
  bool disable_additional_properties = true;
};

struct GrammarSource {
  enum class Kind : uint8_t { kRegex, kJsonSchema, kJsonObject, kEbnf, kChoices, kStructuralTag };

  Kind kind = Kind::kJsonObject;
  std::string text;  // kJsonObject: empty; kChoices: a JSON array of strings
  JsonSchemaOptions json = {};
  std::string after = {};  // if not empty, free text up to this tag comes first

  static GrammarSource regex(std::string text) { return {Kind::kRegex, std::move(text)}; }
  static GrammarSource json_schema(std::string text) {
    return {Kind::kJsonSchema, std::move(text)};
  }
  static GrammarSource ebnf(std::string text) { return {Kind::kEbnf, std::move(text)}; }

  auto operator<=>(const GrammarSource& other) const { return key() <=> other.key(); }
  bool operator==(const GrammarSource& other) const { return key() == other.key(); }

 private:
  std::tuple<Kind, bool, bool, bool, const std::string&, const std::string&> key() const {
    return {kind,  json.strict, json.flexible_whitespace, json.disable_additional_properties,
            after, text};
  }
};

}  // namespace banyan
