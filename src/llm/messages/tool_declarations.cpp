#include "llm/messages/tool_declarations.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/quote.h"

namespace banyan {
namespace {

constexpr size_t kToolsMax = 1024;
constexpr size_t kToolNameBytesMax = 128;
constexpr std::string_view kNameCharacters =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.:/";

// {"type": "function", "function": {"name", "parameters", "strict", ...}}
Result<Tool> read_tool(const Json& entry, const std::string& place) {
  if (!entry.is_object() || entry.value("type", Json("function")) != "function" ||
      !entry.contains("function") || !entry["function"].is_object()) {
    return invalid_argument(
        R"({} must be {{"type": "function", "function": {{"name": ..., "parameters": ...}}}})",
        place);
  }
  const Json& function = entry["function"];
  Tool tool{.name = {}, .parameters = {{"type", "object"}}};  // of {}: any
  auto name = function.find("name");
  if (name == function.end() || !name->is_string()) {
    return invalid_argument("{}.function.name must be a string", place);
  }
  tool.name = *name;
  if (tool.name.empty() || tool.name.size() > kToolNameBytesMax ||
      tool.name.find_first_not_of(kNameCharacters) != std::string::npos) {
    return invalid_argument("{}.function.name: {} is not 1 to {} letters, digits or _ - . : /",
                            place, quote(tool.name), kToolNameBytesMax);
  }
  auto parameters = function.find("parameters");
  if (parameters == function.end() || parameters->is_null()) {
    tool.parameters["properties"] = Json::object();  // none, as in OpenAI's API
  } else {
    if (!parameters->is_object()) {
      return invalid_argument("{}.function.parameters must be a JSON schema, an object", place);
    }
    if (!parameters->empty()) tool.parameters = *parameters;
  }
  auto strict = function.find("strict");
  if (strict != function.end() && !strict->is_null()) {
    if (!strict->is_boolean()) {
      return invalid_argument("{}.function.strict must be true or false", place);
    }
    tool.strict = strict->get<bool>();
  }
  return tool;
}

}  // namespace

Result<std::vector<Tool>> read_tool_declarations(const Json& list) {
  if (!list.is_array() || list.size() > kToolsMax) {
    return invalid_argument(" is not a list of at most {} tools", kToolsMax);
  }
  std::vector<Tool> tools;
  for (size_t i = 0; i < list.size(); ++i) {
    Tool tool = TRY(read_tool(list[i], fmt::format("[{}]", i)));
    if (std::ranges::find(tools, tool.name, &Tool::name) != tools.end()) {
      return invalid_argument("[{}].function.name: duplicate name {}", i, quote(tool.name));
    }
    tools.push_back(std::move(tool));
  }
  return tools;
}

}  // namespace banyan
