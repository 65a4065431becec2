// Grammars of tool calls: translates each format's entry to structural tags.
#include <algorithm>

#include "base/error.h"
#include "base/quote.h"
#include "llm/messages/argument_grammar.h"
#include "llm/messages/tool_calls.h"
#include "llm/structural.h"

namespace banyan {
namespace {

using namespace structural;

const Json kAnyObject = {{"type", "object"}};

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
    using Style = ToolCallFormat::Style;
    if (format.style == Style::kTagged) {
      elements.push_back(TRY(tagged_arguments(format, tool)));
    } else if (format.style == Style::kLiteral) {
      elements.push_back(TRY(literal_arguments(format, tool, enforced)));
    } else {
      elements.push_back(structural::schema(schema));
    }
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
  bool section = !format.section_begin.empty(), list = format.is_list();
  Json tags = Json::array();
  for (const Tool& tool : tools) {
    Json content = TRY(call_content(format, tool, rules.required || tool.strict));
    if (section && !list) {  // templates write line breaks between the calls of a section
      content = sequence({std::move(content), constant(format.end), optional(constant("\n"))});
      tags.push_back(tag(format.begin, std::move(content), ""));
    } else {
      tags.push_back(tag(format.begin, std::move(content), format.end));
    }
  }
  bool once = !rules.parallel || (format.end.empty() && !list);
  std::string_view separator = list ? format.list.separator : section ? "" : "\n";
  Json calls = {{"type", "tags_with_separator"},
                {"tags", tags},
                {"separator", separator},
                {"at_least_one", true},
                {"stop_after_first", once}};
  if (section) {
    Json whole = sequence({optional(constant("\n")), constant(format.list.open), std::move(calls),
                           constant(format.list.close), optional(constant("\n"))});
    bool bare = list && format.bare && rules.required;
    calls =
        bare ? std::move(whole) : tag(format.section_begin, std::move(whole), format.section_end);
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
