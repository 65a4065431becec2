#include "cli/chat.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>

#include "base/error.h"
#include "base/file.h"
#include "base/quote.h"
#include "cli/options.h"
#include "cli/terminal.h"
#include "llm/chat_prompt.h"
#include "text/tokenizer.h"

namespace banyan::cli {
namespace {

constexpr std::string_view kHelp =
    "/reset             start over\n"
    "/system TEXT       tell the model how to be; without TEXT: nothing\n"
    "/set NAME VALUE    temperature, top_p, top_k, min_p, frequency_penalty, presence_penalty,\n"
    "                   repetition_penalty, max_new_tokens, seed (a number, or `random`)\n"
    "/json SCHEMA       replies are JSON that this schema calls valid: a file, or the schema\n"
    "                   itself; without one any JSON object, `off`: any text\n"
    "/tools FILE        the model may call these tools, a JSON list as OpenAI's clients write it;\n"
    "                   your next message is then what the tool gives back; `off`: none\n"
    "/think on|off      whether the model thinks first, if its template knows enable_thinking\n"
    "/show              settings, and how full the context is\n"
    "/quit              leave; so does Ctrl-D\n"
    "\n"
    "A line that ends in \\ goes on in the next; \"\"\" begins and ends a longer message. A "
    "message\n"
    "that begins with / is written with two of them. Ctrl-C stops a reply.\n";

struct FloatSetting {
  std::string_view name;
  float SamplingParams::* member;
};

constexpr std::array kFloatSettings = {
    FloatSetting{"temperature", &SamplingParams::temperature},
    FloatSetting{"top_p", &SamplingParams::top_p},
    FloatSetting{"min_p", &SamplingParams::min_p},
    FloatSetting{"frequency_penalty", &SamplingParams::frequency_penalty},
    FloatSetting{"presence_penalty", &SamplingParams::presence_penalty},
    FloatSetting{"repetition_penalty", &SamplingParams::repetition_penalty},
};

template <class T>
Result<T> parse_number(std::string_view name, std::string_view text) {
  T value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) {
    return invalid_argument("{}: {} is not a number that fits", name, quote(text));
  }
  return value;
}

// The first word of `text`, which loses it and the spaces after it.
std::string_view take_word(std::string_view& text) {
  size_t end = std::min(text.find(' '), text.size());
  std::string_view word = text.substr(0, end);
  text.remove_prefix(std::min(text.find_first_not_of(' ', end), text.size()));
  return word;
}

std::string_view trim(std::string_view text) {
  size_t first = std::min(text.find_first_not_of(" \t\r\n"), text.size());
  return text.substr(first);
}

void say(std::string_view text) {
  fmt::print(stderr, "{}{}{}\n", dim(), text, undim());
}

// The reply as the conversation keeps it, its calls apart from its text.
Json assistant_message(MessageDelta delta, size_t turn) {
  Json message = {{"role", "assistant"}, {"content", std::move(delta.content)}};
  for (const ToolCallDelta& part : delta.calls) {
    Json& calls = message["tool_calls"];
    if (part.index >= calls.size()) {
      calls.push_back({{"id", fmt::format("call_{}_{}", turn, part.index)},
                       {"type", "function"},
                       {"function", {{"name", ""}, {"arguments", ""}}}});
    }
    Json& function = calls[part.index]["function"];
    function["name"] = function["name"].get<std::string>() + part.name;
    function["arguments"] = function["arguments"].get<std::string>() + part.arguments;
  }
  return message;
}

}  // namespace

Result<Json> read_tool_list(const std::string& text_or_file) {
  bool in_place = trim(text_or_file).starts_with('[');
  std::string text = in_place ? text_or_file : TRY(read_file(text_or_file));
  Json tools = TRY(parse_json(text, in_place ? "the list of tools" : text_or_file));
  if (!tools.is_array() || tools.empty()) {
    return invalid_argument("{} is not a list of tools", in_place ? "this" : text_or_file);
  }
  return tools;
}

Chat::Chat(Llm& llm, ChatSettings settings) : llm_(llm), settings_(std::move(settings)) {
  std::string form = llm.tokenizer()->chat_template().value_or("");
  syntax_ = find_chat_syntax("auto", "auto", form).value();  // "auto" is always a name
}

Chat::Next Chat::command(std::string_view line) {
  std::string_view rest = line;
  std::string_view name = take_word(rest);
  if (name == "/quit" || name == "/exit") return Next::kLeave;
  if (name == "/help") {
    fmt::print(stderr, "{}", kHelp);
  } else if (name == "/reset") {
    reset();
  } else if (name == "/system") {
    set_system(rest);
  } else if (name == "/show") {
    show();
  } else if (name == "/set" && rest.empty()) {
    show();
  } else if (name == "/set") {
    std::string_view setting = take_word(rest);
    Status done = set(setting, rest);
    say(done ? fmt::format("{} is now {}", setting, rest) : done.error().message);
  } else if (name == "/json" || name == "/tools" || name == "/think") {
    Status done = name == "/json"    ? set_json(rest)
                  : name == "/tools" ? set_tools(rest)
                                     : set_thinking(rest);
    if (!done) say(done.error().message);
  } else {
    say(fmt::format("{} is not a command; /help lists them, // begins a message with /",
                    quote(name)));
  }
  return Next::kGoOn;
}

Result<TextRequest> Chat::request_with(const Json& message) const {
  const Tokenizer& tokenizer = *llm_.tokenizer();
  TextRequest request;
  request.grammar = settings_.grammar;
  if (!llm_.has_chat_template()) {
    request.ids = TRY(tokenizer.encode(text_ + message["content"].get<std::string>()));
    return request;
  }
  ChatPrompt prompt{.messages = Json::array(),
                    .tools = settings_.tools,
                    .documents = nullptr,
                    .variables = settings_.variables};
  if (!settings_.system.empty()) {
    prompt.messages.push_back({{"role", "system"}, {"content", settings_.system}});
  }
  for (const Json& said : messages_) prompt.messages.push_back(said);
  prompt.messages.push_back(message);
  request.text = TRY(render_chat(llm_, std::move(prompt)));
  request.ids = TRY(tokenizer.encode(request.text, {.add_special_tokens = false}));
  // A model that has begun to think follows the grammar once it has ended.
  bool thinks = syntax_.reasoning != nullptr &&
                reasoning_start(*syntax_.reasoning, request.text) == ReasoningStart::kInside;
  if (request.grammar && thinks) request.grammar->after = syntax_.reasoning->end;
  return request;
}

Status Chat::reply(const std::string& message) {
  if (llm_.has_chat_template() && message.empty() && pending_.empty()) return {};
  if (pending_.empty()) return answer({{"role", "user"}, {"content", message}});
  const Json& call = pending_.front();
  Json result = {{"role", "tool"},
                 {"name", call["function"]["name"]},
                 {"tool_call_id", call["id"]},
                 {"content", message}};
  if (pending_.size() == 1) return answer(result);
  messages_.push_back(std::move(result));
  pending_.erase(pending_.begin());
  ask_for_result();
  return {};
}

Status Chat::answer(const Json& message) {
  TextRequest request = TRY(request_with(message));
  if (request.ids.empty()) return invalid_argument("that is no token at all; say something");
  auto prompt_tokens = static_cast<int64_t>(request.ids.size());
  int64_t room = context_tokens() - prompt_tokens;
  if (room < 1) {
    return exhausted(
        "with this message the conversation has {} tokens, the context holds {}; "
        "/reset starts over, a shorter message may fit",
        prompt_tokens, context_tokens());
  }
  request.max_new_tokens = std::min(room, settings_.max_new_tokens.value_or(room));
  request.sampling = settings_.sampling;
  request.sampling.seed = settings_.seed.value_or(random_seed());
  request.stop = settings_.stop;
  request.stop_token_ids = settings_.stop_token_ids;
  request.ignore_eos = settings_.ignore_eos;
  Generation g = TRY(llm_.generate(request, write_stdout, InterruptScope::raised));
  write_stdout("\n");
  pending_.clear();
  if (llm_.has_chat_template()) {
    messages_.push_back(message);
    take_reply(request.text, g.text);
  } else {
    text_ += message["content"].get<std::string>() + g.text + "\n";
  }
  used_tokens_ = prompt_tokens + static_cast<int64_t>(g.output_ids.size());
  report(g);
  return {};
}

// Without tools the text is kept as it is: the template knows best what to do with its marks.
void Chat::take_reply(const std::string& prompt, const std::string& text) {
  if (settings_.tools.is_null() || syntax_.tool_calls == nullptr) {
    messages_.push_back({{"role", "assistant"}, {"content", text}});
    return;
  }
  MessageParserOptions options{.syntax = syntax_, .tools = {}};
  if (syntax_.reasoning != nullptr) {
    options.start = reasoning_start(*syntax_.reasoning, prompt);
  }
  MessageParser parser(options);
  MessageDelta delta;
  parser.push(text, delta);
  parser.finish(delta);
  messages_.push_back(assistant_message(std::move(delta), messages_.size()));
  if (!messages_.back().contains("tool_calls")) return;
  for (const Json& call : messages_.back()["tool_calls"]) pending_.push_back(call);
  ask_for_result();
}

void Chat::ask_for_result() const {
  std::string name = pending_.front()["function"]["name"].get<std::string>();
  say(fmt::format("What does {} give back?", printable(name)));
}

void Chat::report(const Generation& g) const {
  size_t tokens = g.output_ids.size();
  if (g.finish == FinishReason::kLength && used_tokens_ >= context_tokens()) {
    say(fmt::format("The context of {} tokens is full; /reset starts over.", context_tokens()));
  } else if (g.finish == FinishReason::kLength) {
    say(fmt::format("Stopped after max_new_tokens, {}; /set max_new_tokens N changes it.", tokens));
  }
  if (!stderr_is_terminal()) return;
  std::string speed =
      g.decode_tokens_per_s > 0 ? fmt::format(", {:.1f} tok/s", g.decode_tokens_per_s) : "";
  say(fmt::format("[{} tokens{}; context {} of {}]", tokens, speed, used_tokens_,
                  context_tokens()));
}

void Chat::reset() {
  messages_.clear();
  pending_.clear();
  text_.clear();
  used_tokens_ = 0;
  say("The conversation starts over.");
}

void Chat::set_system(std::string_view text) {
  if (!llm_.has_chat_template()) {
    say("This model has no chat template, so it knows no system message.");
    return;
  }
  settings_.system = text;
  say(text.empty() ? "There is no system message now." : "The system message is set.");
}

Status Chat::set(std::string_view name, std::string_view value) {
  SamplingParams sampling = settings_.sampling;
  if (name == "seed" && value == "random") {
    settings_.seed.reset();
    return {};
  }
  if (name == "seed") {
    settings_.seed = TRY(parse_number<uint64_t>(name, value));
    return {};
  }
  if (name == "max_new_tokens") {
    auto tokens = TRY(parse_number<int64_t>(name, value));
    if (tokens < 1) return invalid_argument("max_new_tokens is {}, it must be 1 or more", tokens);
    settings_.max_new_tokens = tokens;
    return {};
  }
  auto is_named = [&](const FloatSetting& setting) { return setting.name == name; };
  if (auto it = std::ranges::find_if(kFloatSettings, is_named); it != kFloatSettings.end()) {
    sampling.*it->member = TRY(parse_number<float>(name, value));
  } else if (name == "top_k") {
    sampling.top_k = TRY(parse_number<int>(name, value));
  } else {
    return invalid_argument("{} is not a setting; /help lists them", quote(name));
  }
  TRY(sampling.validate());
  settings_.sampling = std::move(sampling);
  return {};
}

Status Chat::set_json(std::string_view schema) {
  if (schema == "off") {
    settings_.grammar.reset();
    say("Replies are any text.");
    return {};
  }
  GrammarOptions options;
  options.json_object = schema.empty();
  if (!schema.empty()) options.json_schema = std::string(schema);
  std::optional<GrammarSource> grammar = TRY(grammar_source(options));
  TRY(llm_.compile(*grammar));  // what is wrong with it is told now
  settings_.grammar = std::move(grammar);
  say(schema.empty() ? "Replies are JSON objects." : "Replies follow the schema.");
  return {};
}

Status Chat::set_tools(std::string_view source) {
  if (source == "off") {
    settings_.tools = nullptr;
    say("The model has no tools.");
    return {};
  }
  if (source.empty()) return invalid_argument("/tools needs a file, or `off`");
  if (syntax_.tool_calls == nullptr) {
    return unsupported("this model's chat template has no calls of tools that are known here");
  }
  settings_.tools = TRY(read_tool_list(std::string(source)));
  say(fmt::format("The model may call {} tools.", settings_.tools.size()));
  return {};
}

Status Chat::set_thinking(std::string_view value) {
  if (value != "on" && value != "off") return invalid_argument("/think takes on or off");
  settings_.variables["enable_thinking"] = value == "on";
  say(fmt::format("enable_thinking is now {}.", value));
  return {};
}

void Chat::show() const {
  const SamplingParams& s = settings_.sampling;
  std::string text;
  for (const FloatSetting& setting : kFloatSettings) {
    text += fmt::format("{:<20}{:g}\n", setting.name, s.*setting.member);
  }
  text += fmt::format("{:<20}{}\n", "top_k", s.top_k);
  text += fmt::format("{:<20}{}\n", "max_new_tokens",
                      settings_.max_new_tokens ? fmt::format("{}", *settings_.max_new_tokens)
                                               : "the rest of the context");
  text += fmt::format("{:<20}{}\n", "seed",
                      settings_.seed ? fmt::format("{}", *settings_.seed) : "random");
  text += fmt::format("{:<20}{}\n", "replies", settings_.grammar ? "by a grammar" : "any text");
  if (llm_.has_chat_template()) {
    text +=
        fmt::format("{:<20}{}\n", "system", settings_.system.empty() ? "(none)" : settings_.system);
    text += fmt::format("{:<20}{}\n", "tools", settings_.tools.size());
    text += fmt::format("{:<20}{}\n", "messages", messages_.size());
  }
  text += fmt::format("{:<20}{} of {} tokens\n", "context", used_tokens_, context_tokens());
  fmt::print(stderr, "{}", text);
}

int64_t Chat::context_tokens() const {
  const EngineInfo& info = llm_.engine().info();
  return std::min(info.context_length_tokens, info.total_tokens_max);
}

}  // namespace banyan::cli
