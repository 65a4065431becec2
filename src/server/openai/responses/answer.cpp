#include "server/openai/responses/answer.h"

#include <fmt/format.h>

#include <utility>

#include "base/json_text.h"
#include "server/error.h"

namespace banyan {
namespace {

const char* status_of(const TextStream& stream) {
  switch (stream.finish()) {
    case FinishReason::kStop:
      return "completed";
    case FinishReason::kLength:
      return "incomplete";
    default:  // by /abort_request, a timeout, or server shutdown
      return "failed";
  }
}

// The names of an item's text in events and fields.
struct TextNames {
  const char *part, *delta, *done;
};
constexpr TextNames kReasoningNames = {"reasoning_text", "response.reasoning_text.delta",
                                       "response.reasoning_text.done"};
constexpr TextNames kMessageNames = {"output_text", "response.output_text.delta",
                                     "response.output_text.done"};
constexpr const char* kArgumentsDelta = "response.function_call_arguments.delta";
constexpr const char* kArgumentsDone = "response.function_call_arguments.done";
constexpr const char* kInputDelta = "response.custom_tool_call_input.delta";
constexpr const char* kInputDone = "response.custom_tool_call_input.done";

}  // namespace

template <class Fill>
void ResponsesAnswer::append_event(const char* type, std::string& frames, Fill fill) {
  if (!head_.stream) return;
  append_typed_event(frames, type, [&](JsonWriter& writer) {
    writer.field("sequence_number", sequence_number_++);
    fill(writer);
  });
}

// Appends an event about the last item.
template <class Fill>
void ResponsesAnswer::append_item_event(const char* type, std::string& frames, Fill fill) {
  append_event(type, frames, [&](JsonWriter& writer) {
    writer.field("output_index", items_.size() - 1);
    fill(writer);
  });
}

void ResponsesAnswer::take(const Choice& choice, const TokenEvent&, TextDelta delta,
                           std::string& frames) {
  if (!std::exchange(begun_, true)) {
    for (const char* type : {"response.created", "response.in_progress"}) {
      append_event(type, frames, [&](JsonWriter& writer) {
        writer.key("response");
        write_response(writer, "in_progress", nullptr);
      });
    }
  }
  MessageDelta message = parser_.take(choice, delta);
  if (!message.reasoning.empty()) add_text(Item::Kind::kReasoning, message.reasoning, frames);
  if (!message.content.empty()) add_text(Item::Kind::kMessage, message.content, frames);
  for (const ToolCallDelta& call : message.calls) add_call(call, frames);
  if (choice.stream.done()) finish(choice, frames);
}

// Ends the items; a response has at least one.
void ResponsesAnswer::finish(const Choice& choice, std::string& frames) {
  if (items_.empty()) open(Item::Kind::kMessage, frames);
  end_item(frames);
  std::string status = status_of(choice.stream);
  append_event(("response." + status).c_str(), frames, [&](JsonWriter& writer) {
    writer.key("response");
    write_response(writer, status.c_str(), &choice);
  });
}

void ResponsesAnswer::end(std::span<const Choice> choices, std::string&) {
  whole(choices);
}

std::string ResponsesAnswer::whole(std::span<const Choice> choices) {
  std::string body;
  JsonWriter writer(body);
  write_response(writer, status_of(choices[0].stream), &choices[0]);
  if (head_.store) keep(body);
  return body;
}

void ResponsesAnswer::fail(const RequestError& error, std::string& frames) {
  append_event("error", frames, [&](JsonWriter& writer) {
    writer.field("code", error.code.empty() ? std::string(error_type(http_status(error.error.code)))
                                            : error.code);
    writer.field("message", error.error.message);
    writer.key("param");
    error.param.empty() ? writer.null() : writer.text(error.param);
  });
}

// Continues the last item if it has this kind, else starts a new one.
ResponsesAnswer::Item& ResponsesAnswer::open(Item::Kind kind, std::string& frames) {
  bool is_text = kind == Item::Kind::kReasoning || kind == Item::Kind::kMessage;
  if (item_open_ && items_.back().kind == kind && is_text) return items_.back();
  end_item(frames);
  constexpr const char* kPrefixes[] = {"rs", "msg", "fc", "ctc"};
  std::string tail = head_.id.substr(head_.id.find('_') + 1);
  std::string id =
      fmt::format("{}_{}_{}", kPrefixes[static_cast<size_t>(kind)], tail, items_.size());
  items_.push_back({.kind = kind, .id = std::move(id), .text = {}, .call_id = {}, .name = {}});
  item_open_ = true;
  if (is_text) begin_item(frames);  // a tool call waits for its name
  return items_.back();
}

void ResponsesAnswer::begin_item(std::string& frames) {
  const Item& item = items_.back();
  append_item_event("response.output_item.added", frames, [&](JsonWriter& writer) {
    writer.key("item");
    write_item(writer, item, "in_progress", true);
  });
  if (item.is_call()) return;
  append_item_event("response.content_part.added", frames, [&](JsonWriter& writer) {
    writer.field("item_id", item.id).field("content_index", 0).key("part");
    write_part(writer, item, "");
  });
}

void ResponsesAnswer::end_item(std::string& frames) {
  if (!std::exchange(item_open_, false)) return;
  const Item& item = items_.back();
  if (item.is_call()) {
    end_call(frames);
  } else {
    bool is_message = item.kind == Item::Kind::kMessage;
    const TextNames& names = is_message ? kMessageNames : kReasoningNames;
    append_item_event(names.done, frames, [&](JsonWriter& writer) {
      writer.field("item_id", item.id).field("content_index", 0).field("text", item.text);
      if (is_message) writer.key("logprobs").begin_list().end_list();
    });
    append_item_event("response.content_part.done", frames, [&](JsonWriter& writer) {
      writer.field("item_id", item.id).field("content_index", 0).key("part");
      write_part(writer, item, item.text);
    });
  }
  append_item_event("response.output_item.done", frames, [&](JsonWriter& writer) {
    writer.key("item");
    write_item(writer, item, "completed", false);
  });
}

void ResponsesAnswer::add_text(Item::Kind kind, std::string_view text, std::string& frames) {
  Item& item = open(kind, frames);
  item.text += text;
  bool is_message = kind == Item::Kind::kMessage;
  const TextNames& names = is_message ? kMessageNames : kReasoningNames;
  append_item_event(names.delta, frames, [&](JsonWriter& writer) {
    writer.field("item_id", item.id).field("content_index", 0).field("delta", text);
    if (is_message) writer.key("logprobs").begin_list().end_list();
  });
}

void ResponsesAnswer::add_call(const ToolCallDelta& call, std::string& frames) {
  if (!call.name.empty()) {
    bool is_custom = head_.custom.contains(call.name);
    Item& item = open(is_custom ? Item::Kind::kCustomCall : Item::Kind::kCall, frames);
    input_ = {};
    item.name = call.name;
    item.call_id = call.id.empty() ? "call" + item.id.substr(item.id.find('_')) : call.id;
    begin_item(frames);
  }
  if (call.arguments.empty() || items_.empty()) return;
  bool is_custom = items_.back().kind == Item::Kind::kCustomCall;
  add_call_text(is_custom ? input_.take(call.arguments) : call.arguments, frames);
}

void ResponsesAnswer::add_call_text(const std::string& text, std::string& frames) {
  if (text.empty()) return;
  Item& item = items_.back();
  item.text += text;
  bool is_custom = item.kind == Item::Kind::kCustomCall;
  append_item_event(is_custom ? kInputDelta : kArgumentsDelta, frames, [&](JsonWriter& writer) {
    writer.field("item_id", item.id).field("delta", text);
  });
}

void ResponsesAnswer::end_call(std::string& frames) {
  const Item& item = items_.back();
  bool is_custom = item.kind == Item::Kind::kCustomCall;
  if (is_custom) add_call_text(input_.finish(), frames);
  append_item_event(is_custom ? kInputDone : kArgumentsDone, frames, [&](JsonWriter& writer) {
    writer.field("item_id", item.id);
    if (!is_custom) writer.field("name", item.name);
    writer.field(is_custom ? "input" : "arguments", item.text);
  });
}

void ResponsesAnswer::write_part(JsonWriter& writer, const Item& item, std::string_view text) {
  bool is_message = item.kind == Item::Kind::kMessage;
  const TextNames& names = is_message ? kMessageNames : kReasoningNames;
  writer.begin_object().field("type", names.part).field("text", text);
  if (is_message) {
    writer.key("annotations").begin_list().end_list().key("logprobs").begin_list().end_list();
  }
  writer.end_object();
}

void ResponsesAnswer::write_item(JsonWriter& writer, const Item& item, const char* status,
                                 bool empty) {
  writer.begin_object().field("id", item.id);
  if (item.is_call()) {
    bool is_custom = item.kind == Item::Kind::kCustomCall;
    writer.field("type", is_custom ? "custom_tool_call" : "function_call");
    writer.field("status", status).field("call_id", item.call_id).field("name", item.name);
    writer.field(is_custom ? "input" : "arguments",
                 empty ? std::string_view() : std::string_view(item.text));
    writer.end_object();
    return;
  }
  if (item.kind == Item::Kind::kReasoning) {
    writer.field("type", "reasoning").key("summary").begin_list().end_list();
    writer.field("encrypted_content", nullptr);
  } else {
    writer.field("type", "message").field("role", "assistant");
  }
  writer.field("status", status).key("content").begin_list();
  if (!empty) write_part(writer, item, item.text);
  writer.end_list().end_object();
}

void ResponsesAnswer::write_usage(JsonWriter& writer, const Choice& choice) const {
  int64_t output = choice.stream.output_tokens();
  writer.key("usage").begin_object().field("input_tokens", choice.prompt_tokens);
  writer.key("input_tokens_details").begin_object();
  writer.field("cached_tokens", choice.stream.cached_tokens()).field("cache_write_tokens", 0);
  writer.end_object().field("output_tokens", output).key("output_tokens_details").begin_object();
  writer.field("reasoning_tokens", parser_.reasoning_tokens()).end_object();
  writer.field("total_tokens", choice.prompt_tokens + output).end_object();
}

void ResponsesAnswer::write_response(JsonWriter& writer, const char* status,
                                     const Choice* choice) const {
  writer.begin_object().field("id", head_.id).field("object", "response");
  writer.field("created_at", head_.created_s).field("model", head_.model).field("status", status);
  FinishReason reason = choice == nullptr ? FinishReason::kNone : choice->stream.finish();
  if (choice != nullptr && status == std::string_view("failed")) {
    writer.key("error").begin_object().field("code", "server_error");
    writer.field("message", fmt::format("the answer was cut off: {}", to_string(reason)));
    writer.end_object();
  } else {
    writer.field("error", nullptr);
  }
  writer.key("incomplete_details");
  if (reason == FinishReason::kLength) {
    writer.begin_object().field("reason", "max_output_tokens").end_object();
  } else {
    writer.null();
  }
  if (!head_.warnings.is_null()) writer.field("warnings", head_.warnings);
  writer.key("output").begin_list();
  bool cut = reason == FinishReason::kLength;
  for (const Item& item : items_) {
    bool last = &item == &items_.back();
    write_item(writer, item, cut && last ? "incomplete" : "completed", false);
  }
  writer.end_list();
  for (const auto& [name, value] : head_.settings.items()) writer.field(name, value);
  if (choice == nullptr) {
    writer.field("usage", nullptr);
  } else {
    write_usage(writer, *choice);
  }
  writer.end_object();
}

// Stores the conversation, with the answer as one assistant message.
void ResponsesAnswer::keep(const std::string& response) {
  Json message = {{"role", "assistant"}, {"content", ""}};
  for (const Item& item : items_) {
    if (item.is_call()) {
      bool is_custom = item.kind == Item::Kind::kCustomCall;
      std::string arguments = is_custom ? custom_arguments(item.text) : item.text;
      message["tool_calls"].push_back(
          {{"id", item.call_id},
           {"type", "function"},
           {"function", {{"name", item.name}, {"arguments", std::move(arguments)}}}});
      continue;
    }
    const char* name = item.kind == Item::Kind::kMessage ? "content" : "reasoning_content";
    message[name] = message.value(name, "") + item.text;
  }
  Json messages = head_.messages;
  messages.push_back(std::move(message));
  head_.store->put({.id = head_.id,
                    .owner = head_.owner,
                    .response = response,
                    .input = dump_json(head_.input),
                    .messages = dump_json(messages)});
}

}  // namespace banyan
