#include "server/openai/responses/request.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/quote.h"
#include "server/adapters/request.h"
#include "server/fields/constraint.h"
#include "server/openai/custom_input.h"
#include "server/openai/custom_tools.h"
#include "server/openai/format.h"
#include "server/openai/responses/store.h"

namespace banyan {
namespace {

std::string_view item_type(const Json& item) {
  auto type = item.find("type");
  return type != item.end() && type->is_string()
             ? std::string_view(type->get_ref<const std::string&>())
             : "";
}

Result<std::string> text_at(const Json& object, const char* name, const std::string& place) {
  auto found = object.find(name);
  if (found == object.end() || !found->is_string()) {
    return invalid_argument("{}.{} must be a string", place, name);
  }
  return found->get<std::string>();
}

// Tools that OpenAI's servers run, and those that its clients run but only its models know.
constexpr std::array kHostedTools = std::to_array<std::string_view>(
    {"web_search", "file_search", "code_interpreter", "image_generation", "mcp", "tool_search"});
constexpr std::array kModelsOwnTools = std::to_array<std::string_view>(
    {"local_shell", "shell", "apply_patch", "computer", "computer_use", "namespace"});
// Items that report what such a tool did in an earlier answer.
constexpr std::array kHostedItems = std::to_array<std::string_view>(
    {"web_search_call", "file_search_call", "code_interpreter_call", "image_generation_call",
     "mcp_list_tools", "tool_search_call", "tool_search_output"});

// `type` is one of these, perhaps with a version: _preview, _2025_08_26.
bool is_one_of(std::span<const std::string_view> types, std::string_view type) {
  return std::ranges::any_of(types, [&](std::string_view known) {
    if (!type.starts_with(known)) return false;
    std::string_view version = type.substr(known.size());
    return version.empty() || version.starts_with("_preview") || version.starts_with("_20");
  });
}

// Why the tool is left out; empty if it is not.
std::string left_out(const Json& tool, const std::string& place) {
  std::string_view type = tool.is_object() ? item_type(tool) : "";
  if (is_one_of(kHostedTools, type)) return cannot_run(place, type);
  if (!is_one_of(kModelsOwnTools, type)) return {};
  return fmt::format(
      "{}: {} is not offered to the model, since only OpenAI's models know its input; declare it "
      "as a function",
      place, type);
}

// Converts a string or text parts to the parts of a message's content.
Result<Json> content_parts(const Json& content, const std::string& place) {
  if (content.is_string()) return content;
  if (!content.is_array()) {
    return invalid_argument("{} is {}, not a string or a list of parts", place, show(content));
  }
  Json parts = Json::array();
  for (size_t i = 0; i < content.size(); ++i) {
    std::string part_place = fmt::format("{}[{}]", place, i);
    if (!content[i].is_object()) return invalid_argument("{} is not an object", part_place);
    std::string_view type = item_type(content[i]);
    const char* name = type == "refusal" ? "refusal" : "text";
    if (type != "input_text" && type != "output_text" && type != "text" && type != "refusal") {
      return unsupported("{}: a part of type {}; only text is supported", part_place, quote(type));
    }
    parts.push_back({{"type", "text"}, {"text", TRY(text_at(content[i], name, part_place))}});
  }
  return parts;
}

// Converts items to chat messages. Tool calls and reasoning join the adjacent assistant message.
class ItemReader {
 public:
  ItemReader(Json& messages, std::vector<std::string>& warnings)
      : messages_(messages), warnings_(warnings) {}

  Status add(const Json& item, const std::string& place) {
    if (!item.is_object()) return invalid_argument("{} is {}, not an item", place, show(item));
    std::string_view type = item_type(item);
    if (type.empty() || type == "message") return add_message(item, place);
    if (type == "function_call" || type == "custom_tool_call") return add_call(item, place);
    if (type == "function_call_output" || type == "custom_tool_call_output") {
      return add_output(item, place);
    }
    if (type == "reasoning") return add_reasoning(item, place);
    if (std::ranges::find(kHostedItems, type) != kHostedItems.end()) {
      warnings_.push_back(
          fmt::format("{}: an item of type {} is not shown to the model", place, quote(type)));
      return {};
    }
    return unsupported(
        "{}: an item of type {}; only message, function_call, function_call_output, "
        "custom_tool_call, custom_tool_call_output and reasoning are supported",
        place, quote(type));
  }

 private:
  Status add_message(const Json& item, const std::string& place) {
    std::string role = TRY(text_at(item, "role", place));
    auto content = item.find("content");
    if (content == item.end()) return invalid_argument("{}.content is missing", place);
    Json parts = TRY(content_parts(*content, place + ".content"));
    if (role == "assistant") {
      assistant(true)["content"] = std::move(parts);
    } else {
      messages_.push_back({{"role", role}, {"content", std::move(parts)}});
    }
    return {};
  }

  Status add_call(const Json& item, const std::string& place) {
    bool is_custom = item_type(item) == "custom_tool_call";
    std::string arguments = TRY(text_at(item, is_custom ? "input" : "arguments", place));
    if (is_custom) arguments = custom_arguments(arguments);
    Json function = {{"name", TRY(text_at(item, "name", place))},
                     {"arguments", std::move(arguments)}};
    Json call = {{"id", TRY(text_at(item, "call_id", place))},
                 {"type", "function"},
                 {"function", std::move(function)}};
    assistant(false)["tool_calls"].push_back(std::move(call));
    return {};
  }

  Status add_output(const Json& item, const std::string& place) {
    auto output = item.find("output");
    if (output == item.end()) return invalid_argument("{}.output is missing", place);
    Json content = TRY(content_parts(*output, place + ".output"));
    messages_.push_back({{"role", "tool"},
                         {"tool_call_id", TRY(text_at(item, "call_id", place))},
                         {"content", std::move(content)}});
    return {};
  }

  // The full reasoning, or else its summary.
  Status add_reasoning(const Json& item, const std::string& place) {
    std::string text;
    for (const char* name : {"content", "summary"}) {
      auto parts = item.find(name);
      if (!text.empty() || parts == item.end() || !parts->is_array()) continue;
      for (size_t i = 0; i < parts->size(); ++i) {
        if (!(*parts)[i].is_object())
          return invalid_argument("{}.{}[{}] is not an object", place, name, i);
        text += TRY(text_at((*parts)[i], "text", fmt::format("{}.{}[{}]", place, name, i)));
      }
    }
    if (!text.empty()) assistant(true)["reasoning_content"] = std::move(text);
    return {};
  }

  // The assistant message under construction. `begins`: the item can only start a message or follow
  // reasoning.
  Json& assistant(bool begins) {
    bool goes_on = !messages_.empty() && messages_.back()["role"] == "assistant" &&
                   (!begins || (messages_.back()["content"] == "" &&
                                !messages_.back().contains("tool_calls")));
    if (!goes_on) messages_.push_back({{"role", "assistant"}, {"content", ""}});
    return messages_.back();
  }

  Json& messages_;
  std::vector<std::string>& warnings_;
};

void fail_with(RequestFields& fields, const char* name, const Error& error) {
  std::string_view message = error.message;
  if (message.starts_with(name)) message.remove_prefix(std::string_view(name).size());
  fields.fail(name, std::string(message), error.code);
}

Status read_input(const Json& given, ResponsesRequest& request) {
  request.input = Json::array();
  if (given.is_string()) {
    Json part = {{"type", "input_text"}, {"text", given}};
    request.input.push_back(
        {{"type", "message"}, {"role", "user"}, {"content", Json::array({std::move(part)})}});
  } else if (given.is_array()) {
    request.input = given;
  } else {
    return invalid_argument("input is {}, not a string or a list of items", show(given));
  }
  ItemReader reader(request.messages, request.chat.tools.warnings);
  for (size_t i = 0; i < request.input.size(); ++i) {
    TRY(reader.add(request.input[i], fmt::format("input[{}]", i)));
  }
  if (request.messages.empty()) return invalid_argument("input has no items");
  return {};
}

// Loads the conversation of previous_response_id, if given.
void read_previous(RequestFields& fields, const RequestContext& context,
                   ResponsesRequest& request) {
  request.messages = Json::array();
  request.previous = fields.string("previous_response_id", kNameBytesMax);
  if (request.previous.empty()) return;
  auto found =
      context.responses ? context.responses->find(request.previous, context.owner) : nullptr;
  if (!found) {
    return fields.fail_as("previous_response_not_found", "previous_response_id",
                          fmt::format(": there is no response {}; it was never stored, or has "
                                      "been forgotten",
                                      quote(request.previous)),
                          ErrorCode::kInvalidArgument);
  }
  request.messages = Json::parse(found->messages);
}

// Converts {"type": "function", "name", ...} to the chat form: {"type": "function", "function":
// {...}}. A custom tool becomes a function, too.
Result<Json> nest_function(const Json& tool, const std::string& place) {
  if (!tool.is_object()) return invalid_argument("{} is {}, not an object", place, show(tool));
  if (item_type(tool) == "custom") return custom_tool_function(tool, place);
  if (item_type(tool) != "function") {
    return unsupported("{}: a tool of type {}; only function and custom are supported", place,
                       quote(item_type(tool)));
  }
  Json function = Json::object();
  for (const char* name : {"name", "description", "parameters", "strict"}) {
    if (tool.contains(name)) function[name] = tool[name];
  }
  return Json{{"type", "function"}, {"function", std::move(function)}};
}

// Leaves out the tools that only OpenAI's servers or models can use.
Result<Json> nest_functions(const Json& list, const char* place,
                            std::vector<std::string>& warnings) {
  if (!list.is_array()) return invalid_argument("{} is {}, not a list", place, show(list));
  Json nested = Json::array();
  for (size_t i = 0; i < list.size(); ++i) {
    std::string tool_place = fmt::format("{}[{}]", place, i);
    if (std::string why = left_out(list[i], tool_place); !why.empty()) {
      warnings.push_back(std::move(why));
    } else {
      nested.push_back(TRY(nest_function(list[i], tool_place)));
    }
  }
  return nested;
}

Result<Json> nest_choice(const Json& choice, std::vector<std::string>& warnings) {
  if (!choice.is_object()) return choice;
  if (item_type(choice) != "allowed_tools") return nest_function(choice, "tool_choice");
  Json allowed = {{"mode", choice.value("mode", Json("auto"))}};
  allowed["tools"] =
      TRY(nest_functions(choice.value("tools", Json()), "tool_choice.tools", warnings));
  bool only_left_out = !choice.value("tools", Json::array()).empty() && allowed["tools"].empty();
  if (only_left_out && allowed["mode"] == "auto") return Json("none");
  return Json{{"type", "allowed_tools"}, {"allowed_tools", std::move(allowed)}};
}

ToolNames names_of_custom(const Json& tools) {
  ToolNames names;
  for (const Json& tool : tools) {
    if (item_type(tool) == "custom" && tool["name"].is_string()) names.insert(tool["name"]);
  }
  return names;
}

void read_response_tools(RequestFields& fields, ChatRequest& chat) {
  Json nested = Json::object();
  std::vector<std::string> warnings;
  if (const Json* tools = fields.find("tools")) {
    Result<Json> list = nest_functions(*tools, "tools", warnings);
    if (!list) return fail_with(fields, "tools", list.error());
    nested["tools"] = *std::move(list);
  }
  if (const Json* choice = fields.find("tool_choice")) {
    Result<Json> made = nest_choice(*choice, warnings);
    if (!made) return fail_with(fields, "tool_choice", made.error());
    nested["tool_choice"] = *std::move(made);
  }
  nested["parallel_tool_calls"] = fields.flag("parallel_tool_calls", true);
  RequestFields converted(nested);
  chat.tools = read_tools(converted);
  chat.tools.warnings = std::move(warnings);
  if (auto done = converted.finish(); !done) {
    const char* name = done.error().param.starts_with("tool_choice") ? "tool_choice" : "tools";
    return fail_with(fields, name, done.error().error);
  }
  if (const Json* tools = fields.find("tools")) chat.tools.custom = names_of_custom(*tools);
  if (chat.tools.may_call()) chat.prompt.tools = nested.value("tools", Json());
}

// text.format: the response_format of chats with the schema next to its type; text.verbosity.
void read_text(RequestFields& fields, const JsonSchemaOptions& json, PromptRequest& options,
               Json& variables) {
  const Json* text = fields.find("text");
  if (text == nullptr) return;
  RequestFields inner(*text, "text.");
  set_verbosity(variables, inner);
  const Json* format = inner.find("format");
  if (auto done = inner.finish(); !done) {
    return fields.fail("text", ": " + done.error().error.message, done.error().error.code);
  }
  if (format == nullptr) return;
  Json chat_form = {{"response_format", *format}};
  if (format->is_object() && item_type(*format) == "json_schema") {
    chat_form["response_format"] = {{"type", "json_schema"}, {"json_schema", *format}};
  }
  RequestFields converted(chat_form);
  std::optional<Constraint> constraint = read_constraint(converted, json);
  if (auto done = converted.finish(); !done) {
    return fields.fail("text", ".format: " + done.error().error.message, done.error().error.code);
  }
  if (!constraint) return;
  if (options.text.options.grammar) {
    return fields.fail("text", fmt::format(".format and {} are both given; give only one of them",
                                           options.grammar_field));
  }
  options.text.options.grammar = std::move(constraint->grammar);
  options.grammar_field = "text.format";
}

void read_reasoning(RequestFields& fields, Json& variables) {
  const Json* reasoning = fields.find("reasoning");
  if (reasoning == nullptr) return;
  RequestFields inner(*reasoning, "reasoning.");
  set_reasoning_effort(variables, inner.string("effort", kNameBytesMax));
  // `summary` is not read: reasoning is returned as generated, so there is no summary to make or
  // refuse.
  if (auto done = inner.finish(); !done) {
    fields.fail("reasoning", ": " + done.error().error.message, done.error().error.code);
  }
}

void read_limits(RequestFields& fields, const RequestContext& context, ResponsesRequest& request) {
  constexpr SamplingNames kNames = {.max_new_tokens = "max_output_tokens",
                                    .min_new_tokens = "min_tokens",
                                    .seed = "seed",
                                    .max_new_tokens_default = kNewTokensMax};
  PromptRequest& options = request.chat.options;
  options = read_sampling(fields, kNames, context.llm.recommended_sampling(), context.llm.config(),
                          context.json, context.defaults);
  if (options.text.options.max_new_tokens == 0) {
    fields.fail("max_output_tokens", " is 0; it must be 1 or more");
  }
  if (options.samples != 1) fields.fail("n", " is more than 1; a response is one answer");
  read_scheduling(fields, options.text.options);
  options.text.options.adapter = read_adapter(fields, context);
  read_text(fields, context.json, options, request.chat.prompt.variables);
  request.stream = fields.flag("stream", false);
  request.store = fields.flag("store", true) && context.responses != nullptr;
  fields.refuse({"background", "conversation", "prompt", "context_management"});
  // Input that fits is never truncated, and what does not fit is an error in both modes.
  fields.accept_only(
      {{"truncation", R"(["disabled","auto"])"}, kServiceTiers, {"top_logprobs", "[0]"}});
  // Reasoning is always visible, so there is nothing to encrypt; hosted tools are never called.
  Json without_effect = {"reasoning.encrypted_content", "web_search_call.action.sources",
                         "code_interpreter_call.outputs", "file_search_call.results",
                         "computer_call_output.output.image_url"};
  if (const Json* include = fields.find("include")) {
    for (const Json& name : *include) {
      if (std::ranges::find(without_effect, name) != without_effect.end()) continue;
      fields.fail("include", fmt::format(": {} is not supported", show(name)),
                  ErrorCode::kUnsupported);
    }
  }
}

// The request settings that the answer repeats.
Json settings_of(const RequestFields& fields, const ResponsesRequest& request) {
  auto given = [&](const char* name, Json fallback) {
    const Json* value = fields.find(name);
    return value == nullptr ? std::move(fallback) : *value;
  };
  const SamplingParams& sampling = request.chat.options.text.sampling;
  Json reasoning = {{"effort", nullptr}, {"summary", nullptr}};
  Json settings = {{"instructions", given("instructions", nullptr)},
                   {"max_output_tokens", given("max_output_tokens", nullptr)},
                   {"metadata", given("metadata", Json::object())},
                   {"parallel_tool_calls", request.chat.tools.parallel},
                   {"previous_response_id", given("previous_response_id", nullptr)},
                   {"reasoning", given("reasoning", std::move(reasoning))},
                   {"service_tier", "default"},
                   {"store", request.store},
                   {"temperature", sampling.temperature},
                   {"text", given("text", {{"format", {{"type", "text"}}}})},
                   {"tool_choice", given("tool_choice", "auto")},
                   {"tools", given("tools", Json::array())},
                   {"top_p", sampling.top_p},
                   {"truncation", "disabled"},
                   {"user", given("user", nullptr)}};
  return settings;
}

}  // namespace

Parsed<ResponsesRequest> read_responses_request(const RequestContext& context,
                                                RequestFields& fields) {
  ResponsesRequest request;
  read_limits(fields, context, request);
  read_response_tools(fields, request.chat);
  read_reasoning(fields, request.chat.prompt.variables);
  std::string instructions = fields.string("instructions", kNewTokensMax);
  read_previous(fields, context, request);
  const Json* input = fields.find("input");
  if (input == nullptr) {
    fields.fail("input", " is missing");
  } else if (Status read = read_input(*input, request); !read) {
    fail_with(fields, "input", read.error());
  }
  TRY(fields.finish());
  Json& messages = request.chat.prompt.messages;
  messages = Json::array();
  if (!instructions.empty()) {
    messages.push_back({{"role", "system"}, {"content", std::move(instructions)}});
  }
  for (const Json& message : request.messages) messages.push_back(message);
  request.settings = settings_of(fields, request);
  return request;
}

}  // namespace banyan
