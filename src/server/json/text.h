// JSON written by hand where a document per token would be too slow: pieces appended to a buffer.
#pragma once

#include <string>
#include <string_view>

namespace banyan {

// What stands between the quotes of a JSON string. `text` must be UTF-8.
void append_escaped(std::string& out, std::string_view text);
// With the quotes.
void append_string(std::string& out, std::string_view text);
// The shortest digits that give the same float. JSON has no infinity: a log-probability of minus
// infinity is -9999, as OpenAI's and vLLM's servers write it.
void append_logprob(std::string& out, float logprob);
void append_integer(std::string& out, int64_t value);

}  // namespace banyan
