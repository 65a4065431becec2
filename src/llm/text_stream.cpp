#include "llm/text_stream.h"

#include <algorithm>
#include <utility>

namespace banyan {

TextStream::TextStream(const Tokenizer* tokenizer, std::span<const TokenId> prompt,
                       const GenerationOptions& options, StopRegexes stops)
    : search_(std::move(stops)),
      lines_(options.indent_min, options.line_time_s),
      keep_stop_(options.keep_stop) {
  if (tokenizer == nullptr) return;
  decoder_.emplace(*tokenizer, options.skip_special_tokens, options.stop);
  decoder_->follow(prompt);
}

TextDelta TextStream::take(const TokenEvent& event) {
  TextDelta delta;
  if (done()) return delta;
  cached_tokens_ = std::max(cached_tokens_, event.cached_tokens);
  restored_tokens_ = std::max(restored_tokens_, event.restored_tokens);
  if (event.has_token && !event.from_prompt) {
    delta.counted = true;
    ++output_tokens_;
    accepted_draft_tokens_ += event.drafted ? 1 : 0;
    drafts_ = event.drafts;
    draft_tokens_ = event.draft_tokens;
    // Text ends before a stop token.
    bool in_text = event.finish != FinishReason::kStop || keep_stop_;
    if (decoder_ && in_text) take_delta(decoder_->push(event.token), delta.text);
  }
  if (!done() && event.finish != FinishReason::kNone) take_finish(event, delta.text);
  return delta;
}

std::string TextStream::cancel() {
  std::string text;
  if (done()) return text;
  if (decoder_) take_delta(decoder_->finish(), text);
  if (!done()) finish_ = FinishReason::kCancelled;
  return text;
}

void TextStream::take_delta(StreamDecoder::Delta delta, std::string& text) {
  if (lines_.take(delta.text)) {
    text += delta.text;
    finish_ = FinishReason::kLength;
    return;
  }
  if (auto found = search_.take(delta.text)) {
    text += delta.text.substr(0, found->end);
    finish_ = FinishReason::kStop;
    matched_text_ = *found->pattern;
    return;
  }
  text += delta.text;
  if (!delta.matched_stop) return;
  if (keep_stop_) text += *delta.matched_stop;
  finish_ = FinishReason::kStop;
  matched_text_ = std::move(delta.matched_stop);
}

void TextStream::take_finish(const TokenEvent& event, std::string& text) {
  if (decoder_) take_delta(decoder_->finish(), text);
  if (done()) return;  // the held-back text completed a stop string
  finish_ = event.finish;
  if (finish_ == FinishReason::kStop) matched_token_ = event.matched_stop;
  if (finish_ == FinishReason::kError) error_ = event.error;
}

}  // namespace banyan
