#include "program/transcript.h"

#include <utility>

#include "base/error.h"
#include "base/quote.h"

namespace banyan {
namespace {

// Placeholders for a message's content, to find where a template puts it. No template changes or
// matches text of this form.
constexpr std::string_view kSettledMark = "content3f9c1a7e", kOpenMark = "content8d52b06c";

}  // namespace

Status Transcript::append(std::string_view text) {
  if (text.empty()) return {};
  if (!open_ && !messages_.empty()) {
    return invalid_argument("the text {} is between messages; put it inside one, such as user(...)",
                            quote(text, 40));
  }
  (open_ ? messages_.back().content : plain_) += text;
  bytes_ += text.size();
  return {};
}

Status Transcript::begin(const std::string& role) {
  if (open_) {
    return invalid_argument(
        "a message of role {} starts inside a message of role {}; end that one first", quote(role),
        quote(messages_.back().role));
  }
  if (!plain_.empty()) {
    return invalid_argument(
        "the text {} stands before the first message; put it into one, such as system(...)",
        quote(plain_, 40));
  }
  messages_.push_back({.role = role, .content = {}});
  open_ = true;
  has_head_ = false;
  return {};
}

Status Transcript::end() {
  if (!open_) return invalid_argument("role_end() without a message that is open");
  if (has_head_) {
    settled_text_ = std::move(head_) + messages_.back().content;
    settled_ = messages_.size();
  }
  open_ = has_head_ = false;
  return {};
}

Result<Prompt> Transcript::prompt() {
  if (messages_.empty()) {
    if (backend_->takes_messages()) {
      return unsupported("{} takes messages only; write user(...) and assistant(gen(...))",
                         backend_->name());
    }
    return Prompt{.text = plain_};
  }
  if (!open_) {
    return invalid_argument("gen, select or score outside a message; write assistant(gen(...))");
  }
  if (backend_->takes_messages()) {
    if (messages_.back().role != "assistant") {
      return unsupported("{} answers as the assistant only, not as {}", backend_->name(),
                         quote(messages_.back().role));
    }
    return Prompt{.messages = {messages_.begin(), messages_.end() - 1},
                  .answer = messages_.back().content};
  }
  if (!has_head_) {
    head_ = TRY(render_head());
    has_head_ = true;
  }
  return Prompt{.text = head_ + messages_.back().content, .from_template = true};
}

Result<Prompt> Transcript::prefix() {
  if (open_ || messages_.empty()) return prompt();
  return Prompt{.text = TRY(text()), .from_template = true};
}

// Renders the text up to the open message's content.
Result<std::string> Transcript::render_head() const {
  std::vector<ChatMessage> messages = messages_;
  if (messages.back().role == "assistant") {
    messages.pop_back();
    std::string rendered = TRY(backend_->render(messages, true));
    return extend(std::move(rendered), std::move(messages), true);
  }
  messages.back().content = kOpenMark;
  std::string rendered = TRY(backend_->render(messages, false));
  std::string extended = TRY(extend(std::move(rendered), std::move(messages), false));
  size_t mark = extended.rfind(kOpenMark);
  if (mark == extended.npos) {
    return unsupported("the chat template of {} drops messages of role {}", backend_->name(),
                       quote(messages_.back().role));
  }
  return extended.substr(0, mark);
}

// Replaces the beginning of `rendered`, the text of `messages`, with the text as written before.
Result<std::string> Transcript::extend(std::string rendered, std::vector<ChatMessage> messages,
                                       bool answer) const {
  if (settled_ == 0 || rendered.starts_with(settled_text_)) return rendered;
  messages[settled_ - 1].content = kSettledMark;
  std::string marked = TRY(backend_->render(messages, answer));
  size_t mark = marked.rfind(kSettledMark);
  if (mark == marked.npos) return rendered;
  return settled_text_ + marked.substr(mark + kSettledMark.size());
}

Result<std::string> Transcript::text() const {
  if (messages_.empty()) return plain_;
  if (backend_->takes_messages()) {
    std::string lines;
    for (const ChatMessage& m : messages_) lines += m.role + ": " + m.content + "\n";
    return lines;
  }
  if (open_) {
    std::string head = has_head_ ? head_ : TRY(render_head());
    return head + messages_.back().content;
  }
  std::string rendered = TRY(backend_->render(messages_, false));
  return extend(std::move(rendered), messages_, false);
}

}  // namespace banyan
