// Appends JSON text to a buffer, for per-token output where a JSON document would be too slow.
// Stateless; thread-safe.
#pragma once

#include <string>
#include <string_view>

namespace banyan {

// The contents of a JSON string, without quotes. `text` must be UTF-8.
void append_escaped(std::string& out, std::string_view text);
// The same with quotes.
void append_string(std::string& out, std::string_view text);
// The shortest digits that read back as the same float. JSON has no infinity: a log-probability of
// minus infinity is written -9999, as in OpenAI's and vLLM's servers.
void append_logprob(std::string& out, float logprob);
void append_integer(std::string& out, int64_t value);

}  // namespace banyan
