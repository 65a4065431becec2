#include "llm/messages/argument_grammar.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/error.h"
#include "llm/structural.h"

namespace banyan {
namespace {

using namespace structural;

// The size of the marker at the front of `text` that may be a special token: <|...|>, <｜...｜> or
// [NAME]; 0: none.
size_t marker_size(std::string_view text) {
  constexpr std::array<std::array<std::string_view, 2>, 3> kBrackets = {
      {{"<|", "|>"}, {"<｜", "｜>"}, {"[", "]"}}};
  for (auto [begin, end] : kBrackets) {
    size_t at = text.find(end);
    if (text.starts_with(begin) && at != text.npos) return at + end.size();
  }
  return 0;
}

// Such markers become elements of their own, and line breaks become optional.
void append_text(std::string_view text, Json& elements) {
  while (!text.empty()) {
    size_t size = marker_size(text);
    if (size == 0) size = std::min(text.find_first_of("\n<[", 1), text.size());
    if (text[0] == '\n') {
      size = 1;
      elements.push_back(optional(constant("\n")));
    } else {
      elements.push_back(constant(text.substr(0, size)));
    }
    text.remove_prefix(size);
  }
}

bool may_be_string(const Json& schema) {
  if (!schema.is_object()) return true;
  auto type = schema.find("type");
  if (type == schema.end()) return !schema.contains("enum") && !schema.contains("const");
  if (type->is_array()) return std::ranges::find(*type, "string") != type->end();
  return *type == "string";
}

// Arguments between tags: strings are written literally, all else as JSON or, in formats with
// nested tags, member by member.
class TaggedGrammar {
 public:
  TaggedGrammar(const ToolCallFormat& format, const Tool& tool)
      : tags_(format.parameter), format_(format), tool_(tool) {}

  // Of all arguments, or of an object.
  Result<Json> members(const Json& schema, const std::string& place) const {
    Json elements = Json::array();
    Members members = TRY(members_of(schema, place));
    for (const auto& [key, value_schema] : members.properties.items()) {
      Json one = TRY(parameter(key, value_schema, place + "/properties/" + key));
      elements.push_back(members.must(key) ? std::move(one) : optional(std::move(one)));
    }
    if (elements.empty()) return constant("");
    return sequence(std::move(elements));
  }

 private:
  Result<Json> parameter(const std::string& key, const Json& schema,
                         const std::string& place) const {
    Json elements = text_elements({tags_.begin});
    elements.push_back(constant(key));
    append_text(tags_.after_key, elements);
    std::string end(tags_.end);
    if (tags_.nested) end += key + std::string(tags_.after_key);
    elements.push_back(TRY(value(schema, end, place)));
    return sequence(std::move(elements));
  }

  // With its end.
  Result<Json> value(const Json& schema, std::string_view end, const std::string& place) const {
    if (schema.is_object() && (schema.contains("enum") || schema.contains("const"))) {
      return constants(schema, end, place);
    }
    const Json type = schema.is_object() ? schema.value("type", Json()) : Json();
    bool structured = type == "object" || type == "array";
    if (tags_.nested && structured) return nested(schema, end, place);
    if (!may_be_string(schema)) return other(schema, end);
    if (tool_.strict) TRY(check_enforceable(format_, schema, kStringRules, place));
    if (type == "string" || tags_.if_other.empty()) return string(end, type == "string");
    return either({string(end, false), other(schema, end)});
  }

  Result<Json> nested(const Json& schema, std::string_view end, const std::string& place) const {
    if (tool_.strict) TRY(check_enforceable(format_, schema, kStructureRules, place));
    if (schema["type"] == "array") {
      Json item = TRY(parameter("item", schema.value("items", Json(true)), place + "/items"));
      return between(false, separated(std::move(item), ""), end);
    }
    if (!schema.contains("properties")) return string(end, false);
    return between(false, TRY(members(schema, place)), end);
  }

  Result<Json> constants(const Json& schema, std::string_view end, const std::string& place) const {
    Json values = schema.value("enum", Json::array());
    if (schema.contains("const")) values = Json::array({schema["const"]});
    Json ways = Json::array();
    for (const Json& value : values) {
      bool string = value.is_string();
      Json text = constant(string ? value.get<std::string>() : value.dump());
      ways.push_back(between(string, std::move(text), end));
    }
    if (ways.empty()) return invalid_argument("{}: enum must not be empty", place);
    return either(std::move(ways));
  }

  // Free text up to the first tag of `end`. A value that is `always` a string has no tag in it.
  Json string(std::string_view end, bool always) const {
    size_t begin = end.find('<'), size = end.find('>', begin) + 1 - begin;
    if (tags_.nested) {
      begin = 0;
      size = always ? tags_.begin.size() : end.size();
    }
    std::string_view mark = end.substr(begin, size), rest = end.substr(begin + size);
    return between(true, tag("", any_text(), mark), rest);
  }

  Json other(const Json& schema, std::string_view end) const {
    return between(false, json_value(schema, tool_.parameters), end);
  }

  // `value` after the mark of its kind, and `end`.
  Json between(bool string, Json value, std::string_view end) const {
    Json elements = text_elements({string ? tags_.if_string : tags_.if_other});
    elements.push_back(std::move(value));
    append_text(end, elements);
    return sequence(std::move(elements));
  }

  const ToolCallFormat::Parameter& tags_;
  const ToolCallFormat& format_;
  const Tool& tool_;
};

}  // namespace

Json text_elements(std::initializer_list<std::string_view> texts) {
  Json elements = Json::array();
  for (std::string_view text : texts) append_text(text, elements);
  return elements;
}

Json json_value(const Json& schema, const Json& root) {
  Json whole = schema;
  for (const char* key : {"$defs", "definitions"}) {
    if (whole.is_object() && root.contains(key) && !whole.contains(key)) whole[key] = root[key];
  }
  return structural::schema(whole);
}

Result<void> check_enforceable(const ToolCallFormat& format, const Json& schema,
                               std::span<const std::string_view> rules, const std::string& place) {
  if (!schema.is_object()) return {};
  for (std::string_view key : rules) {
    if (!schema.contains(key)) continue;
    return unsupported(
        "{}: {} cannot be enforced in calls of the format {}; leave it out, or leave out strict",
        place, key, format.name);
  }
  return {};
}

bool Members::must(const std::string& key) const {
  return std::ranges::find(required, Json(key)) != required.end();
}

Result<Members> members_of(const Json& schema, const std::string& place) {
  Members members{.properties = schema.value("properties", Json::object()),
                  .required = schema.value("required", Json::array())};
  if (!members.properties.is_object() || !members.required.is_array()) {
    return invalid_argument("{}: properties must be an object, required a list", place);
  }
  return members;
}

Result<Json> tagged_arguments(const ToolCallFormat& format, const Tool& tool) {
  return TaggedGrammar(format, tool).members(tool.parameters, tool.name);
}

}  // namespace banyan
