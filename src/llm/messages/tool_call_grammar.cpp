// Grammars of tool calls: translates each format's entry to structural tags.
#include <algorithm>

#include "base/error.h"
#include "base/quote.h"
#include "llm/messages/tool_calls.h"
#include "llm/structural.h"

namespace banyan {
namespace {

using namespace structural;

const Json kAnyObject = {{"type", "object"}};

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

Json text_elements(std::initializer_list<std::string_view> texts) {
  Json elements = Json::array();
  for (std::string_view text : texts) append_text(text, elements);
  return elements;
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
  if (!may_be_string(schema)) {
    Json whole = schema;
    for (const char* key : {"$defs", "definitions"}) {
      if (root.contains(key) && !whole.contains(key)) whole[key] = root[key];
    }
    return with_end(structural::schema(whole));
  }
  if (strict && schema.is_object()) {
    for (const char* key :
         {"minLength", "maxLength", "pattern", "format", "anyOf", "oneOf", "allOf", "$ref"}) {
      if (!schema.contains(key)) continue;
      return unsupported(
          "{}: {} cannot be enforced in calls of the format {}; leave it out, or "
          "leave out strict",
          place, key, format.name);
    }
  }
  size_t mark = end.find('<');
  Json rest = text_elements({end.substr(end.find('>', mark) + 1)});
  Json elements =
      Json::array({tag("", any_text(), end.substr(mark, end.find('>', mark) + 1 - mark))});
  for (const Json& element : rest) elements.push_back(element);
  return sequence(std::move(elements));
}

Result<Json> tagged_arguments(const ToolCallFormat& format, const Tool& tool, bool enforced) {
  Json elements = Json::array();
  const Json& properties = tool.parameters.value("properties", Json::object());
  const Json& required = tool.parameters.value("required", Json::array());
  if (!properties.is_object() || !required.is_array()) {
    return invalid_argument("{}: properties must be an object, required a list", tool.name);
  }
  for (const auto& [key, schema] : properties.items()) {
    std::string place = tool.name + "/properties/" + key;
    Json one = text_elements({format.parameter.begin});
    one.push_back(constant(key));
    for (const Json& element : text_elements({format.parameter.after_key})) one.push_back(element);
    one.push_back(TRY(tagged_value(format, schema, tool.parameters, place, enforced)));
    Json whole = sequence(std::move(one));
    bool must = std::ranges::find(required, Json(key)) != required.end();
    elements.push_back(must ? std::move(whole) : optional(std::move(whole)));
  }
  if (elements.empty()) return constant("");
  return sequence(std::move(elements));
}

// Everything in a call between `begin` and `end`.
Result<Json> call_content(const ToolCallFormat& format, const Tool& tool, bool enforced) {
  const Json& schema = enforced ? tool.parameters : kAnyObject;
  Json elements = text_elements({format.before_name});
  if (format.style == ToolCallFormat::Style::kEnvelope) {
    elements.push_back(constant("{\"name\": " + Json(tool.name).dump() + ", \"" +
                                std::string(format.arguments) + "\": "));
    elements.push_back(structural::schema(schema));
    elements.push_back(constant("}"));
  } else {
    elements.push_back(constant(tool.name));
    if (format.numbered) elements.push_back({{"type", "regex"}, {"pattern", ":[0-9]{1,3}"}});
    for (const Json& element : text_elements({format.after_name})) elements.push_back(element);
    bool tagged = format.style == ToolCallFormat::Style::kTagged;
    elements.push_back(tagged ? TRY(tagged_arguments(format, tool, tool.strict))
                              : structural::schema(schema));
  }
  for (const Json& element : text_elements({format.close})) elements.push_back(element);
  return sequence(std::move(elements));
}

Result<Json> harmony_grammar(std::span<const Tool> tools, const ToolRules& rules) {
  Json ways = Json::array();
  if (!rules.required) {
    ways.push_back(sequence(
        {constant("<|channel|>"), constant("final"), constant("<|message|>"), any_text()}));
  }
  for (const Tool& tool : tools) {
    ways.push_back(sequence(
        {constant("<|channel|>"), constant("commentary to=functions." + tool.name + " "),
         constant("<|constrain|>"), constant("json"), constant("<|message|>"),
         structural::schema(rules.required || tool.strict ? tool.parameters : kAnyObject)}));
  }
  return either(std::move(ways));
}

// A parse error in the caller's JSON is the caller's error.
Result<Json> read_json(std::string_view text, std::string_view what) {
  const JsonLimits kLimits = {.depth_max = 128, .keys_per_object_max = 65'536};
  Result<Json> json = parse_json(text, what, kLimits);
  if (!json) return invalid_argument("{}", json.error().message);
  return json;
}

// Converts {"structures": [{begin, schema, end}], "triggers": [...]} to the newer form with a
// format.
Result<Json> newer_structural_tag(const Json& older) {
  if (!older.is_object() || !older.contains("structures") || !older["structures"].is_array()) {
    return invalid_argument("a structural tag needs `format`, or `structures` and `triggers`");
  }
  Json tags = Json::array();
  for (const Json& structure : older["structures"]) {
    if (!structure.is_object()) return invalid_argument("structures must be a list of objects");
    tags.push_back({{"type", "tag"},
                    {"begin", structure.value("begin", Json())},
                    {"content", structural::schema(structure.value("schema", Json::object()))},
                    {"end", structure.value("end", Json())}});
  }
  return Json{{"type", "triggered_tags"},
              {"triggers", older.value("triggers", Json())},
              {"tags", std::move(tags)}};
}

}  // namespace

Result<Json> tool_call_grammar(const ToolCallFormat& format, std::span<const Tool> tools,
                               const ToolRules& rules) {
  if (format.style == ToolCallFormat::Style::kHarmony) return harmony_grammar(tools, rules);
  Json tags = Json::array();
  for (const Tool& tool : tools) {
    Json content = TRY(call_content(format, tool, rules.required || tool.strict));
    tags.push_back(tag(format.begin, std::move(content), format.end));
  }
  bool once = !rules.parallel || format.end.empty();
  Json calls = {{"type", "tags_with_separator"},
                {"tags", tags},
                {"separator", format.section_begin.empty() ? "\n" : ""},
                {"at_least_one", true},
                {"stop_after_first", once}};
  bool section = !format.section_begin.empty();
  if (section) {
    calls = tag(format.section_begin,
                sequence({optional(constant("\n")), std::move(calls), optional(constant("\n"))}),
                format.section_end);
  }
  if (rules.required) return calls;
  return Json{{"type", "triggered_tags"},
              {"triggers", {section ? format.section_begin : format.begin}},
              {"tags", section ? Json::array({std::move(calls)}) : std::move(tags)},
              {"at_least_one", false},
              {"stop_after_first", section || once}};
}

Result<Json> structural_format(const GrammarSource& source) {
  using Kind = GrammarSource::Kind;
  switch (source.kind) {
    case Kind::kRegex:
      return Json{{"type", "regex"}, {"pattern", source.text}};
    case Kind::kEbnf:
      return Json{{"type", "grammar"}, {"grammar", source.text}};
    case Kind::kJsonObject:
      return structural::schema({{"type", "object"}});
    case Kind::kJsonSchema:
      return structural::schema(TRY(read_json(source.text, "the JSON schema")));
    case Kind::kStructuralTag: {
      Json tag = TRY(read_json(source.text, "the structural tag"));
      if (tag.is_object() && tag.contains("format")) return std::move(tag["format"]);
      return newer_structural_tag(tag);
    }
    case Kind::kChoices:
      break;
  }
  Json ways = Json::array();
  Json list = TRY(read_json(source.text, "the choices"));
  if (!list.is_array() || list.empty()) return invalid_argument("the choices must not be empty");
  for (const Json& choice : list) {
    if (!choice.is_string() || choice == "") {
      return invalid_argument("the choices must be a list of non-empty strings");
    }
    ways.push_back(constant(choice.get<std::string>()));
  }
  return either(std::move(ways));
}

}  // namespace banyan
