// The text or messages of a state, and the prompt built from them for the backend.
//
// A program writes either plain text or messages. Messages are rendered by the model's template,
// and the rendered text only grows. Templates may change earlier answers (Qwen3's drops the
// reasoning of all but the last). The transcript keeps them as written, so that each prompt extends
// the previous one and hits the cache. Only if a template cannot be split that way is the
// conversation rendered again.
//
// One per stream; not thread-safe.
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

  // The prompt for a call at this point.
  Result<Prompt> prompt();
  // The likely prefix of the next prompts.
  Result<Prompt> prefix();
  // The whole text, for display.
  Result<std::string> text() const;
  // The last one may still be open.
  const std::vector<ChatMessage>& messages() const { return messages_; }
  // Total text, an estimate of a prompt's cost.
  size_t bytes() const { return bytes_; }

 private:
  Result<std::string> render_head() const;
  Result<std::string> extend(std::string rendered, std::vector<ChatMessage> messages,
                             bool answer) const;

  const Backend* backend_;
  std::string plain_;  // used while there are no messages
  std::vector<ChatMessage> messages_;
  bool open_ = false;  // the last message
  size_t bytes_ = 0;

  std::string head_;  // the prompt up to the open message's content, once rendered
  bool has_head_ = false;
  // The text of the first `settled_` messages as used in prompts, up to the last one's content.
  std::string settled_text_;
  size_t settled_ = 0;
};

}  // namespace banyan
