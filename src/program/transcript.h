// What a state has said so far, and the prompt that it makes of it for its backend.
//
// A program either writes plain text or messages. Messages become text by the model's template, and
// that text only ever grows: what a template would change of earlier answers (Qwen3's drops the
// reasoning of all but the last) stays as it was written, so that a prompt begins with the one
// before and finds it in the cache. Only where a template cannot be taken apart so is the
// conversation written again.
//
// One per stream; not safe from two threads.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "program/backend.h"

namespace banyan {

class Transcript {
 public:
  // `backend` must outlive every call.
  explicit Transcript(const Backend& backend) : backend_(&backend) {}

  Status append(std::string_view text);
  Status begin(const std::string& role);
  Status end();

  // What a call here continues.
  Result<Prompt> prompt();
  // What the next prompts are likely to begin with.
  Result<Prompt> prefix();
  // All of it, for reading.
  Result<std::string> text() const;
  // The last may be open still.
  const std::vector<ChatMessage>& messages() const { return messages_; }
  // Of text in all: what a prompt would cost, roughly.
  size_t bytes() const { return bytes_; }

 private:
  Result<std::string> render_head() const;
  Result<std::string> extend(std::string rendered, std::vector<ChatMessage> messages,
                             bool answer) const;

  const Backend* backend_;
  std::string plain_;  // while there are no messages
  std::vector<ChatMessage> messages_;
  bool open_ = false;  // the last message
  size_t bytes_ = 0;

  std::string head_;  // the prompt's text up to the open message's content, once it was needed
  bool has_head_ = false;
  // The text of the first `settled_` messages as prompts had it, up to the last one's content.
  std::string settled_text_;
  size_t settled_ = 0;
};

}  // namespace banyan
