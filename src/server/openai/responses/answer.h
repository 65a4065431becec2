// Formats answers of /v1/responses: a list of items, streamed as events or whole, and stored at the
// end. Belongs to the I/O thread, as every Answer.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "server/chat.h"
#include "server/generation.h"
#include "server/json/writer.h"
#include "server/openai/custom_input.h"
#include "server/openai/responses/store.h"

namespace banyan {

struct ResponseHead {
  std::string id;  // "resp_" and a suffix that its items' ids share
  std::string model;
  std::string owner;
  int64_t created_s = 0;
  bool stream = false;
  ToolNames custom;                      // names of custom tools
  Json settings;                         // request settings that the answer repeats
  Json warnings;                         // what is not enforced or offered; null: none
  Json input, messages;                  // of the request; stored for follow-up requests
  std::shared_ptr<ResponseStore> store;  // null: not stored
};

class ResponsesAnswer final : public Answer {
 public:
  ResponsesAnswer(ResponseHead head, const MessageParserOptions& options)
      : head_(std::move(head)), parser_(options) {}

  void take(const Choice& choice, const TokenEvent& event, TextDelta delta,
            std::string& frames) override;
  void end(std::span<const Choice> choices, std::string& frames) override;
  std::string whole(std::span<const Choice> choices) override;
  void fail(const RequestError& error, std::string& frames) override;

 private:
  struct Item {
    enum class Kind : uint8_t { kReasoning, kMessage, kCall, kCustomCall };

    Kind kind = Kind::kMessage;
    std::string id;
    std::string text;           // or a call's arguments, or a custom tool's input
    std::string call_id, name;  // of a tool call

    bool is_call() const { return kind == Kind::kCall || kind == Kind::kCustomCall; }
  };

  Item& open(Item::Kind kind, std::string& frames);
  void add_text(Item::Kind kind, std::string_view text, std::string& frames);
  void add_call(const ToolCallDelta& call, std::string& frames);
  void add_call_text(const std::string& text, std::string& frames);
  void end_call(std::string& frames);
  void begin_item(std::string& frames);
  void end_item(std::string& frames);
  void finish(const Choice& choice, std::string& frames);
  void keep(const std::string& response);
  template <class Fill>
  void append_event(const char* type, std::string& frames, Fill fill);
  template <class Fill>
  void append_item_event(const char* type, std::string& frames, Fill fill);

  static void write_part(JsonWriter& writer, const Item& item, std::string_view text);
  static void write_item(JsonWriter& writer, const Item& item, const char* status, bool empty);
  // `choice` is null while the answer runs.
  void write_response(JsonWriter& writer, const char* status, const Choice* choice) const;
  void write_usage(JsonWriter& writer, const Choice& choice) const;

  const ResponseHead head_;
  MessageStream parser_;
  std::vector<Item> items_;
  CustomInput input_;  // of the last item, if it calls a custom tool
  bool begun_ = false, item_open_ = false;
  int64_t sequence_number_ = 0;
};

}  // namespace banyan
