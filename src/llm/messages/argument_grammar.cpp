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

// A value between tags: strings are written literally, all else as JSON.
class TaggedValue {
 public:
  TaggedValue(const ToolCallFormat& format, const Tool& tool)
      : parameter_(format.parameter), format_(format), tool_(tool) {}

  // With its end.
  Result<Json> value(const Json& schema, const std::string& place) const {
    if (schema.is_object() && (schema.contains("enum") || schema.contains("const"))) {
      return constants(schema, place);
    }
    if (!may_be_string(schema)) return other(schema);
    if (tool_.strict) TRY(check_enforceable(format_, schema, kStringRules, place));
    bool always = schema.is_object() && schema.value("type", Json()) == "string";
    if (always || parameter_.if_other.empty()) return string();
    return either({string(), other(schema)});
  }

 private:
  Result<Json> constants(const Json& schema, const std::string& place) const {
    Json values = schema.value("enum", Json::array());
    if (schema.contains("const")) values = Json::array({schema["const"]});
    Json ways = Json::array();
    for (const Json& value : values) {
      bool string = value.is_string();
      Json text = constant(string ? value.get<std::string>() : value.dump());
      ways.push_back(between(string, std::move(text), parameter_.end));
    }
    if (ways.empty()) return invalid_argument("{}: enum must not be empty", place);
    return either(std::move(ways));
  }

  Json string() const {
    std::string_view end = parameter_.end;
    size_t mark = end.find('<'), rest = end.find('>', mark) + 1;
    return between(true, tag("", any_text(), end.substr(mark, rest - mark)), end.substr(rest));
  }

  Json other(const Json& schema) const {
    return between(false, json_value(schema, tool_.parameters), parameter_.end);
  }

  // `value` after the mark of its kind, and `end`.
  Json between(bool string, Json value, std::string_view end) const {
    Json elements = text_elements({string ? parameter_.if_string : parameter_.if_other});
    elements.push_back(std::move(value));
    append_text(end, elements);
    return sequence(std::move(elements));
  }

  const ToolCallFormat::Parameter& parameter_;
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
  Json elements = Json::array();
  Members members = TRY(members_of(tool.parameters, tool.name));
  TaggedValue values(format, tool);
  for (const auto& [key, schema] : members.properties.items()) {
    Json one = text_elements({format.parameter.begin});
    one.push_back(constant(key));
    append_text(format.parameter.after_key, one);
    one.push_back(TRY(values.value(schema, tool.name + "/properties/" + key)));
    Json whole = sequence(std::move(one));
    elements.push_back(members.must(key) ? std::move(whole) : optional(std::move(whole)));
  }
  if (elements.empty()) return constant("");
  return sequence(std::move(elements));
}

}  // namespace banyan
