#include "server/openai/format.h"

#include <fmt/format.h>

#include "base/quote.h"
#include "server/chat.h"
#include "server/openai/custom_tools.h"
#include "text/chat_template.h"

namespace banyan {
namespace {

const char* finish_name(FinishReason reason) {
  switch (reason) {
    case FinishReason::kStop:
      return "stop";
    case FinishReason::kLength:
      return "length";
    default:  // by /abort_request, a timeout, or server shutdown
      return "abort";
  }
}

void write_cached_details(JsonWriter& writer, const Usage& usage) {
  writer.key("sglext").begin_object().key("cached_tokens_details").begin_object();
  writer.field("device", usage.cached_tokens - usage.restored_tokens).field("host", 0);
  writer.field("storage", usage.restored_tokens).end_object().end_object();
}

}  // namespace

Usage usage_of(const Choice& choice) {
  const TextStream& stream = choice.stream;
  int64_t accepted = stream.accepted_draft_tokens();
  return {.prompt_tokens = choice.prompt_tokens,
          .completion_tokens = stream.output_tokens(),
          .cached_tokens = stream.cached_tokens(),
          .restored_tokens = stream.restored_tokens(),
          .accepted_prediction_tokens = accepted,
          .rejected_prediction_tokens = stream.draft_tokens() - accepted};
}

Usage usage_of(std::span<const Choice> choices, size_t samples) {
  Usage total;
  for (const Choice& choice : choices) {
    Usage one = usage_of(choice);
    total.completion_tokens += one.completion_tokens;
    total.accepted_prediction_tokens += one.accepted_prediction_tokens;
    total.rejected_prediction_tokens += one.rejected_prediction_tokens;
    if (choice.index % samples != 0) continue;
    total.prompt_tokens += one.prompt_tokens;
    total.cached_tokens += one.cached_tokens;
    total.restored_tokens += one.restored_tokens;
  }
  return total;
}

// Writes reasoning tokens under both OpenAI's and SGLang's names.
void write_usage(JsonWriter& writer, const Usage& usage) {
  writer.key("usage").begin_object().field("prompt_tokens", usage.prompt_tokens);
  writer.field("completion_tokens", usage.completion_tokens);
  writer.field("total_tokens", usage.prompt_tokens + usage.completion_tokens);
  writer.key("prompt_tokens_details").begin_object();
  writer.field("cached_tokens", usage.cached_tokens).end_object();
  writer.key("completion_tokens_details").begin_object();
  writer.field("reasoning_tokens", usage.reasoning_tokens);
  writer.field("accepted_prediction_tokens", usage.accepted_prediction_tokens);
  writer.field("rejected_prediction_tokens", usage.rejected_prediction_tokens).end_object();
  writer.field("reasoning_tokens", usage.reasoning_tokens).end_object();
}

void write_finish(JsonWriter& writer, const TextStream& stream, const char* called) {
  writer.key("finish_reason");
  if (!stream.done()) {
    writer.null().field("matched_stop", nullptr);
    return;
  }
  bool calls = called != nullptr && stream.finish() == FinishReason::kStop;
  writer.text(calls ? called : finish_name(stream.finish())).key("matched_stop");
  if (stream.matched_text()) {
    writer.text(*stream.matched_text());
  } else if (stream.matched_token()) {
    writer.number(int64_t{*stream.matched_token()});
  } else {
    writer.null();
  }
}

UsageOptions read_usage_options(RequestFields& fields, bool stream) {
  UsageOptions read{.cached_details = fields.flag("return_cached_tokens_details", false)};
  const Json* json = fields.find("stream_options");
  if (json == nullptr) return read;
  if (!stream) {
    fields.fail("stream_options", " needs stream to be true");
    return read;
  }
  RequestFields options(*json, "stream_options.");
  read.in_stream = options.flag("include_usage", false);
  read.continuous = options.flag("continuous_usage_stats", false);
  if (auto done = options.finish(); !done) {
    fields.fail("stream_options", ": " + done.error().error.message);
  }
  return read;
}

std::string read_prediction(RequestFields& fields) {
  const Json* json = fields.find("prediction");
  if (json == nullptr) return {};
  RequestFields prediction(*json, "prediction.");
  prediction.accept_only({{"type", R"(["content"])"}});
  const Json* content = prediction.find("content");
  std::string text;
  auto take = [&](const Json& part) {
    bool is_text = part.is_object() && part.value("type", Json()) == "text" &&
                   part.contains("text") && part["text"].is_string();
    if (!is_text) {
      return prediction.fail("content", ": a part must be {\"type\": \"text\", \"text\": ...}");
    }
    text += part["text"].get_ref<const std::string&>();
  };
  if (content != nullptr && content->is_array()) {
    for (const Json& part : *content) take(part);
  } else if (content != nullptr && content->is_string()) {
    text = content->get<std::string>();
  } else {
    prediction.fail("content", " must be a text or a list of parts");
  }
  if (auto done = prediction.finish(); !done) {
    fields.fail("prediction", ": " + done.error().error.message);
  }
  return text;
}

std::string answer_head(const RequestContext& context, const AnswerHead& head) {
  std::string out;
  JsonWriter writer(out);
  writer.field("id", head.id).field("object", head.object).field("created", context.created_s);
  writer.field("model", head.model);
  // Equal fingerprints mean that outputs of equal seeds can be compared.
  writer.field("system_fingerprint", fmt::format("banyan-draw-{}", kDrawRevision));
  if (!head.warnings.empty()) writer.field("warnings", Json(head.warnings));
  return out;
}

void write_end(JsonWriter& writer, const UsageOptions& options, const Usage& usage) {
  write_usage(writer, usage);
  if (options.cached_details) write_cached_details(writer, usage);
}

void append_last_events(std::string& out, const std::string& head, const UsageOptions& options,
                        const Usage& usage, const std::string& more) {
  auto append = [&](const auto& write_member) {
    out += "data: ";
    JsonWriter writer(out);
    writer.begin_object().raw(head).key("choices").begin_list().end_list();
    write_member(writer);
    writer.end_object();
    out += "\n\n";
  };
  if (options.cached_details) {
    append([&](JsonWriter& writer) { write_cached_details(writer, usage); });
  }
  if (options.in_stream) {
    append([&](JsonWriter& writer) {
      write_usage(writer, usage);
      if (!more.empty()) writer.raw(more);
    });
  }
  out += "data: [DONE]\n\n";
}

void refuse_openai_fields(RequestFields& fields) {
  fields.refuse({"truncate_prompt_tokens", "return_prompt_token_ids", "return_tokens_as_token_ids",
                 "return_meta_info"});
  // No chat is stored: `store` is for OpenAI's own evaluations.
  fields.accept_only({{"modalities", R"([["text"]])"}, {"store", "[false,true]"}, kServiceTiers});
}

void read_chat_style(RequestFields& fields, ChatPrompt& chat) {
  chat.chat_template = fields.string("chat_template", TemplateLimits().source_bytes_max);
  const Json* begins = fields.find("add_generation_prompt");
  chat.add_generation_prompt = fields.flag("add_generation_prompt", true);
  chat.continue_final_message = fields.flag("continue_final_message", false);
  if (chat.continue_final_message && begins != nullptr && chat.add_generation_prompt) {
    fields.fail("continue_final_message",
                " and add_generation_prompt are both true: they exclude each other");
  }
}

ChatPrompt read_openai_chat(RequestFields& fields, const ToolRequest& tools) {
  ChatPrompt chat;
  auto copy = [&](const char* name, Json& to) {
    if (const Json* value = fields.find(name)) to = *value;
  };
  if (fields.find("messages") == nullptr) fields.fail("messages", " is missing");
  copy("messages", chat.messages);
  if (Status read = convert_custom_calls(chat.messages); !read) {
    fields.fail("messages", read.error().message);
  }
  if (tools.may_call()) copy("tools", chat.tools);
  if (tools.may_call() && !tools.shown.is_null()) chat.tools = tools.shown;
  copy("documents", chat.documents);
  copy("chat_template_kwargs", chat.variables);
  set_reasoning_effort(chat.variables, fields.string("reasoning_effort", kNameBytesMax));
  set_verbosity(chat.variables, fields);
  read_chat_style(fields, chat);
  return chat;
}

std::string answered_model(RequestFields& fields, const RequestContext& context) {
  std::string model = fields.string("model", kNameBytesMax);
  if (model.empty() || model == context.model_name) return context.model_name;
  if (!context.may_be_called(model)) {
    fields.fail_as("model_not_found", "model",
                   fmt::format(": the model {} does not exist; this server has {}", quote(model),
                               quote(context.model_name)),
                   ErrorCode::kNotFound);
  }
  return model;
}

std::vector<std::string> read_rids(RequestFields& fields, const std::string& fallback) {
  std::vector<std::string> rids = fields.strings("rid", kSequencesMax, kNameBytesMax);
  if (rids.empty()) rids = {fallback};
  return rids;
}

}  // namespace banyan
