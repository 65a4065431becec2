// Builds a Generation from one request's token events. One per request; belongs to one thread.
#pragma once

#include <chrono>
#include <string>

#include "banyan/llm.h"
#include "llm/text_stream.h"

namespace banyan {

class GenerationBuilder {
 public:
  // `stops` is compiled from the options' stop_regex; `begun` holds the prompt's ids and the
  // grammar's notes. Timing starts here. The tokenizer must outlive this; null means no text.
  GenerationBuilder(const GenerationOptions& options, StopRegexes stops, const Tokenizer* tokenizer,
                    Generation begun);

  // Returns what the event adds. Once done() the request is over, even if the engine still runs it.
  TextDelta take(const TokenEvent& event);
  // Ends the output as cancelled. Returns the text that was held back.
  std::string cancel();
  bool done() const { return stream_.done(); }

  // The result, once done(). Errors: the request's.
  Result<Generation> finish();

 private:
  using Clock = std::chrono::steady_clock;

  void write_times();

  Generation generation_;
  bool logprobs_;
  TextStream stream_;
  Clock::time_point begin_ = Clock::now(), first_token_, last_token_;
};

}  // namespace banyan
