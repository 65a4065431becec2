#include "server/anthropic/request.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/quote.h"

namespace banyan {
namespace {

std::string_view type_of(const Json& block) {
  auto type = block.is_object() ? block.find("type") : block.end();
  bool named = block.is_object() && type != block.end() && type->is_string();
  return named ? std::string_view(type->get_ref<const std::string&>()) : "";
}

Result<std::string> string_of(const Json& object, const char* name, const std::string& place) {
  auto found = object.find(name);
  if (found == object.end() || !found->is_string()) {
    return invalid_argument("{}.{} must be a string", place, name);
  }
  return found->get<std::string>();
}

std::unexpected<Error> wrong_block(const Json& block, const std::string& place) {
  std::string_view type = type_of(block);
  if (type.empty())
    return invalid_argument("{} is {}, not a block with a type", place, show(block));
  return unsupported(
      "{}: a block of type {}; only text, tool_use, tool_result and thinking are "
      "supported",
      place, quote(type));
}

// Claude Code's system prompt starts with a block that differs in every request; keeping it would
// defeat the prefix cache.
bool is_volatile(std::string_view text) {
  return text.starts_with("x-anthropic-billing-header:");
}

// Converts a string or text blocks to the parts of a message's content.
Result<Json> text_parts(const Json& content, const std::string& place) {
  if (content.is_string()) return content;
  if (!content.is_array()) {
    return invalid_argument("{} is {}, not a string or a list of blocks", place, show(content));
  }
  Json parts = Json::array();
  for (size_t i = 0; i < content.size(); ++i) {
    std::string block_place = fmt::format("{}[{}]", place, i);
    if (type_of(content[i]) != "text") return wrong_block(content[i], block_place);
    std::string text = TRY(string_of(content[i], "text", block_place));
    if (!is_volatile(text)) parts.push_back({{"type", "text"}, {"text", std::move(text)}});
  }
  return parts;
}

// {"type": "tool_use", "id", "name", "input"}
Result<Json> call_of(const Json& block, const std::string& place) {
  auto input = block.find("input");
  if (input == block.end() || !input->is_object()) {
    return invalid_argument("{}.input must be an object", place);
  }
  Json function = {{"name", TRY(string_of(block, "name", place))}, {"arguments", *input}};
  return Json{{"id", TRY(string_of(block, "id", place))},
              {"type", "function"},
              {"function", std::move(function)}};
}

// {"type": "tool_result", "tool_use_id", "content", "is_error"}
Result<Json> result_of(const Json& block, const std::string& place) {
  Json message = {{"role", "tool"}, {"tool_call_id", TRY(string_of(block, "tool_use_id", place))}};
  auto content = block.find("content");
  bool given = content != block.end() && !content->is_null();
  message["content"] = given ? TRY(text_parts(*content, place + ".content")) : Json("");
  return message;
}

// Appends the messages for one Anthropic message; tool results become messages of their own.
Status add_blocks(const std::string& role, const Json& blocks, const std::string& place,
                  Json& messages) {
  Json parts = Json::array(), calls = Json::array();
  std::string reasoning;
  for (size_t i = 0; i < blocks.size(); ++i) {
    const Json& block = blocks[i];
    std::string block_place = fmt::format("{}.content[{}]", place, i);
    std::string_view type = type_of(block);
    if (type == "text") {
      parts.push_back({{"type", "text"}, {"text", TRY(string_of(block, "text", block_place))}});
    } else if (type == "tool_use" && role == "assistant") {
      calls.push_back(TRY(call_of(block, block_place)));
    } else if (type == "tool_result" && role == "user") {
      messages.push_back(TRY(result_of(block, block_place)));
    } else if (type == "thinking" && role == "assistant") {
      reasoning += TRY(string_of(block, "thinking", block_place));
    } else if (type != "redacted_thinking" || role != "assistant") {  // encrypted
      return wrong_block(block, block_place);
    }
  }
  if (parts.empty() && calls.empty() && reasoning.empty() && !blocks.empty()) return {};
  Json message = {{"role", role}, {"content", parts.empty() ? Json("") : std::move(parts)}};
  if (!reasoning.empty()) message["reasoning_content"] = std::move(reasoning);
  if (!calls.empty()) message["tool_calls"] = std::move(calls);
  messages.push_back(std::move(message));
  return {};
}

Status add_message(const Json& given, const std::string& place, Json& messages) {
  if (!given.is_object()) {
    return invalid_argument("{} is {}, not an object with role and content", place, show(given));
  }
  std::string role = TRY(string_of(given, "role", place));
  if (role != "user" && role != "assistant" && role != "system") {
    return invalid_argument("{}.role is {}; it must be \"user\" or \"assistant\"", place,
                            quote(role));
  }
  auto content = given.find("content");
  if (content == given.end()) return invalid_argument("{}.content is missing", place);
  if (content->is_array()) return add_blocks(role, *content, place, messages);
  messages.push_back({{"role", role}, {"content", TRY(text_parts(*content, place + ".content"))}});
  return {};
}

Result<Json> read_messages(const Json* system, const Json* given) {
  if (given == nullptr) return invalid_argument("messages is missing");
  if (!given->is_array() || given->empty()) {
    return invalid_argument("messages must be a list with at least one message");
  }
  Json messages = Json::array();
  if (system != nullptr) {
    Json content = TRY(text_parts(*system, "system"));
    if (!content.empty() && content != "") {
      messages.push_back({{"role", "system"}, {"content", std::move(content)}});
    }
  }
  for (size_t i = 0; i < given->size(); ++i) {
    TRY(add_message((*given)[i], fmt::format("messages[{}]", i), messages));
  }
  return messages;
}

// How the types of tools begin that Anthropic runs itself. A date follows.
constexpr std::array kServerTools = std::to_array<std::string_view>(
    {"web_search_", "web_fetch_", "code_execution_", "tool_search_tool_", "mcp_toolset"});

bool is_server_tool(const Json& tool) {
  std::string_view type = type_of(tool);
  return std::ranges::any_of(kServerTools,
                             [&](std::string_view prefix) { return type.starts_with(prefix); });
}

// {"name", "description", "input_schema"}. Tools whose schema is part of Anthropic's models, such
// as bash_20250124, have other types.
Result<Json> convert_tool(const Json& tool, const std::string& place) {
  std::string_view type = type_of(tool);
  if (!tool.is_object()) return invalid_argument("{} is {}, not an object", place, show(tool));
  if (!type.empty() && type != "custom") {
    return unsupported(
        "{}: a tool of type {}, whose input only Anthropic's models know; give it a name and an "
        "input_schema instead of the type",
        place, quote(type));
  }
  Json function = {{"name", TRY(string_of(tool, "name", place))}};
  if (tool.contains("description")) function["description"] = tool["description"];
  if (!tool.contains("input_schema") || !tool["input_schema"].is_object()) {
    return invalid_argument("{}.input_schema must be a JSON schema, an object", place);
  }
  function["parameters"] = tool["input_schema"];
  if (tool.contains("strict")) function["strict"] = tool["strict"];
  return Json{{"type", "function"}, {"function", std::move(function)}};
}

// Leaves out what this server cannot run.
Result<Json> convert_tools(const Json& given, std::vector<std::string>& warnings) {
  if (!given.is_array()) return invalid_argument("tools is {}, not a list", show(given));
  Json tools = Json::array();
  for (size_t i = 0; i < given.size(); ++i) {
    std::string place = fmt::format("tools[{}]", i);
    if (is_server_tool(given[i])) {
      warnings.push_back(cannot_run(place, type_of(given[i])));
    } else {
      tools.push_back(TRY(convert_tool(given[i], place)));
    }
  }
  return tools;
}

// Translates {"type": "auto" | "any" | "tool" | "none", "name", "disable_parallel_tool_use"} to
// OpenAI's form.
Status convert_choice(const Json& given, Json& openai) {
  std::string_view type = type_of(given);
  if (type == "auto" || type == "none") {
    openai["tool_choice"] = type;
  } else if (type == "any") {
    openai["tool_choice"] = "required";
  } else if (type == "tool") {
    openai["tool_choice"] = {
        {"type", "function"},
        {"function", {{"name", TRY(string_of(given, "name", "tool_choice"))}}}};
  } else {
    return invalid_argument("tool_choice is {}, its type must be auto, any, tool or none",
                            show(given));
  }
  if (given.contains("disable_parallel_tool_use")) {
    const Json& disable = given["disable_parallel_tool_use"];
    if (!disable.is_boolean()) {
      return invalid_argument("tool_choice.disable_parallel_tool_use must be true or false");
    }
    openai["parallel_tool_calls"] = !disable.get<bool>();
  }
  return {};
}

// Reads tools and tool_choice by translating them to OpenAI's fields.
void read_tool_fields(RequestFields& fields, ChatRequest& chat) {
  Json openai = Json::object();
  auto failed = [&](const char* name, const Error& error) {
    fields.fail(name,
                error.message.substr(std::min(error.message.size(), std::string_view(name).size())),
                error.code);
  };
  std::vector<std::string> warnings;
  if (const Json* tools = fields.find("tools")) {
    Result<Json> read = convert_tools(*tools, warnings);
    if (!read) return failed("tools", read.error());
    openai["tools"] = *std::move(read);
  }
  if (const Json* choice = fields.find("tool_choice")) {
    if (Status read = convert_choice(*choice, openai); !read) {
      return failed("tool_choice", read.error());
    }
  }
  RequestFields converted(openai);
  chat.tools = banyan::read_tools(converted);
  chat.tools.warnings = std::move(warnings);
  if (auto done = converted.finish(); !done) {
    return failed(done.error().param.starts_with("tool_choice") ? "tool_choice" : "tools",
                  done.error().error);
  }
  if (chat.tools.may_call()) chat.prompt.tools = openai.value("tools", Json());
}

// {"type": "enabled", "budget_tokens"}, "disabled" or "adaptive".
void read_thinking(RequestFields& fields, ChatRequest& chat) {
  const Json* thinking = fields.find("thinking");
  if (thinking == nullptr) return;
  std::string_view type = type_of(*thinking);
  if (type != "enabled" && type != "disabled" && type != "adaptive") {
    return fields.fail("thinking", fmt::format(" is {}, its type must be enabled, disabled or "
                                               "adaptive",
                                               show(*thinking)));
  }
  RequestFields inner(*thinking, "thinking.");
  inner.accept_only({{"display", R"(["summarized"])"}});
  std::optional<int64_t> budget = inner.integer_if("budget_tokens", 0, kNewTokensMax);
  if (auto done = inner.finish(); !done) {
    return fields.fail("thinking", ": " + done.error().error.message, done.error().error.code);
  }
  if (type == "enabled" && budget) chat.options.thinking_tokens_max = budget;
  if (type != "adaptive") set_thinking(chat.prompt.variables, type == "enabled");
}

// {"effort", "format"}; `format` is read with the sampling options.
void read_effort(RequestFields& fields, Json& variables) {
  const Json* config = fields.find("output_config");
  if (config == nullptr) return;
  RequestFields inner(*config, "output_config.");
  std::string effort = inner.string("effort", kNameBytesMax);
  if (auto done = inner.finish(); !done) {
    return fields.fail("output_config", ": " + done.error().error.message);
  }
  if (!effort.empty() && !variables.contains("reasoning_effort")) {
    variables["reasoning_effort"] = effort;
  }
}

// Edits that begin once the prompt is long, and from how many tokens on where they do not say.
constexpr std::array kEditsOfLongPrompts = std::to_array<std::pair<std::string_view, int64_t>>(
    {{"clear_tool_uses_20250919", 100'000}, {"compact_20260112", 150'000}});

// {"type", "value"}; 0 if it counts something else.
int64_t value_of(const Json& object, std::string_view type, int64_t fallback) {
  if (object.is_null()) return fallback;
  return type_of(object) == type ? as_integer(object["value"]).value_or(0) : 0;
}

// Whether `value`, of keep or trigger, may be given.
Status check_amount(const Json& value, const std::string& place) {
  bool amount = !type_of(value).empty() && value.contains("value") && as_integer(value["value"]);
  if (value.is_null() || amount) return {};
  return invalid_argument("{} is {}, not an object with a type and an integer as value", place,
                          show(value));
}

bool keeps_all(const Json& edit, const Json& keep) {
  bool of_thinking = type_of(edit).starts_with("clear_thinking_");
  return of_thinking && (keep == "all" || type_of(keep) == "all");
}

Result<Json> edits_of(const Json& management) {
  Json edits = management.is_object() ? management.value("edits", Json::array()) : Json();
  if (!edits.is_array()) {
    return invalid_argument(" is {}, not an object with a list of edits", show(management));
  }
  for (size_t i = 0; i < edits.size(); ++i) {
    std::string place = fmt::format(".edits[{}]", i);
    if (type_of(edits[i]).empty()) {
      return invalid_argument("{} is {}, not an object with a type", place, show(edits[i]));
    }
    Json keep = edits[i].value("keep", Json());
    if (!keeps_all(edits[i], keep)) TRY(check_amount(keep, place + ".keep"));
    TRY(check_amount(edits[i].value("trigger", Json()), place + ".trigger"));
  }
  return edits;
}

// Whether the edit leaves the prompt as it is: it keeps all thinking that there is, or begins only
// at lengths that the context does not hold.
bool edits_nothing(const Json& edit, int64_t context_tokens, int64_t thoughts) {
  std::string_view type = type_of(edit);
  if (type == "clear_thinking_20251015") {
    Json keep = edit.value("keep", Json());
    return keeps_all(edit, keep) || value_of(keep, "thinking_turns", 1) >= thoughts;
  }
  const auto* found =
      std::ranges::find(kEditsOfLongPrompts, type, &std::pair<std::string_view, int64_t>::first);
  return found != kEditsOfLongPrompts.end() &&
         value_of(edit.value("trigger", Json()), "input_tokens", found->second) >= context_tokens;
}

// The messages with a thinking block.
int64_t count_thoughts(const Json* messages) {
  if (messages == nullptr || !messages->is_array()) return 0;
  return std::ranges::count_if(*messages, [](const Json& message) {
    auto content = message.is_object() ? message.find("content") : message.end();
    return message.is_object() && content != message.end() && content->is_array() &&
           std::ranges::any_of(*content,
                               [](const Json& block) { return type_of(block) == "thinking"; });
  });
}

}  // namespace

bool read_context_edits(RequestFields& fields, int64_t context_tokens) {
  constexpr const char* kName = "context_management";
  const Json* management = fields.find(kName);
  if (management == nullptr) return false;
  Result<Json> edits = edits_of(*management);
  if (!edits) {
    fields.fail(kName, edits.error().message);
    return false;
  }
  int64_t thoughts = count_thoughts(fields.find("messages"));
  for (size_t i = 0; i < edits->size(); ++i) {
    if (edits_nothing((*edits)[i], context_tokens, thoughts)) continue;
    fields.fail(kName,
                fmt::format(".edits[{}]: {} would change the prompt, which is not supported; only "
                            "edits without effect are, such as \"keep\": \"all\"",
                            i, quote(type_of((*edits)[i]))),
                ErrorCode::kUnsupported);
    return false;
  }
  return true;
}

void read_anthropic_chat(RequestFields& fields, ChatRequest& chat) {
  read_tool_fields(fields, chat);
  read_thinking(fields, chat);
  read_effort(fields, chat.prompt.variables);
  Result<Json> messages = read_messages(fields.find("system"), fields.find("messages"));
  if (!messages) {
    std::string_view name = messages.error().message.starts_with("system") ? "system" : "messages";
    fields.fail(std::string(name).c_str(), messages.error().message.substr(name.size()),
                messages.error().code);
    return;
  }
  chat.prompt.messages = *std::move(messages);
  // A final assistant message is the beginning of the answer.
  const Json& last = chat.prompt.messages.back();
  bool goes_on = last["role"] == "assistant" && !last.contains("tool_calls");
  chat.prompt.continue_final_message = goes_on;
  chat.prompt.add_generation_prompt = !goes_on;
}

}  // namespace banyan
