// The protocols of a load test: builds requests and extracts what matters from response events.
//
// Events are scanned for a few keys instead of parsed, since a client that shares cores with the
// server must spend little per token. The scan is exact: JSON escapes quotation marks within
// strings, so `"key":` only occurs as a key.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "client/dataset.h"
#include "client/http_client.h"

namespace banyan {

enum class ServingApi { kSglang, kCompletions, kChat };

// The messages so far, starting with the user's.
using Conversation = std::vector<std::string>;

// What the server reports about itself; 0 or empty where unknown.
struct ServerFacts {
  std::string model;
  int64_t vocabulary = 0;
  int64_t context_tokens = 0;
  std::optional<double> accept_length;  // tokens per step with speculative decoding
  Json server_info;                     // the answer of /get_server_info, or null
};

// Queries /v1/models, /get_model_info and /get_server_info; at least one must answer.
Result<ServerFacts> ask_server(HttpClient& client, const std::string& base_url);

struct RequestStyle {
  ServingApi api = ServingApi::kSglang;
  std::string model;
  int64_t vocabulary = 0;  // of prompts as ids, for kSglang and kCompletions
  bool ignore_eos = true;
  Json extra = Json::object();  // merged over the request
};

const char* path_of(ServingApi api);
// The request body for `prompt`; for a conversation, with the messages so far.
std::string request_body(const RequestStyle& style, const BenchPrompt& prompt, uint64_t seed,
                         const Conversation& said);

// The contents of an event; counts are -1 where absent.
struct EventFacts {
  bool has_text = false;  // it carries a piece of the answer
  int64_t completion_tokens = -1, prompt_tokens = -1, cached_tokens = -1;
  std::string error;  // why the answer ended early
};
EventFacts read_event(ServingApi api, std::string_view data);

// Adds an event's text to `answer`. kSglang's events carry the whole text so far, which replaces
// it.
void take_text(ServingApi api, std::string_view data, std::string& answer);

// The message in an error body of OpenAI's, SGLang's or llama-server's format; else the start of
// the body.
std::string error_message(std::string_view body);

}  // namespace banyan
