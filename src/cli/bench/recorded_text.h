// Conversations whose answers are known, for benchmarks of speculation.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "banyan/grammar_source.h"
#include "banyan/llm.h"
#include "banyan/status.h"
#include "base/json.h"

namespace banyan::cli {

struct RecordedText {
  std::string name;
  Json messages;                            // as ChatPrompt has them
  Json tools;                               // likewise
  bool think = false;                       // the template's enable_thinking
  std::optional<std::string> answer;        // absent: the model's own
  std::optional<GrammarSource> constraint;  // of the answer
};

// bench/texts, as part of the program: JSON objects.
std::span<const std::string_view> embedded_texts();

// Reads a file: one JSON object, or one on each line.
//   {"name": "edit", "messages": [{"role": "user", "content": "..."}, ...]}
// If the last message is the assistant's, it is the recorded answer. Suites of `eval nano` can be
// read too. Optional: "suite" in place of "name", "tools", "think", "schema" (the answer's).
// `source` is the file's name in errors.
Result<std::vector<RecordedText>> parse_recorded_texts(std::string_view text,
                                                       const std::string& source);

// The request for the text's answer, greedy; `recorded` is empty if the model is to write its own.
struct RecordedRequest {
  GenerateRequest request;
  std::vector<TokenId> recorded;
};
// Errors: no tokenizer, a recorded answer that the schema forbids.
Result<RecordedRequest> to_request(const Llm& llm, const RecordedText& text,
                                   int64_t new_tokens_max);

}  // namespace banyan::cli
