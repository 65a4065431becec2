// From one sequence's token events to its text: deltas, the finish reason with what matched, and
// the counts that go into `usage`.
//
// The deltas joined are the output's text: whole characters, decoded after the prompt's last
// tokens, up to the stop string or stop token that came first. Text and count end where a stop
// string is complete, whatever the engine has computed after it: from then on take() says nothing,
// and the owner cancels the sequence. A token costs what its own text costs, never the history's.
//
// One per sequence; belongs to one thread. The tokenizer must outlive it; null means no text.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "banyan/request.h"
#include "llm/stop_regex.h"
#include "text/stream_decoder.h"

namespace banyan {

// What one event added.
struct TextDelta {
  std::string text;
  bool counted = false;  // the event's token is one of the output's
};

class TextStream {
 public:
  // Of `options`: stop, skip_special_tokens, keep_stop. A match of `stops`, which come of its
  // stop_regex, ends the text too, and stays in it.
  TextStream(const Tokenizer* tokenizer, std::span<const TokenId> prompt,
             const GenerationOptions& options, StopRegexes stops = {});

  // Events of prompt tokens add nothing.
  TextDelta take(const TokenEvent& event);
  // Ends the output here, as cancelled. Gives what was held back.
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
  bool keep_stop_ = false;
  int64_t output_tokens_ = 0, cached_tokens_ = 0, restored_tokens_ = 0;
  int64_t drafts_ = 0, draft_tokens_ = 0, accepted_draft_tokens_ = 0;
  FinishReason finish_ = FinishReason::kNone;
  std::optional<std::string> matched_text_;
  std::optional<TokenId> matched_token_;
  Error error_;
};

}  // namespace banyan
