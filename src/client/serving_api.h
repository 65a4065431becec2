// The protocols that a load test speaks: how a request is written and what an event of the answer
// says.
//
// Events are read by looking for the keys that matter and no others, since a client that shares its
// cores with the server must cost little for each token. That is exact: a quotation mark inside a
// JSON text is escaped by a backslash, so `"key":` occurs as a key alone.
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

// Of a conversation: what has been said, beginning with the user.
using Conversation = std::vector<std::string>;

// What the server tells of itself; unknown is 0 or empty.
struct ServerFacts {
  std::string model;
  int64_t vocabulary = 0;
  int64_t context_tokens = 0;
  std::optional<double> accept_length;  // tokens per step of speculation
  Json server_info;                     // as /get_server_info has it, or null
};

// Asks /v1/models, /get_model_info and /get_server_info, of which one must answer.
Result<ServerFacts> ask_server(HttpClient& client, const std::string& base_url);

struct RequestStyle {
  ServingApi api = ServingApi::kSglang;
  std::string model;
  int64_t vocabulary = 0;  // of ids in prompts, for kSglang and kCompletions
  bool ignore_eos = true;
  Json extra = Json::object();  // laid over the request
};

const char* path_of(ServingApi api);
// The request of `prompt`; of a conversation with what has been said until now.
std::string request_body(const RequestStyle& style, const BenchPrompt& prompt, uint64_t seed,
                         const Conversation& said);

// What an event says; counts are -1 where it does not say.
struct EventFacts {
  bool has_text = false;  // a piece of the answer
  int64_t completion_tokens = -1, prompt_tokens = -1, cached_tokens = -1;
  std::string error;  // why the answer ends before its time
};
EventFacts read_event(ServingApi api, std::string_view data);

// Adds the text of an event to `answer`. kSglang's events hold all of the answer until then, which
// replaces it.
void take_text(ServingApi api, std::string_view data, std::string& answer);

// The message of an error's body, in OpenAI's, SGLang's or llama-server's shape; else its
// beginning.
std::string error_message(std::string_view body);

}  // namespace banyan
