// From one request's token events to its Generation. One per request; belongs to one thread.
#pragma once

#include <chrono>
#include <string>

#include "banyan/llm.h"
#include "llm/text_stream.h"

namespace banyan {

class GenerationBuilder {
 public:
  // `stops` come of the options' stop_regex; `begun` has the prompt's ids and the grammar's notes.
  // Its times run from here on. The tokenizer must outlive it; null means no text.
  GenerationBuilder(const GenerationOptions& options, StopRegexes stops, const Tokenizer* tokenizer,
                    Generation begun);

  // What the event added. When done() the request is over, even if the engine does not know yet.
  TextDelta take(const TokenEvent& event);
  // Ends the output here, as cancelled. Gives what was held back.
  std::string cancel();
  bool done() const { return stream_.done(); }

  // What came of it, once it is done. Errors: the request's.
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
