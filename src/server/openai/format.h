// What the answers of OpenAI's endpoints have in common, as JSON text.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "llm/chat_prompt.h"
#include "server/fields/request.h"
#include "server/fields/tools.h"
#include "server/generation.h"
#include "server/json/writer.h"

namespace banyan {

struct Usage {
  int64_t prompt_tokens = 0;  // of each prompt once, however many samples it has
  int64_t completion_tokens = 0;
  int64_t cached_tokens = 0;
  int64_t restored_tokens = 0;   // of those, loaded from storage
  int64_t reasoning_tokens = 0;  // of the completion's
  // Of what was proposed ahead, by a prediction in the request or else: tokens that the completion
  // has, and those that were computed in vain.
  int64_t accepted_prediction_tokens = 0, rejected_prediction_tokens = 0;
};

Usage usage_of(std::span<const Choice> choices, size_t samples);
Usage usage_of(const Choice& choice);
// "usage": {"prompt_tokens": ..., ...}; all details are always there, 0 too.
void write_usage(JsonWriter& writer, const Usage& usage);

// "finish_reason":...,"matched_stop":...  of a choice; nulls while it runs. `called`: the reason
// for an answer that stopped with calls of tools, if it has any.
void write_finish(JsonWriter& writer, const TextStream& stream, const char* called = nullptr);

// What a client wants to know of usage.
struct UsageOptions {
  bool in_stream = false;       // in a stream's last chunk, for all choices; a whole answer has it
  bool continuous = false;      // in each chunk of a stream, for its choice so far
  bool cached_details = false;  // SGLang's "sglext", which says where cached tokens were found
};
UsageOptions read_usage_options(RequestFields& fields, bool stream);

// OpenAI's `prediction`: {"type": "content", "content": text or parts of text}.
std::string read_prediction(RequestFields& fields);

// The members of an answer, or of a stream's event, that come before its choices, as JSON text.
struct AnswerHead {
  const std::string& id;
  const char* object;
  const std::string& model;
  const std::vector<std::string>& warnings;  // said when there are any
};
std::string answer_head(const RequestContext& context, const AnswerHead& head);

// The last members of a whole answer.
void write_end(JsonWriter& writer, const UsageOptions& options, const Usage& usage);
// The last events of a stream.
// `more`: JSON text of more members for the event with the usage.
void append_last_events(std::string& out, const std::string& head, const UsageOptions& options,
                        const Usage& usage, const std::string& more = {});

// Fields of OpenAI's endpoints that are known and not supported, unless they ask for nothing.
void refuse_openai_fields(RequestFields& fields);
// chat_template, add_generation_prompt and continue_final_message.
void read_chat_style(RequestFields& fields, ChatPrompt& chat);

// messages, tools, documents, chat_template_kwargs, reasoning_effort and those above.
ChatPrompt read_openai_chat(RequestFields& fields, const ToolRequest& tools);

// The name that the answer gives the model: what the request called it, or as it is served. Refuses
// other names where the model has been given one.
std::string answered_model(RequestFields& fields, const RequestContext& context);

// A request's names for /abort_request: `rid`, a string or one for each prompt; else `fallback`.
std::vector<std::string> read_rids(RequestFields& fields, const std::string& fallback);

}  // namespace banyan
