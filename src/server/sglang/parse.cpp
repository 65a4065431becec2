// Parses given model output into tool calls or reasoning, as for a chat answer.
#include <fmt/format.h>

#include <utility>

#include "base/error.h"
#include "base/quote.h"
#include "llm/messages/message_parser.h"
#include "server/fields/sampling.h"
#include "server/fields/tools.h"
#include "server/json/endpoint.h"
#include "server/sglang/endpoints.h"

namespace banyan {
namespace {

std::string_view read_text(RequestFields& fields) {
  const Json* text = fields.find("text");
  if (text != nullptr && text->is_string()) return text->get_ref<const std::string&>();
  fields.fail("text", text == nullptr ? " is missing" : " is " + show(*text) + ", not a string");
  return {};
}

// The format named by `value` of the field `name`, or the model's own.
template <class Format, class Find>
Parsed<const Format*> choose(const char* name, const std::string& value, const Format* own,
                             Find find) {
  bool named = !value.empty() && value != "auto";
  const Format* format = own;
  if (named) {
    Result<const Format*> found = find(value, {});
    if (!found) return std::unexpected(RequestError(found.error(), name));
    format = *found;
  }
  if (format != nullptr) return format;
  std::string why =
      named ? fmt::format(" is {}; it must name a format", quote(value))
            : " must name a format, since none was detected in the model's chat template";
  return std::unexpected(RequestError({ErrorCode::kInvalidArgument, name + why}, name));
}

}  // namespace

Parsed<Json> parse_function_call(const RequestContext& context, const Json& body) {
  RequestFields fields(body);
  std::string_view text = read_text(fields);
  std::string name = fields.string("tool_call_parser", kNameBytesMax);
  std::vector<Tool> tools = read_tool_list(fields);
  TRY(fields.finish());
  const ToolCallFormat* format =
      TRY(choose("tool_call_parser", name, context.syntax.tool_calls, find_tool_call_format));
  MessageDelta message =
      parse_message({.syntax = {.tool_calls = format}, .tools = std::move(tools)}, text);
  Json calls = Json::array();
  for (ToolCallDelta& call : message.calls) {
    calls.push_back({{"tool_index", call.index},
                     {"name", std::move(call.name)},
                     {"parameters", std::move(call.arguments)}});
  }
  return Json{{"normal_text", std::move(message.content)}, {"calls", std::move(calls)}};
}

Parsed<Json> separate_reasoning(const RequestContext& context, const Json& body) {
  RequestFields fields(body);
  std::string_view text = read_text(fields);
  std::string name = fields.string("reasoning_parser", kNameBytesMax);
  TRY(fields.finish());
  const ReasoningFormat* format =
      TRY(choose("reasoning_parser", name, context.syntax.reasoning, find_reasoning_format));
  MessageDelta message = parse_message(
      {.syntax = {.reasoning = format}, .start = reasoning_start(*format, {}), .tools = {}}, text);
  return Json{{"reasoning_text", std::move(message.reasoning)},
              {"text", std::move(message.content)}};
}

void handle_parse_function_call(Service& service, HttpRequest request, ResponderPtr responder) {
  answer_json(service, std::move(request), std::move(responder), parse_function_call);
}

void handle_separate_reasoning(Service& service, HttpRequest request, ResponderPtr responder) {
  answer_json(service, std::move(request), std::move(responder), separate_reasoning);
}

}  // namespace banyan
