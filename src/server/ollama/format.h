// What Ollama's generating endpoints share: options, and answers as JSON lines. An OllamaAnswer
// belongs to the I/O thread; the functions are stateless.
#pragma once

#include <string>
#include <string_view>

#include "base/json.h"
#include "server/chat.h"
#include "server/generation.h"
#include "server/generation_times.h"
#include "server/json/writer.h"

namespace banyan {

// {"error": "..."}
Json ollama_error(int status, std::string_view message, std::string_view code);

// The request's `model`, with or without ":latest". Refuses other names if the model was given one.
std::string ollama_model(RequestFields& fields, const RequestContext& context);

// options, format and the other shared fields.
Parsed<PromptRequest> read_ollama_options(RequestFields& fields, const RequestContext& context);
// think: true, false or an effort.
void read_ollama_think(RequestFields& fields, const RequestContext& context, Json& variables);

// A request without a prompt asks Ollama to load the model, which is loaded already. Unloading
// (keep_alive of 0) is refused.
GenerationPlan plan_ollama_load(RequestFields& fields, const RequestContext& context,
                                std::string model, bool chat);

class OllamaAnswer final : public Answer {
 public:
  // `chat`: answers /api/chat with a message, else /api/generate with a text.
  OllamaAnswer(std::string model, bool chat, bool stream, const MessageParserOptions& options,
               std::chrono::steady_clock::time_point received)
      : model_(std::move(model)),
        chat_(chat),
        stream_(stream),
        parser_(options),
        times_(received) {}

  void take(const Choice& choice, const TokenEvent& event, TextDelta delta,
            std::string& frames) override;
  void end(std::span<const Choice> choices, std::string& frames) override;
  std::string whole(std::span<const Choice> choices) override;
  std::string_view stream_type() const override { return "application/x-ndjson"; }
  void fail(const RequestError& error, std::string& frames) override;

 private:
  void begin(JsonWriter& writer) const;
  void write_message(JsonWriter& writer, const MessageDelta& message) const;
  void write_end(JsonWriter& writer, std::span<const Choice> choices) const;
  void settle_calls();

  const std::string model_;
  const bool chat_, stream_;
  MessageStream parser_;
  MessageDelta message_;  // accumulated for an unstreamed answer; tool calls always
  GenerationTimes times_;
};

}  // namespace banyan
