// What Ollama's two endpoints that generate have in common: options, and answers as lines of JSON.
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

// `model` as the request has it, with or without ":latest". Refuses others where the model has been
// given a name.
std::string ollama_model(RequestFields& fields, const RequestContext& context);

// options, format and what else both endpoints share.
Parsed<PromptRequest> read_ollama_options(RequestFields& fields, const RequestContext& context);
// think: true, false or an effort.
void read_ollama_think(RequestFields& fields, const RequestContext& context, Json& variables);

// What a request without a prompt asks for: that the model be loaded, which it is. Asking for its
// end (keep_alive of 0) is refused.
GenerationPlan plan_ollama_load(RequestFields& fields, const RequestContext& context,
                                std::string model, bool chat);

class OllamaAnswer final : public Answer {
 public:
  // `chat`: /api/chat, whose answer is a message; else /api/generate, whose answer is a text.
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
  MessageDelta message_;  // so far, where it is not streamed; calls always
  GenerationTimes times_;
};

}  // namespace banyan
