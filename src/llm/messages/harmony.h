// Parser for GPT-OSS's harmony format: the output is a list of messages, each on a channel.
//
//   <|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>final<|message|>Hello
//   <|channel|>commentary to=functions.f <|constrain|>json<|message|>{"a": 1}
//
// Analysis is reasoning. Final is content, as is commentary without a recipient. Messages to
// functions.* are tool calls. The markers are special tokens, which the text must include. One per
// sequence; belongs to one thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "llm/messages/message_delta.h"

namespace banyan {

class HarmonyParser {
 public:
  void push(std::string_view text, MessageDelta& out);
  void finish(MessageDelta& out);
  size_t calls() const { return calls_; }
  // Whether the text so far ends in analysis, end marker included; nothing within a header.
  std::optional<bool> in_reasoning() const {
    if (in_header_) return std::nullopt;
    return channel_ == Channel::kReasoning;
  }

 private:
  enum class Channel : uint8_t { kReasoning, kContent, kCall };

  bool step(MessageDelta& out);
  void begin_message(std::string_view header, MessageDelta& out);
  void add(std::string text, MessageDelta& out);

  bool in_header_ = true;
  Channel channel_ = Channel::kContent;
  std::string buffer_;
  size_t calls_ = 0;
};

}  // namespace banyan
