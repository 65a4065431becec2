#include "client/serving_api.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <type_traits>

#include "base/error.h"
#include "base/json_text.h"
#include "base/quote.h"
#include "base/signed.h"

namespace banyan {
namespace {

constexpr size_t kMessageBytesMax = 300;

// Returns what follows `key` (written with quotes and colon); empty if absent. Searches the tail
// first: long events repeat the whole answer and have their counts at the end.
std::string_view behind(std::string_view data, std::string_view key) {
  constexpr size_t kTailBytes = 512;
  std::string_view part = data.substr(data.size() - std::min(data.size(), kTailBytes));
  const void* found = memmem(part.data(), part.size(), key.data(), key.size());
  if (found == nullptr && part.size() < data.size()) {
    found = memmem(data.data(), data.size(), key.data(), key.size());
  }
  if (found == nullptr) return {};
  auto place = as_size(static_cast<const char*>(found) - data.data());
  std::string_view value = data.substr(place + key.size());
  return value.substr(std::min(value.find_first_not_of(' '), value.size()));
}

int64_t number_at(std::string_view data, std::string_view key) {
  std::string_view value = behind(data, key);
  int64_t number = -1;
  std::from_chars(value.data(), value.data() + value.size(), number);
  return number;
}

bool has_nonempty_text(std::string_view data, std::string_view key) {
  std::string_view value = behind(data, key);
  return value.starts_with('"') && !value.starts_with("\"\"");
}

// `reason` is the value of "finish_reason": a name, or an object with a type.
bool is_abort(std::string_view reason) {
  if (reason.starts_with('{')) reason = behind(reason, R"("type":)");
  return reason.starts_with("\"abort\"");
}

void append_ids(const BenchPrompt& prompt, uint64_t seed, int64_t vocabulary, std::string& out) {
  out += '[';
  append_token_ids(prompt, seed, vocabulary, [&](TokenId id) {
    if (out.back() != '[') out += ',';
    fmt::format_int text(id);
    out.append(text.data(), text.size());
  });
  out += ']';
}

// A plain text transcript, for APIs without roles.
std::string transcript(const Conversation& said) {
  std::string text;
  for (size_t i = 0; i < said.size(); ++i) {
    text += fmt::format("{}: {}\n", i % 2 == 0 ? "USER" : "ASSISTANT", said[i]);
  }
  return text + "ASSISTANT:";
}

Json messages(const Conversation& said) {
  Json list = Json::array();
  for (size_t i = 0; i < said.size(); ++i) {
    list.push_back({{"role", i % 2 == 0 ? "user" : "assistant"}, {"content", said[i]}});
  }
  return list;
}

Json options_of(const RequestStyle& style, int64_t output_tokens) {
  if (style.api == ServingApi::kSglang) {
    return {{"sampling_params",
             {{"temperature", 0.0},
              {"max_new_tokens", output_tokens},
              {"ignore_eos", style.ignore_eos}}},
            {"stream", true}};
  }
  return {{"model", style.model},
          {"temperature", 0.0},
          {"max_tokens", output_tokens},
          {"ignore_eos", style.ignore_eos},
          {"stream", true},
          {"stream_options", {{"include_usage", true}}}};
}

// The response as an object, if the server has such an endpoint and answers in JSON.
Result<std::optional<Json>> ask(HttpClient& client, const std::string& path) {
  HttpClient::Answer answer = TRY(client.fetch({.method = "GET", .path = path}));
  if (answer.status == 401 || answer.status == 403) {
    return invalid_argument("the server requires an API key: {}; pass it with --api-key",
                            error_message(answer.body));
  }
  if (answer.status == 503) {
    return exhausted("the server is not ready: {}", error_message(answer.body));
  }
  if (answer.status != 200) return std::optional<Json>();
  Result<Json> json = parse_json(answer.body, path);
  if (!json || !json->is_object()) return std::optional<Json>();
  return std::optional(*std::move(json));
}

// The value at `pointer` if it exists and has the type of `otherwise`.
template <class T>
T value_at(const Json& json, const char* pointer, T otherwise) {
  Json::json_pointer place(pointer);
  if (!json.contains(place)) return otherwise;
  const Json& value = json[place];
  bool fits = std::is_same_v<T, std::string> ? value.is_string() : value.is_number();
  return fits ? value.get<T>() : otherwise;
}

}  // namespace

Result<ServerFacts> ask_server(HttpClient& client, const std::string& base_url) {
  ServerFacts facts;
  auto models = ask(client, "/v1/models");
  if (!models && models.error().code == ErrorCode::kIo) {
    return io_error(
        "no server answers at {}: {}; start one with `banyan serve`, or name another "
        "with --base-url",
        base_url, models.error().message);
  }
  std::optional<Json> list = TRY(std::move(models));
  std::optional<Json> model = TRY(ask(client, "/get_model_info"));
  std::optional<Json> server = TRY(ask(client, "/get_server_info"));
  if (!list && !model && !server) {
    return unsupported(
        "{} has none of /v1/models, /get_model_info and /get_server_info; is it a "
        "server of language models?",
        base_url);
  }
  if (list) {
    facts.model = value_at(*list, "/data/0/id", std::string());
    facts.vocabulary = value_at(*list, "/data/0/meta/n_vocab", int64_t{0});
    int64_t context = value_at(*list, "/data/0/meta/n_ctx_train", int64_t{0});
    facts.context_tokens = value_at(*list, "/data/0/max_model_len", context);
  }
  if (model) {
    if (facts.model.empty()) facts.model = value_at(*model, "/model_path", std::string());
    facts.vocabulary = value_at(*model, "/vocab_size", facts.vocabulary);
    facts.context_tokens = value_at(*model, "/max_model_len", facts.context_tokens);
  }
  if (server) {
    facts.vocabulary = value_at(*server, "/vocab_size", facts.vocabulary);
    double accepted = value_at(*server, "/internal_states/0/avg_spec_accept_length", 0.0);
    if (accepted > 0) facts.accept_length = accepted;
    facts.server_info = *std::move(server);
  }
  return facts;
}

const char* path_of(ServingApi api) {
  switch (api) {
    case ServingApi::kSglang:
      return "/generate";
    case ServingApi::kCompletions:
      return "/v1/completions";
    case ServingApi::kChat:
      break;
  }
  return "/v1/chat/completions";
}

std::string request_body(const RequestStyle& style, const BenchPrompt& prompt, uint64_t seed,
                         const Conversation& said) {
  Json body = options_of(style, prompt.output_tokens);
  bool by_ids = said.empty() && style.api != ServingApi::kChat;
  bool native = style.api == ServingApi::kSglang;
  if (style.api == ServingApi::kChat) {
    body["messages"] = messages(said.empty() ? Conversation{prompt_words(prompt, seed)} : said);
  } else if (!by_ids) {
    body[native ? "text" : "prompt"] = transcript(said);
  }
  body.merge_patch(style.extra);
  std::string text = dump_json(body);
  if (!by_ids) return text;
  // Format ids as text: as JSON values they would cost more than all the rest.
  std::string with_ids = fmt::format(R"({{"{}":)", native ? "input_ids" : "prompt");
  append_ids(prompt, seed, style.vocabulary, with_ids);
  with_ids += ',';
  with_ids.append(text, 1);
  return with_ids;
}

EventFacts read_event(ServingApi api, std::string_view data) {
  EventFacts facts;
  if (data.starts_with(R"({"error")") || data.starts_with(R"({"object":"error")")) {
    facts.error = error_message(data);
    return facts;
  }
  std::string_view reason = behind(data, R"("finish_reason":)");
  bool last = !reason.empty() && !reason.starts_with("null");
  facts.completion_tokens = number_at(data, R"("completion_tokens":)");
  if (facts.completion_tokens >= 0 && (last || api != ServingApi::kSglang)) {
    facts.prompt_tokens = number_at(data, R"("prompt_tokens":)");
    facts.cached_tokens = number_at(data, R"("cached_tokens":)");
  }
  if (api == ServingApi::kCompletions) {
    facts.has_text = has_nonempty_text(data, R"("text":)");
  } else if (api == ServingApi::kChat) {
    facts.has_text = has_nonempty_text(data, R"("content":)") ||
                     has_nonempty_text(data, R"("reasoning_content":)") ||
                     has_nonempty_text(data, R"("reasoning":)");
  }
  if (last && is_abort(reason)) facts.error = "aborted by the server";
  return facts;
}

void take_text(ServingApi api, std::string_view data, std::string& answer) {
  Result<Json> json = parse_json(data, "event");
  if (!json) return;
  switch (api) {
    case ServingApi::kSglang:
      answer = value_at(*json, "/text", answer);
      return;
    case ServingApi::kCompletions:
      answer += value_at(*json, "/choices/0/text", std::string());
      return;
    case ServingApi::kChat:
      answer += value_at(*json, "/choices/0/delta/content", std::string());
  }
}

std::string error_message(std::string_view body) {
  if (Result<Json> json = parse_json(body, "error"); json && json->is_object()) {
    for (const char* pointer : {"/error/message", "/message", "/error", "/detail"}) {
      std::string message = value_at(*json, pointer, std::string());
      if (!message.empty()) return message.substr(0, kMessageBytesMax);
    }
  }
  return body.empty() ? "no reason given" : quote(body, kMessageBytesMax);
}

}  // namespace banyan
