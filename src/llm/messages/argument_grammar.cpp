#include "llm/messages/argument_grammar.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "llm/structural.h"

namespace banyan {
namespace {

using namespace structural;

// Markers that may be special tokens (<|...|>, <｜...｜>, [NAME]) become elements of their own, and
// line breaks become optional.
void append_text(std::string_view text, Json& elements) {
  constexpr std::string_view kWide = "｜>";
  while (!text.empty()) {
    size_t size = std::min(text.find_first_of("\n<["), text.size());
    if (text[0] == '\n') {
      elements.push_back(optional(constant("\n")));
      text.remove_prefix(1);
      continue;
    }
    bool narrow = text.starts_with("<|"), wide = text.starts_with("<｜");
    if (narrow) size = text.find("|>") + 2;
    if (wide) size = text.find(kWide) + kWide.size();
    if (text[0] == '[') size = text.find(']') + 1;
    if (size == 0) size = std::min(text.find_first_of("\n<[", 1), text.size());
    elements.push_back(constant(text.substr(0, size)));
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

// A value between tags: strings are written literally, all else as JSON.
Result<Json> tagged_value(const ToolCallFormat& format, const Json& schema, const Json& root,
                          const std::string& place, bool strict) {
  std::string_view end = format.parameter.end;
  Json closing = text_elements({end});
  auto with_end = [&](Json value) {
    Json elements = Json::array({std::move(value)});
    for (const Json& element : closing) elements.push_back(element);
    return sequence(std::move(elements));
  };
  Json ways = Json::array();
  if (schema.is_object() && (schema.contains("enum") || schema.contains("const"))) {
    Json values = schema.value("enum", Json::array());
    if (schema.contains("const")) values = Json::array({schema["const"]});
    for (const Json& value : values) {
      ways.push_back(constant(value.is_string() ? value.get<std::string>() : value.dump()));
    }
    if (ways.empty()) return invalid_argument("{}: enum must not be empty", place);
    return with_end(either(std::move(ways)));
  }
  if (!may_be_string(schema)) return with_end(json_value(schema, root));
  if (strict) TRY(check_enforceable(format, schema, kStringRules, place));
  size_t mark = end.find('<');
  Json rest = text_elements({end.substr(end.find('>', mark) + 1)});
  Json elements =
      Json::array({tag("", any_text(), end.substr(mark, end.find('>', mark) + 1 - mark))});
  for (const Json& element : rest) elements.push_back(element);
  return sequence(std::move(elements));
}

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
  Json elements = Json::array();
  Members members = TRY(members_of(tool.parameters, tool.name));
  for (const auto& [key, schema] : members.properties.items()) {
    std::string place = tool.name + "/properties/" + key;
    Json one = text_elements({format.parameter.begin});
    one.push_back(constant(key));
    for (const Json& element : text_elements({format.parameter.after_key})) one.push_back(element);
    one.push_back(TRY(tagged_value(format, schema, tool.parameters, place, tool.strict)));
    Json whole = sequence(std::move(one));
    elements.push_back(members.must(key) ? std::move(whole) : optional(std::move(whole)));
  }
  if (elements.empty()) return constant("");
  return sequence(std::move(elements));
}

}  // namespace banyan
