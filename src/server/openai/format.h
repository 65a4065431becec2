// Formats shared by the answers of OpenAI's endpoints, as JSON text. Stateless; thread-safe.
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
  int64_t prompt_tokens = 0;  // each prompt counts once, however many samples it has
  int64_t completion_tokens = 0;
  int64_t cached_tokens = 0;
  int64_t restored_tokens = 0;   // of them, loaded from storage
  int64_t reasoning_tokens = 0;  // of the completion's
  // Tokens that were drafted, by a prediction in the request or otherwise: those that the
  // completion has, and those that were rejected.
  int64_t accepted_prediction_tokens = 0, rejected_prediction_tokens = 0;
};

Usage usage_of(std::span<const Choice> choices, size_t samples);
Usage usage_of(const Choice& choice);
// "usage": {"prompt_tokens": ..., ...}. All details are written, zeros included.
void write_usage(JsonWriter& writer, const Usage& usage);

// "finish_reason":...,"matched_stop":... of a choice; null while it runs. `called`, if set, is the
// reason for an answer that stopped with tool calls.
void write_finish(JsonWriter& writer, const TextStream& stream, const char* called = nullptr);

// Which usage the client wants.
struct UsageOptions {
  bool in_stream = false;       // in a stream's last chunk; whole answers always have it
  bool continuous = false;      // in each chunk of a stream, for its choice so far
  bool cached_details = false;  // SGLang's "sglext": where cached tokens were found
};
UsageOptions read_usage_options(RequestFields& fields, bool stream);

// OpenAI's `prediction`: {"type": "content", "content": text or text parts}.
std::string read_prediction(RequestFields& fields);

// The members of an answer, or of a stream event, that precede its choices, as JSON text.
struct AnswerHead {
  const std::string& id;
  const char* object;
  const std::string& model;
  const std::vector<std::string>& warnings;  // written if not empty
};
std::string answer_head(const RequestContext& context, const AnswerHead& head);

// Writes the last members of a whole answer.
void write_end(JsonWriter& writer, const UsageOptions& options, const Usage& usage);
// Appends the last events of a stream.
//
// `more`: JSON text of further members for the event with the usage.
void append_last_events(std::string& out, const std::string& head, const UsageOptions& options,
                        const Usage& usage, const std::string& more = {});

// All tiers are served alike.
inline constexpr RequestFields::Accepted kServiceTiers = {
    "service_tier", R"(["auto","default","flex","scale","priority"])"};

// Refuses known but unsupported OpenAI fields, unless their value means "off".
void refuse_openai_fields(RequestFields& fields);
// Reads chat_template, add_generation_prompt and continue_final_message.
void read_chat_style(RequestFields& fields, ChatPrompt& chat);

// Reads messages, tools, documents, chat_template_kwargs, reasoning_effort and the fields of
// read_chat_style.
ChatPrompt read_openai_chat(RequestFields& fields, const ToolRequest& tools);

// The model name for the answer: the request's, or the served name. Refuses other names if the
// model was given one.
std::string answered_model(RequestFields& fields, const RequestContext& context);

// The request's ids for /abort_request: `rid`, a string or one per prompt; else `fallback`.
std::vector<std::string> read_rids(RequestFields& fields, const std::string& fallback);

}  // namespace banyan
