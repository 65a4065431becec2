#include "program/remote/format.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/json_text.h"
#include "base/signed.h"
#include "program/remote/sampling_json.h"

namespace banyan {
namespace {

using Kind = GrammarSource::Kind;

// Option names that differ between /generate and OpenAI's APIs.
struct OptionNames {
  const char *most, *least, *keep_stop;
};
constexpr OptionNames kNativeNames = {"max_new_tokens", "min_new_tokens", "no_stop_trim"};
constexpr OptionNames kOpenAiNames = {"max_tokens", "min_tokens", "include_stop_str_in_output"};

// Options of length and stopping. Neutral values are omitted, as above.
void put_options(const GenerationOptions& options, const OptionNames& names, Json& out) {
  out[names.most] = options.max_new_tokens;
  if (options.min_new_tokens > 0) out[names.least] = options.min_new_tokens;
  if (!options.stop.empty()) out["stop"] = options.stop;
  if (!options.stop_regex.empty()) out["stop_regex"] = options.stop_regex;
  if (!options.stop_token_ids.empty()) out["stop_token_ids"] = options.stop_token_ids;
  if (options.ignore_eos) out["ignore_eos"] = true;
  if (!options.skip_special_tokens) out["skip_special_tokens"] = false;
  if (options.keep_stop) out[names.keep_stop] = true;
}

// Options of scheduling.
void put_scheduling(const GenerationOptions& options, Json& out) {
  if (options.priority != 0) out["priority"] = options.priority;
  if (!options.cache_salt.empty()) out["cache_salt"] = options.cache_salt;
  if (!options.extra_key.empty()) out["extra_key"] = options.extra_key;
  if (!options.adapter.empty()) out["lora_path"] = options.adapter;
}

Status check_remote(const GenerationOptions& options) {
  const char* name = options.top_logprobs > 0             ? "top_logprobs"
                     : !options.logprob_token_ids.empty() ? "logprob_token_ids"
                     : options.timeout_s > 0              ? "timeout_s"
                                                          : nullptr;
  if (name == nullptr) return {};
  return unsupported("{} of a gen: only a model in the same process has it", name);
}

// A grammar under SGLang's names in sampling_params.
Result<std::pair<const char*, Json>> native_grammar(const GrammarSource& grammar) {
  if (!grammar.after.empty()) {
    return unsupported("a grammar after free text (`after`) has no field in a server's API");
  }
  switch (grammar.kind) {
    case Kind::kRegex:
      return std::pair("regex", Json(grammar.text));
    case Kind::kJsonSchema:
      return std::pair("json_schema", Json(grammar.text));
    case Kind::kJsonObject:
      return std::pair("json_schema", Json(R"({"type":"object"})"));
    case Kind::kEbnf:
      return std::pair("ebnf", Json(grammar.text));
    case Kind::kStructuralTag:
      return std::pair("structural_tag", Json(grammar.text));
    case Kind::kChoices:
      break;
  }
  return std::pair("guided_choice", TRY(parse_json(grammar.text, "choices")));
}

// Under OpenAI's names where they exist, else SGLang's.
Status put_openai_grammar(const GrammarSource& grammar, Json& out) {
  if (grammar.after.empty() && grammar.kind == Kind::kJsonSchema) {
    Json schema = TRY(parse_json(grammar.text, "json_schema"));
    out["response_format"] = {
        {"type", "json_schema"},
        {"json_schema",
         {{"name", "answer"}, {"strict", grammar.json.strict}, {"schema", std::move(schema)}}}};
    return {};
  }
  if (grammar.after.empty() && grammar.kind == Kind::kJsonObject) {
    out["response_format"] = {{"type", "json_object"}};
    return {};
  }
  auto [name, value] = TRY(native_grammar(grammar));
  out[name] = std::move(value);
  return {};
}

Json message_list(const Prompt& prompt) {
  Json list = Json::array();
  for (const ChatMessage& m : prompt.messages) {
    list.push_back({{"role", m.role}, {"content", m.content}});
  }
  if (!prompt.answer.empty()) {
    list.push_back({{"role", "assistant"}, {"content", prompt.answer}});
  }
  return list;
}

FinishReason finish_of(const Json& reason) {
  const Json& type = reason.is_object() && reason.contains("type") ? reason["type"] : reason;
  if (type == "stop" || type == "tool_calls") return FinishReason::kStop;
  if (type == "length") return FinishReason::kLength;
  return type.is_null() ? FinishReason::kNone : FinishReason::kError;
}

// The value at `pointer`, or null.
const Json& at(const Json& json, const char* pointer) {
  static const Json kNull;
  Json::json_pointer place(pointer);
  return json.contains(place) ? json[place] : kNull;
}
int64_t count_at(const Json& json, const char* pointer) {
  const Json& value = at(json, pointer);
  return value.is_number_integer() ? value.get<int64_t>() : 0;
}
std::string text_at(const Json& json, const char* pointer) {
  const Json& value = at(json, pointer);
  return value.is_string() ? value.get<std::string>() : std::string();
}

CallUsage usage_of(ServingApi api, const Json& answer) {
  if (api == ServingApi::kSglang) {
    return {.calls = 1,
            .prompt_tokens = count_at(answer, "/meta_info/prompt_tokens"),
            .cached_tokens = count_at(answer, "/meta_info/cached_tokens"),
            .completion_tokens = count_at(answer, "/meta_info/completion_tokens")};
  }
  return {.calls = 1,
          .prompt_tokens = count_at(answer, "/usage/prompt_tokens"),
          .cached_tokens = count_at(answer, "/usage/prompt_tokens_details/cached_tokens"),
          .completion_tokens = count_at(answer, "/usage/completion_tokens")};
}

// Adds an output token. An empty `text` is unknown, and makes all token ends unknown.
void add_token(GenResult& result, TokenId id, const Json& logprob, const std::string& text) {
  float value = logprob.is_number() ? logprob.get<float>() : 0;
  result.info.logprobs.push_back({.token = id, .logprob = value, .top = {}});
  size_t before = result.token_ends.empty() ? 0 : result.token_ends.back();
  result.token_ends.push_back(before + text.size());
}

void read_logprobs(ServingApi api, const Json& answer, GenResult& result) {
  if (api == ServingApi::kSglang) {
    for (const Json& entry : at(answer, "/meta_info/output_token_logprobs")) {
      if (!entry.is_array() || entry.size() < 2 || !entry[1].is_number_integer()) continue;
      add_token(result, entry[1].get<TokenId>(), entry[0], "");
    }
    result.token_ends.clear();
    return;
  }
  std::string joined;
  auto add = [&](const Json& token, const Json& logprob) {
    std::string text = token.is_string() ? token.get<std::string>() : std::string();
    joined += text;
    add_token(result, -1, logprob, text);
  };
  if (api == ServingApi::kCompletions) {
    const Json& tokens = at(answer, "/choices/0/logprobs/tokens");
    const Json& logprobs = at(answer, "/choices/0/logprobs/token_logprobs");
    for (size_t i = 0; i < std::min(tokens.size(), logprobs.size()); ++i) {
      add(tokens[i], logprobs[i]);
    }
  } else {
    for (const Json& token : at(answer, "/choices/0/logprobs/content")) {
      if (token.is_object()) add(token.value("token", Json()), token.value("logprob", Json()));
    }
  }
  // Tokens with partial characters are spelled differently, which leaves the ends unknown.
  if (!joined.starts_with(result.text)) result.token_ends.clear();
  std::erase_if(result.token_ends, [&](size_t end) { return end > result.text.size(); });
}

void read_finish(ServingApi api, const Json& answer, CallInfo& info) {
  bool native = api == ServingApi::kSglang;
  const Json& reason = at(answer, native ? "/meta_info/finish_reason" : "/choices/0/finish_reason");
  if (!reason.is_null()) info.finish = finish_of(reason);
  for (const char* place :
       {"/meta_info/finish_reason/matched", "/choices/0/matched_stop", "/choices/0/stop_reason"}) {
    if (at(answer, place).is_string()) info.matched_stop = text_at(answer, place);
  }
}

const char* text_place(ServingApi api) {
  if (api == ServingApi::kSglang) return "/text";
  return api == ServingApi::kCompletions ? "/choices/0/text" : "/choices/0/message/content";
}

}  // namespace

Result<std::string> gen_body(const RemoteStyle& style, const GenCall& call, bool stream) {
  const GenerationOptions& options = call.options;
  const std::optional<GrammarSource>& grammar = options.grammar;
  TRY(check_remote(options));
  Json body = Json::object();
  if (style.api == ServingApi::kSglang) {
    Json sampling = Json::object();
    put_options(options, kNativeNames, sampling);
    if (call.sampling) put_sampling(*call.sampling, "sampling_seed", sampling);
    if (grammar) {
      auto [name, value] = TRY(native_grammar(*grammar));
      sampling[name] = std::move(value);
    }
    body = {{"text", call.prompt.text}, {"sampling_params", std::move(sampling)}};
    if (options.logprobs) body["return_logprob"] = true;
  } else {
    body["model"] = style.model;
    put_options(options, kOpenAiNames, body);
    if (call.sampling) put_sampling(*call.sampling, "seed", body);
    if (grammar) TRY(put_openai_grammar(*grammar, body));
    if (style.api == ServingApi::kCompletions) {
      body["prompt"] = call.prompt.text;
      if (options.logprobs) body["logprobs"] = 1;
    } else {
      body["messages"] = message_list(call.prompt);
      if (options.logprobs) body["logprobs"] = true;
      if (!call.prompt.answer.empty()) {
        body["continue_final_message"] = true;
        body["add_generation_prompt"] = false;
      }
    }
    if (stream) body["stream_options"] = {{"include_usage", true}};
  }
  put_scheduling(options, body);
  if (stream) body["stream"] = true;
  return dump_json(body);
}

Result<GenResult> read_gen(ServingApi api, const Json& answer) {
  const Json& text = at(answer, text_place(api));
  if (!text.is_string() && !(text.is_null() && api == ServingApi::kChat)) {
    return corrupt("the answer has no {}", text_place(api) + 1);
  }
  GenResult result{.text = text.is_string() ? text.get<std::string>() : std::string(),
                   .info = {},
                   .token_ends = {}};
  result.info.usage = usage_of(api, answer);
  read_finish(api, answer, result.info);
  if (result.info.finish == FinishReason::kError) {
    return make_error(ErrorCode::kCancelled, "the server aborted the call");
  }
  read_logprobs(api, answer, result);
  return result;
}

Result<std::string> read_gen_event(ServingApi api, const Json& event, GenResult& result) {
  std::string piece;
  if (api == ServingApi::kSglang) {
    std::string whole = text_at(event, "/text");
    if (!whole.empty() && !whole.starts_with(result.text)) {
      return corrupt("an event's text does not extend the text of the event before it");
    }
    if (!whole.empty()) piece = whole.substr(result.text.size());
  } else {
    piece = text_at(
        event, api == ServingApi::kCompletions ? "/choices/0/text" : "/choices/0/delta/content");
  }
  result.text += piece;
  read_finish(api, event, result.info);
  if (result.info.finish == FinishReason::kError) {
    return make_error(ErrorCode::kCancelled, "the server aborted the call");
  }
  CallUsage usage = usage_of(api, event);
  if (usage.prompt_tokens > 0) result.info.usage = usage;
  return piece;
}

std::string score_body(const RemoteStyle& style, const std::vector<std::string>& prompts,
                       int64_t logprob_start) {
  if (style.api == ServingApi::kSglang) {
    return dump_json({{"text", prompts},
                      {"sampling_params", {{"max_new_tokens", 0}, {"temperature", 0}}},
                      {"return_logprob", true},
                      {"logprob_start_len", logprob_start}});
  }
  return dump_json({{"model", style.model},
                    {"prompt", prompts},
                    {"max_tokens", 0},
                    {"temperature", 0},
                    {"echo", true},
                    {"logprobs", 0}});
}

std::string score_ids_body(const std::vector<std::vector<TokenId>>& prompts) {
  return dump_json({{"input_ids", prompts},
                    {"sampling_params", {{"max_new_tokens", 0}, {"temperature", 0}}},
                    {"return_logprob", true},
                    {"logprob_start_len", 0}});
}

std::string prefill_body(const std::string& prompt) {
  return dump_json(
      {{"text", prompt}, {"sampling_params", {{"max_new_tokens", 0}, {"temperature", 0}}}});
}

Result<std::vector<ScoredPrompt>> read_scores(ServingApi api, const Json& answer) {
  std::vector<ScoredPrompt> scores;
  auto logprob_of = [](const Json& value) {
    return value.is_number() ? std::optional(value.get<float>()) : std::nullopt;
  };
  if (api == ServingApi::kSglang) {
    if (!answer.is_array()) return corrupt("the answer to a list of prompts is not a list");
    for (const Json& one : answer) {
      const Json& tokens = at(one, "/meta_info/input_token_logprobs");
      if (!tokens.is_array()) return corrupt("the answer has no meta_info/input_token_logprobs");
      ScoredPrompt& score = scores.emplace_back();
      score.usage = usage_of(api, one);
      for (const Json& token : tokens) {
        if (!token.is_array() || token.size() < 2 || !token[1].is_number_integer()) {
          return corrupt("a token of input_token_logprobs is not [logprob, id, ...]");
        }
        score.tokens.push_back({token[1].get<TokenId>(), "", logprob_of(token[0])});
      }
    }
    return scores;
  }
  const Json& choices = at(answer, "/choices");
  if (!choices.is_array() || choices.empty()) return corrupt("the answer has no choices");
  for (const Json& choice : choices) {
    const Json& tokens = at(choice, "/logprobs/tokens");
    const Json& logprobs = at(choice, "/logprobs/token_logprobs");
    if (!tokens.is_array() || tokens.empty() || tokens.size() != logprobs.size()) {
      return unsupported("the server gives no logprobs of prompts (`echo` with `logprobs`)");
    }
    ScoredPrompt& score = scores.emplace_back();
    for (size_t i = 0; i < tokens.size(); ++i) {
      if (!tokens[i].is_string()) return corrupt("logprobs/tokens/{} is no text", i);
      score.tokens.push_back({-1, tokens[i].get<std::string>(), logprob_of(logprobs[i])});
    }
  }
  scores.front().usage = usage_of(api, answer);
  scores.front().usage.calls = std::ssize(scores);
  return scores;
}

}  // namespace banyan
