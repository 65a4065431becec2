#include "server/openai/custom_tools.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "grammar/budget.h"
#include "grammar/regex/regex.h"
#include "server/openai/custom_input.h"

namespace banyan {
namespace {

std::string string_at(const Json& object, const char* name) {
  auto found = object.find(name);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

bool is_custom(const Json& entry) {
  return entry.is_object() && entry.value("type", Json()) == "custom" && entry.contains("custom") &&
         entry["custom"].is_object();
}

// The JSON schema of the input.
Result<Json> input_schema(const Json& format, const std::string& place) {
  Json schema = {{"type", "string"}, {"description", "The input, as plain text"}};
  if (format.is_null()) return schema;
  std::string type = format.is_object() ? string_at(format, "type") : "";
  if (type == "text") return schema;
  if (type != "grammar") {
    return invalid_argument("{} is {}, its type must be text or grammar", place, show(format));
  }
  const Json& grammar = format.contains("grammar") ? format["grammar"] : format;
  std::string syntax = grammar.is_object() ? string_at(grammar, "syntax") : "";
  if (syntax == "lark") {
    return unsupported("{}: the syntax lark is not supported; regex is", place);
  }
  if (syntax != "regex") {
    return invalid_argument("{}: a grammar's syntax must be regex", place);
  }
  if (!grammar.contains("definition") || !grammar["definition"].is_string()) {
    return invalid_argument("{}: a grammar's definition must be a string", place);
  }
  std::string definition = string_at(grammar, "definition");
  // Compiled separately: `a)|(b` would be a valid regex inside the parentheses below.
  Budget budget;
  if (auto regex = parse_regex(definition, RegexDialect::kEcma, budget); !regex) {
    return make_error(regex.error().code, place + ": " + regex.error().message);
  }
  schema["pattern"] = fmt::format("^(?:{})$", definition);
  return schema;
}

// Converts {"type": "custom", "custom": {"name": ...}} to a named function.
Json named_function(const Json& choice) {
  if (!is_custom(choice)) return choice;
  Json name = choice["custom"].value("name", Json());
  return {{"type", "function"}, {"function", {{"name", std::move(name)}}}};
}

Json choice_of_functions(const Json& choice) {
  if (!choice.is_object() || choice.value("type", Json()) != "allowed_tools") {
    return named_function(choice);
  }
  Json made = choice;
  auto allowed = made.find("allowed_tools");
  if (allowed == made.end() || !allowed->is_object()) return made;
  auto list = allowed->find("tools");
  if (list == allowed->end() || !list->is_array()) return made;
  for (Json& one : *list) one = named_function(one);
  return made;
}

}  // namespace

Result<Json> custom_tool_function(const Json& custom, const std::string& place) {
  if (!custom.is_object() || !custom.contains("name")) {
    return invalid_argument("{}.name is missing", place);
  }
  Json schema = TRY(input_schema(custom.value("format", Json()), place + ".format"));
  bool constrained = schema.contains("pattern");
  Json function = {{"name", custom["name"]}};
  if (custom.contains("description")) function["description"] = custom["description"];
  function["parameters"] = {{"type", "object"},
                            {"properties", {{"input", std::move(schema)}}},
                            {"required", Json::array({"input"})},
                            {"additionalProperties", false}};
  // Enforce the grammar on optional calls as well.
  if (constrained) function["strict"] = true;
  return Json{{"type", "function"}, {"function", std::move(function)}};
}

ToolRequest read_openai_tools(RequestFields& fields) {
  const Json* list = fields.find("tools");
  bool any = list != nullptr && list->is_array() && std::ranges::any_of(*list, is_custom);
  if (!any) return read_tools(fields);
  Json converted = {{"tools", Json::array()},
                    {"parallel_tool_calls", fields.flag("parallel_tool_calls", true)}};
  ToolNames custom;
  for (size_t i = 0; i < list->size(); ++i) {
    const Json& tool = (*list)[i];
    if (!is_custom(tool)) {
      converted["tools"].push_back(tool);
      continue;
    }
    Result<Json> made = custom_tool_function(tool["custom"], fmt::format("[{}].custom", i));
    if (!made) {
      fields.fail("tools", made.error().message, made.error().code);
      return {};
    }
    custom.insert(string_at(tool["custom"], "name"));
    converted["tools"].push_back(*std::move(made));
  }
  if (const Json* choice = fields.find("tool_choice")) {
    converted["tool_choice"] = choice_of_functions(*choice);
  }
  RequestFields inner(converted);
  ToolRequest request = read_tools(inner);
  if (auto done = inner.finish(); !done) {
    const std::string& name = done.error().param;
    std::string message = done.error().error.message;
    if (message.starts_with(name)) message.erase(0, name.size());
    fields.fail(name.c_str(), std::move(message), done.error().error.code);
    return {};
  }
  request.custom = std::move(custom);
  request.shown = std::move(converted["tools"]);
  return request;
}

Status convert_custom_calls(Json& messages) {
  if (!messages.is_array()) return {};
  for (size_t i = 0; i < messages.size(); ++i) {
    if (!messages[i].is_object()) continue;
    auto calls = messages[i].find("tool_calls");
    if (calls == messages[i].end() || !calls->is_array()) continue;
    for (size_t k = 0; k < calls->size(); ++k) {
      Json& call = (*calls)[k];
      if (!is_custom(call)) continue;
      const Json& custom = call["custom"];
      if (!custom.contains("name") || !custom.contains("input") || !custom["input"].is_string()) {
        return invalid_argument("[{}].tool_calls[{}].custom must have a name and an input", i, k);
      }
      Json function = {{"name", custom["name"]},
                       {"arguments", custom_arguments(string_at(custom, "input"))}};
      call.erase("custom");
      call["type"] = "function";
      call["function"] = std::move(function);
    }
  }
  return {};
}

}  // namespace banyan
