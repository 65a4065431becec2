// Converts one sequence's token events to text: deltas, the finish reason and what matched, and the
// counts for `usage`.
//
// The deltas concatenate to the output text: whole characters, decoded as a continuation of the
// prompt, up to the first stop string or stop token. Text and counts end where a stop string
// completes. The engine may compute more; take() then returns nothing, and the owner cancels the
// sequence. The cost of a token depends on its own text only, not on the history.
//
// One per sequence; belongs to one thread. The tokenizer must outlive it; null means no text.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "banyan/request.h"
#include "llm/line_limits.h"
#include "llm/stop_regex.h"
#include "text/stream_decoder.h"

namespace banyan {

// What one event adds.
struct TextDelta {
  std::string text;
  bool counted = false;  // the event's token is part of the output
};

class TextStream {
 public:
  // Uses the text options, stop to keep_stop, but for stop_regex: `stops` is compiled from
  // stop_regex; a match also ends the text and is included in it.
  TextStream(const Tokenizer* tokenizer, std::span<const TokenId> prompt,
             const GenerationOptions& options, StopRegexes stops = {});

  // Prompt tokens add nothing.
  TextDelta take(const TokenEvent& event);
  // Ends the output as cancelled. Returns the text that was held back.
  std::string cancel();

  bool done() const { return finish_ != FinishReason::kNone; }
  FinishReason finish() const { return finish_; }
  const std::optional<std::string>& matched_text() const { return matched_text_; }
  const std::optional<TokenId>& matched_token() const { return matched_token_; }
  const Error& error() const { return error_; }  // with FinishReason::kError

  int64_t output_tokens() const { return output_tokens_; }      // a stop token counts
  int64_t cached_tokens() const { return cached_tokens_; }      // of the prompt, ...
  int64_t restored_tokens() const { return restored_tokens_; }  // ... and of them those loaded
  // Steps in which tokens were proposed ahead, how many tokens, and how many of them are in the
  // output.
  int64_t drafts() const { return drafts_; }
  int64_t draft_tokens() const { return draft_tokens_; }
  int64_t accepted_draft_tokens() const { return accepted_draft_tokens_; }

 private:
  void take_delta(StreamDecoder::Delta delta, std::string& text);
  void take_finish(const TokenEvent& event, std::string& text);

  std::optional<StreamDecoder> decoder_;
  StopRegexSearch search_;
  LineLimits lines_;
  bool keep_stop_ = false;
  int64_t output_tokens_ = 0, cached_tokens_ = 0, restored_tokens_ = 0;
  int64_t drafts_ = 0, draft_tokens_ = 0, accepted_draft_tokens_ = 0;
  FinishReason finish_ = FinishReason::kNone;
  std::optional<std::string> matched_text_;
  std::optional<TokenId> matched_token_;
  Error error_;
};

}  // namespace banyan
