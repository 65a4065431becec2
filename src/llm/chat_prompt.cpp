#include "llm/chat_prompt.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/quote.h"
#include "llm/llm_parts.h"
#include "text/chat_template.h"
#include "text/tokenizer/tokenizer.h"

namespace banyan {
namespace {

// Variables that only the request's own fields may set, and names that collide with parameters of
// the Python function that takes these variables.
constexpr std::array<std::string_view, 9> kReserved = {"messages",
                                                       "conversation",
                                                       "tools",
                                                       "documents",
                                                       "add_generation_prompt",
                                                       "chat_template",
                                                       "tokenize",
                                                       "truncation",
                                                       "continue_final_message"};

std::string_view text_of(const Json& string) {
  return string.get_ref<const std::string&>();
}

Result<std::string> join_parts(const Json& parts, const std::string& place) {
  std::string text;
  for (size_t i = 0; i < parts.size(); ++i) {
    const Json& part = parts[i];
    if (part.is_object() && part.value("type", Json()) != "text" && part.contains("type")) {
      return unsupported(
          "{}.content[{}]: a part of type {}; only text is supported", place, i,
          part["type"].is_string() ? quote(text_of(part["type"])) : "that is not a string");
    }
    if (!part.is_object() || !part.contains("text") || !part["text"].is_string()) {
      return invalid_argument("{}.content[{}]: not {{\"type\": \"text\", \"text\": ...}}", place,
                              i);
    }
    if (i > 0) text += '\n';
    text += text_of(part["text"]);
  }
  return text;
}

// Templates iterate over a call's arguments; OpenAI clients send them as a JSON string.
void read_arguments(Json& message) {
  auto calls = message.find("tool_calls");
  if (calls == message.end() || !calls->is_array()) return;
  for (Json& call : *calls) {
    if (!call.is_object() || !call.contains("function") || !call["function"].is_object()) continue;
    Json& function = call["function"];
    auto arguments = function.find("arguments");
    if (arguments == function.end() || !arguments->is_string()) continue;
    Result<Json> parsed = parse_json(text_of(*arguments), "arguments");
    if (parsed && parsed->is_object()) *arguments = std::move(*parsed);
  }
}

// Ollama and other clients put these next to the content.
Status refuse_media(Json& message, const std::string& place) {
  for (const char* name : {"images", "image_data", "audio", "video", "multi_modal_data"}) {
    auto media = message.find(name);
    if (media == message.end()) continue;
    if (!media->empty() && *media != "") {
      return unsupported("{}.{} is not supported; only text is: leave it out", place, name);
    }
    message.erase(media);
  }
  return {};
}

Status check_message(Json& message, const std::string& place) {
  if (!message.is_object()) {
    return invalid_argument("{} is {}, not an object with role and content", place,
                            message.type_name());
  }
  auto role = message.find("role");
  if (role == message.end() || !role->is_string() || text_of(*role).empty()) {
    return invalid_argument("{}.role must be a name such as \"user\"", place);
  }
  TRY(refuse_media(message, place));
  auto content = message.find("content");
  if (content == message.end() || content->is_null()) {
    bool calls = message.contains("tool_calls") || message.contains("reasoning_content");
    if (text_of(*role) != "assistant" && !calls) {
      return invalid_argument("{}.content is missing", place);
    }
    message["content"] = "";
  } else if (content->is_array()) {
    *content = TRY(join_parts(*content, place));
  } else if (!content->is_string()) {
    return invalid_argument("{}.content is {}, not a string or a list of parts", place,
                            content->type_name());
  }
  read_arguments(message);
  return {};
}

Status check_messages(Json& messages, bool knows_developer) {
  if (!messages.is_array() || messages.empty()) {
    return invalid_argument("messages must be a list with at least one message");
  }
  for (size_t i = 0; i < messages.size(); ++i) {
    TRY(check_message(messages[i], fmt::format("messages[{}]", i)));
    // OpenAI's newer name for the system role, which most templates would silently drop.
    Json& role = messages[i]["role"];
    if (role == "developer" && !knows_developer) role = "system";
  }
  return {};
}

Status check_list(const Json& list, std::string_view name) {
  if (list.is_null()) return {};
  bool objects = list.is_array() &&
                 std::ranges::all_of(list, [](const Json& item) { return item.is_object(); });
  if (objects) return {};
  return invalid_argument("{} must be a list of objects", name);
}

Status add_variables(const Json& more, Json& variables) {
  if (!more.is_object()) {
    return invalid_argument("chat_template_kwargs is {}, not an object", more.type_name());
  }
  for (const auto& [name, value] : more.items()) {
    bool reserved = std::ranges::find(kReserved, name) != kReserved.end();
    if (reserved) {
      return invalid_argument("chat_template_kwargs must not set {}", name);
    }
    variables[name] = value;
  }
  return {};
}

// Removes the last message from `messages` and returns its text.
Result<std::string> take_final_message(Json& messages) {
  const Json& last = messages.back();
  if (last["role"] != "assistant") {
    return invalid_argument(
        "continue_final_message: the last message has the role {}; it must be \"assistant\"",
        quote(text_of(last["role"])));
  }
  std::string text(text_of(last["content"]));
  messages.erase(messages.size() - 1);
  if (messages.empty()) {
    return invalid_argument("continue_final_message: there is no message before the last one");
  }
  return text;
}

Result<std::shared_ptr<const ChatTemplate>> find_given(const Llm& llm, const std::string& source) {
  if (!llm.has_tokenizer()) return unsupported("a chat template needs a model with a tokenizer");
  auto found = request_template(llm, source);
  if (found) return found;
  // The template came with the request, so any error is the client's.
  return invalid_argument("chat_template: {}", found.error().message);
}

}  // namespace

Result<std::string> render_chat(const Llm& llm, ChatPrompt prompt) {
  std::shared_ptr<const ChatTemplate> given;
  if (!prompt.chat_template.empty()) given = TRY(find_given(llm, prompt.chat_template));
  const ChatTemplate* chat_template = given ? given.get() : TRY(chat_template_of(llm));
  const Tokenizer& tokenizer = *tokenizer_of(llm);
  std::string source = given ? prompt.chat_template : tokenizer.chat_template().value_or("");
  bool knows_developer = source.find("developer") != std::string::npos;
  TRY(check_messages(prompt.messages, knows_developer));
  TRY(check_list(prompt.tools, "tools"));
  TRY(check_list(prompt.documents, "documents"));
  std::string continued;
  if (prompt.continue_final_message) continued = TRY(take_final_message(prompt.messages));

  Json variables = Json::object();
  for (const auto& [name, text] : tokenizer.special().named) variables[name] = text;
  TRY(add_variables(prompt.variables, variables));
  bool no_tools = prompt.tools.is_array() && prompt.tools.empty();
  variables["tools"] = no_tools ? Json() : std::move(prompt.tools);
  variables["documents"] = std::move(prompt.documents);
  // A continued message also follows the header of an answer.
  variables["add_generation_prompt"] =
      prompt.add_generation_prompt || prompt.continue_final_message;
  variables["messages"] = std::move(prompt.messages);
  return TRY(chat_template->render(variables)) + continued;
}

}  // namespace banyan
