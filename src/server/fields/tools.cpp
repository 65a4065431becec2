#include "server/fields/tools.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/json_text.h"
#include "base/quote.h"
#include "llm/messages/tool_declarations.h"
#include "llm/structural.h"

namespace banyan {
namespace {

bool has_tool(const std::vector<Tool>& tools, const Json& name) {
  return std::ranges::any_of(tools, [&](const Tool& tool) { return name == tool.name; });
}

bool is_named(const Json& choice) {
  return choice.is_object() && choice.value("type", Json()) == "function" &&
         choice.contains("function") && choice["function"].is_object() &&
         choice["function"].contains("name");
}

// {"type": "allowed_tools", "allowed_tools": {"mode": "auto" | "required", "tools": [...]}}. The
// template still shows all tools, so that prompts share a prefix; only the listed ones may be
// called.
void read_allowed(const Json& choice, RequestFields& fields, ToolRequest& request) {
  auto fail = [&](std::string message) { fields.fail("tool_choice", std::move(message)); };
  Json allowed = choice.value("allowed_tools", Json());
  Json mode = allowed.is_object() ? allowed.value("mode", Json()) : Json();
  Json list = allowed.is_object() ? allowed.value("tools", Json()) : Json();
  if ((mode != "auto" && mode != "required") || !list.is_array() || list.empty()) {
    return fail(
        R"( of type allowed_tools must have {"mode": "auto" or "required", "tools": [...]})");
  }
  std::vector<Tool> kept;
  for (const Json& one : list) {
    if (!is_named(one)) return fail(fmt::format(".allowed_tools: {} names no function", show(one)));
    const Json& name = one["function"]["name"];
    auto found =
        std::ranges::find_if(request.tools, [&](const Tool& tool) { return name == tool.name; });
    if (found == request.tools.end()) {
      return fail(fmt::format(" names {}, which is not one of the tools", show(name)));
    }
    kept.push_back(*found);
  }
  request.limited = kept.size() < request.tools.size();
  request.tools = std::move(kept);
  request.choice = mode == "auto" ? ToolRequest::Choice::kAuto : ToolRequest::Choice::kRequired;
}

void read_choice(RequestFields& fields, ToolRequest& request) {
  using Choice = ToolRequest::Choice;
  const Json* choice = fields.find("tool_choice");
  request.choice = request.tools.empty() ? Choice::kNone : Choice::kAuto;
  if (choice == nullptr || *choice == "auto") return;
  if (*choice == "none") {
    request.choice = Choice::kNone;
    return;
  }
  if (choice->is_object() && choice->value("type", Json()) == "allowed_tools") {
    return read_allowed(*choice, fields, request);
  }
  bool named = is_named(*choice);
  if (*choice != "required" && !named) {
    return fields.fail("tool_choice",
                       fmt::format(R"( is {}; it must be none, auto, required, allowed_tools or )"
                                   R"({{"type": "function", "function": {{"name": ...}}}})",
                                   show(*choice)));
  }
  request.choice = Choice::kRequired;
  if (request.tools.empty())
    return fields.fail("tool_choice", " requires a tool call, but tools is empty or missing");
  if (!named) return;
  const Json& name = (*choice)["function"]["name"];
  if (!has_tool(request.tools, name)) {
    return fields.fail("tool_choice",
                       fmt::format(" names {}, which is not one of the tools", show(name)));
  }
  std::erase_if(request.tools, [&](const Tool& tool) { return name != tool.name; });
  request.parallel = false;
}

}  // namespace

std::string cannot_run(const std::string& place, std::string_view type) {
  return fmt::format("{}: {} is not offered to the model, since this server cannot run it", place,
                     type);
}

// Reads and checks the list; errors are recorded in `fields`.
std::vector<Tool> read_tool_list(RequestFields& fields) {
  const Json* list = fields.find("tools");
  if (list == nullptr) return {};
  Result<std::vector<Tool>> read = read_tool_declarations(*list);
  if (read) return *std::move(read);
  fields.fail("tools", read.error().message);
  return {};
}

ToolRequest read_tools(RequestFields& fields) {
  ToolRequest request{.tools = read_tool_list(fields),
                      .parallel = fields.flag("parallel_tool_calls", true)};
  read_choice(fields, request);
  return request;
}

Result<std::optional<GrammarSource>> chat_grammar(const ChatSyntax& syntax, ReasoningStart start,
                                                  const ToolRequest& tools,
                                                  const std::optional<GrammarSource>& asked) {
  bool strict = std::ranges::any_of(tools.tools, [](const Tool& tool) { return tool.strict; });
  bool required = tools.choice == ToolRequest::Choice::kRequired;
  bool calls = required || (tools.choice == ToolRequest::Choice::kAuto &&
                            syntax.tool_calls != nullptr && (strict || asked || tools.limited));
  bool reasons = syntax.reasoning != nullptr && start != ReasoningStart::kOutside;
  if (!calls && (!asked || !reasons)) return asked;

  Json grammar;
  GrammarSource source{.kind = GrammarSource::Kind::kStructuralTag};
  if (asked) source.json = asked->json;
  if (calls) {
    // Allow the spaces that models usually write in arguments.
    source.json.flexible_whitespace = true;
    source.json.strict = strict || (asked && !required && asked->json.strict);
    grammar = TRY(tool_call_grammar(*syntax.tool_calls, tools.tools,
                                    {.required = required || asked, .parallel = tools.parallel}));
  }
  if (asked && !required) {
    Json content = TRY(structural_format(*asked));
    if (syntax.reasoning != nullptr)
      content = answer_grammar(*syntax.reasoning, std::move(content));
    grammar =
        calls ? structural::either({std::move(content), std::move(grammar)}) : std::move(content);
  }
  if (syntax.reasoning != nullptr) {
    grammar = grammar_after_reasoning(*syntax.reasoning, start, std::move(grammar));
  }
  source.text = dump_json({{"type", "structural_tag"}, {"format", std::move(grammar)}});
  return source;
}

}  // namespace banyan
