#include "llm/messages/harmony.h"

#include <array>

#include "llm/messages/marks.h"

namespace banyan {
namespace {

constexpr size_t kMessageHeaderBytesMax = 1024;
constexpr std::string_view kMessage = "<|message|>";
constexpr std::string_view kRecipient = "to=functions.";
constexpr std::array<std::string_view, 3> kHeaders = {"<|", "to=", "assistant"};
constexpr std::array<std::string_view, 4> kEnds = {"<|end|>", "<|start|>", "<|call|>",
                                                   "<|return|>"};

}  // namespace

void HarmonyParser::push(std::string_view text, MessageDelta& out) {
  buffer_ += text;
  while (step(out)) {
  }
}

bool HarmonyParser::step(MessageDelta& out) {
  if (!in_header_) {
    FoundMark end = find_mark(buffer_, kEnds);
    bool found = !end.mark.empty();
    size_t certain = found ? end.at : buffer_.size() - partial_mark(buffer_, kEnds);
    add(buffer_.substr(0, certain), out);
    buffer_.erase(0, certain + end.mark.size());
    in_header_ = found;
    return found;
  }
  std::string_view text = trim_space(buffer_);
  bool may_be_header = std::ranges::any_of(kHeaders, [&](std::string_view header) {
    return text.starts_with(header) || header.starts_with(text);
  });
  size_t end = buffer_.find(kMessage);
  bool waits = end == buffer_.npos && buffer_.size() <= kMessageHeaderBytesMax;
  if (may_be_header && waits) return false;
  in_header_ = false;
  if (!may_be_header || end > kMessageHeaderBytesMax) {  // text without a header
    channel_ = Channel::kContent;
    return true;
  }
  begin_message(std::string_view(buffer_).substr(0, end), out);
  buffer_.erase(0, end + kMessage.size());
  return true;
}

void HarmonyParser::begin_message(std::string_view header, MessageDelta& out) {
  size_t to = header.find(kRecipient);
  if (to != header.npos) {
    std::string_view name = header.substr(to + kRecipient.size());
    name = name.substr(0, name.find_first_of(" \t\r\n<"));
    channel_ = Channel::kCall;
    out.calls.push_back({.index = calls_++, .id = {}, .name = std::string(name), .arguments = {}});
    return;
  }
  bool reasons = header.find("<|channel|>analysis") != header.npos;
  channel_ = reasons ? Channel::kReasoning : Channel::kContent;
}

void HarmonyParser::add(std::string text, MessageDelta& out) {
  if (text.empty()) return;
  if (channel_ == Channel::kReasoning) out.reasoning += text;
  if (channel_ == Channel::kContent) out.content += text;
  if (channel_ != Channel::kCall) return;
  bool joins = !out.calls.empty() && out.calls.back().index == calls_ - 1;
  if (!joins) out.calls.push_back({.index = calls_ - 1, .id = {}, .name = {}, .arguments = {}});
  out.calls.back().arguments += text;
}

void HarmonyParser::finish(MessageDelta& out) {
  // An unterminated header is content only if it has no markers.
  if (!in_header_) add(buffer_, out);
  if (in_header_ && buffer_.find("<|") == buffer_.npos) out.content += buffer_;
  buffer_.clear();
}

}  // namespace banyan
