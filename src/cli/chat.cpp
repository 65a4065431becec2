#include "cli/chat.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <utility>

#include "base/error.h"
#include "base/file.h"
#include "base/quote.h"
#include "base/space.h"
#include "cli/options/checks.h"
#include "cli/options/options.h"
#include "cli/terminal/terminal.h"
#include "cli/terminal/word_wrap.h"
#include "llm/chat_prompt.h"
#include "llm/llm_parts.h"
#include "llm/messages/tool_declarations.h"
#include "text/tokenizer/tokenizer.h"

namespace banyan::cli {
namespace {

constexpr std::string_view kHelp =
    "/reset, /clear     start over\n"
    "/system TEXT       tell the model how to be; without TEXT: nothing\n"
    "/set NAME VALUE    temperature, top_p, top_k, min_p, typical_p, xtc_probability,\n"
    "                   xtc_threshold, frequency_penalty, presence_penalty,\n"
    "                   repetition_penalty, repeat_last_n, dry_multiplier, dry_base,\n"
    "                   dry_allowed_length, dry_penalty_last_n, max_tokens,\n"
    "                   seed (a number, or `random`)\n"
    "/json SCHEMA       replies are JSON that this schema calls valid: a file, or the schema\n"
    "                   itself; without one any JSON object, `off`: any text\n"
    "/tools FILE        the model may call these tools, a JSON list as OpenAI's clients write it;\n"
    "                   after a call your next message is what the tool gives back; `off`: none\n"
    "/think on|off      whether the model thinks first, if its template knows enable_thinking\n"
    "/show              settings, and how full the context is\n"
    "/quit, /bye        leave; so does Ctrl-D\n"
    "/help, /?          this\n"
    "\n"
    "A line that ends in \\ goes on in the next; \"\"\" begins and ends a longer message. A "
    "message\n"
    "that begins with / is written with two of them. Ctrl-C stops a reply. When the context is "
    "full\n"
    "the oldest messages are dropped. /json and /tools end each other.\n";

template <class T>
struct Setting {
  std::string_view name;
  T SamplingParams::* member;
};
using FloatSetting = Setting<float>;
using IntSetting = Setting<int>;

constexpr std::array kFloatSettings = {
    FloatSetting{"temperature", &SamplingParams::temperature},
    FloatSetting{"top_p", &SamplingParams::top_p},
    FloatSetting{"min_p", &SamplingParams::min_p},
    FloatSetting{"typical_p", &SamplingParams::typical_p},
    FloatSetting{"xtc_probability", &SamplingParams::xtc_probability},
    FloatSetting{"xtc_threshold", &SamplingParams::xtc_threshold},
    FloatSetting{"frequency_penalty", &SamplingParams::frequency_penalty},
    FloatSetting{"presence_penalty", &SamplingParams::presence_penalty},
    FloatSetting{"repetition_penalty", &SamplingParams::repetition_penalty},
    FloatSetting{"dry_multiplier", &SamplingParams::dry_multiplier},
    FloatSetting{"dry_base", &SamplingParams::dry_base},
};
constexpr std::array kIntSettings = {
    IntSetting{"top_k", &SamplingParams::top_k},
    IntSetting{"repeat_last_n", &SamplingParams::repeat_last_n},
    IntSetting{"dry_allowed_length", &SamplingParams::dry_allowed_length},
    IntSetting{"dry_penalty_last_n", &SamplingParams::dry_penalty_last_n},
};

template <class T>
Result<T> parse_number(std::string_view name, std::string_view text) {
  T value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) {
    return invalid_argument("{}: {}", name, not_a_number(std::string(text)));
  }
  return value;
}

// Removes the first word and the spaces after it from `text`; returns the word.
std::string_view take_word(std::string_view& text) {
  size_t end = std::min(text.find(' '), text.size());
  std::string_view word = text.substr(0, end);
  text.remove_prefix(std::min(text.find_first_not_of(' ', end), text.size()));
  return word;
}

void say(std::string_view text) {
  fmt::print(stderr, "{}{}{}\n", dim(), text, undim());
}

// The reply as stored in the conversation, with tool calls separate from text.
Json assistant_message(MessageDelta reply, size_t turn) {
  Json message = {{"role", "assistant"}, {"content", std::move(reply.content)}};
  for (ToolCallDelta& call : reply.calls) {
    message["tool_calls"].push_back(
        {{"id", fmt::format("call_{}_{}", turn, call.index)},
         {"type", "function"},
         {"function", {{"name", std::move(call.name)}, {"arguments", std::move(call.arguments)}}}});
  }
  return message;
}

}  // namespace

Result<ChatTools> read_chat_tools(const std::string& text_or_file) {
  bool in_place = trim_space(text_or_file).starts_with('[');
  std::string name = in_place ? "the list of tools" : text_or_file;
  ChatTools tools{.json = TRY(parse_json(in_place ? text_or_file : TRY(read_file(name)), name))};
  Result<std::vector<Tool>> declared = read_tool_declarations(tools.json);
  if (!declared) return invalid_argument("{}{}", name, declared.error().message);
  tools.declared = *std::move(declared);
  if (tools.declared.empty()) return invalid_argument("{} contains no tool", name);
  return tools;
}

Chat::Chat(Llm& llm, ChatSettings settings) : llm_(llm), settings_(std::move(settings)) {
  std::string form = tokenizer_of(llm)->chat_template().value_or("");
  syntax_ = find_chat_syntax("auto", "auto", form).value();  // "auto" is always a name
}

Status Chat::check_tools() const {
  if (settings_.tools.declared.empty() || syntax_.tool_calls != nullptr) return {};
  return unsupported("the tool-call format of this model's chat template is not supported");
}

Chat::Next Chat::command(std::string_view line) {
  std::string_view rest = line;
  std::string_view name = take_word(rest);
  if (name == "/quit" || name == "/exit" || name == "/bye") return Next::kLeave;
  if (name == "/help" || name == "/?") {
    fmt::print(stderr, "{}", kHelp);
  } else if (name == "/reset" || name == "/clear") {
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
  const Tokenizer& tokenizer = *tokenizer_of(llm_);
  TextRequest request;
  request.options = settings_.options;
  if (!llm_.has_chat_template()) {
    request.ids = TRY(tokenizer.encode(text_ + message["content"].get<std::string>()));
    return request;
  }
  ChatPrompt prompt{.messages = Json::array(),
                    .tools = settings_.tools.json,
                    .documents = nullptr,
                    .variables = settings_.variables};
  if (!settings_.system.empty()) {
    prompt.messages.push_back({{"role", "system"}, {"content", settings_.system}});
  }
  for (const Json& said : messages_) prompt.messages.push_back(said);
  prompt.messages.push_back(message);
  request.text = TRY(render_chat(llm_, std::move(prompt)));
  request.ids = TRY(tokenizer.encode(request.text, {.add_special_tokens = false}));
  request.options.skip_special_tokens =
      settings_.tools.declared.empty() || !syntax_.has_special_marks();
  // The grammar of a model that starts with reasoning applies after the reasoning.
  bool thinks = syntax_.reasoning != nullptr &&
                reasoning_start(*syntax_.reasoning, request.text) == ReasoningStart::kInside;
  if (request.options.grammar && thinks) request.options.grammar->after = syntax_.reasoning->end;
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

// Drops the oldest exchange, up to the user's next message; of a plain text, its oldest half. False
// if nothing is left to drop.
bool Chat::drop_oldest() {
  if (!llm_.has_chat_template()) {
    if (text_.empty()) return false;
    size_t end = text_.find('\n', text_.size() / 2);
    text_.erase(0, end == text_.npos ? text_.npos : end + 1);
    return true;
  }
  if (messages_.empty() || !pending_.empty()) return false;
  auto next = std::find_if(messages_.begin() + 1, messages_.end(),
                           [](const Json& said) { return said["role"] == "user"; });
  messages_.erase(messages_.begin(), next);
  return true;
}

// The request for `message`, after dropping as much history as needed to leave room for a reply.
Result<TextRequest> Chat::fitting_request(const Json& message) {
  int64_t context = context_tokens();
  int64_t wanted = std::min(context / 4, settings_.max_new_tokens.value_or(context / 4));
  size_t messages = messages_.size(), bytes = text_.size();
  TextRequest request = TRY(request_with(message));
  auto room = [&] { return context - std::ssize(request.ids); };
  while (room() < std::max<int64_t>(wanted, 1) && drop_oldest()) {
    request = TRY(request_with(message));
  }
  if (messages_.size() < messages) {
    say(fmt::format("The context of {} tokens is full: the {} oldest messages are dropped.",
                    context, messages - messages_.size()));
  } else if (text_.size() < bytes) {
    say(fmt::format("The context of {} tokens is full: the oldest {} characters are dropped.",
                    context, bytes - text_.size()));
  }
  if (room() >= 1) return request;
  return exhausted("this message alone has {} tokens, the context holds {}; a shorter one may fit",
                   request.ids.size(), context);
}

Status Chat::answer(const Json& message) {
  TextRequest request = TRY(fitting_request(message));
  if (request.ids.empty()) return invalid_argument("the message is empty: it has no tokens");
  auto prompt_tokens = std::ssize(request.ids);
  int64_t room = context_tokens() - prompt_tokens;
  request.options.max_new_tokens = std::min(room, settings_.max_new_tokens.value_or(room));
  request.sampling = settings_.sampling;
  request.sampling.seed = settings_.seed.value_or(random_seed());
  std::optional<WordWrap> wrap;
  if (stdout_is_terminal()) wrap.emplace(stdout_columns());
  auto shown_text = [&](std::string_view piece) { write_stdout(wrap ? wrap->add(piece) : piece); };
  Generation g = TRY(llm_.generate(request, shown_text, InterruptScope::raised));
  if (wrap) write_stdout(wrap->finish());
  write_stdout("\n");
  pending_.clear();
  if (llm_.has_chat_template()) {
    messages_.push_back(message);
    take_reply(request.text, g.text);
  } else {
    text_ += message["content"].get<std::string>() + g.text + "\n";
  }
  used_tokens_ = prompt_tokens + std::ssize(g.output_ids);
  report(g);
  return {};
}

// Without tools, keeps the text unparsed: the template handles the model's marks best.
void Chat::take_reply(const std::string& prompt, const std::string& text) {
  if (settings_.tools.declared.empty()) {
    messages_.push_back({{"role", "assistant"}, {"content", text}});
    return;
  }
  MessageParserOptions options{.syntax = syntax_, .tools = settings_.tools.declared};
  if (syntax_.reasoning != nullptr) options.start = reasoning_start(*syntax_.reasoning, prompt);
  messages_.push_back(assistant_message(parse_message(options, text), messages_.size()));
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
    say(fmt::format(
        "The reply is cut: the context of {} tokens is full. The next message drops the "
        "oldest; /reset starts over.",
        context_tokens()));
  } else if (g.finish == FinishReason::kLength) {
    say(fmt::format("Stopped after {} tokens; {} N changes that.", tokens,
                    settings_.one_question ? "--max-tokens (-n)" : "/set max_tokens"));
  }
  if (!stderr_is_terminal()) return;
  std::string speed =
      g.decode_tokens_per_s > 0 ? fmt::format(", {:.1f} tok/s", g.decode_tokens_per_s) : "";
  say(fmt::format("[{} token{}{}; context {} of {}]", tokens, tokens == 1 ? "" : "s", speed,
                  used_tokens_, context_tokens()));
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
  if (name == "seed" && (value == "random" || value == "-1")) {
    settings_.seed.reset();
    return {};
  }
  if (name == "seed") {
    settings_.seed = TRY(parse_number<uint64_t>(name, value));
    return {};
  }
  if (name == "max_new_tokens" || name == "max_tokens") {
    auto tokens = TRY(parse_number<int64_t>(name, value));
    if (tokens < 1 && tokens != -1) {
      return invalid_argument("{} is {}; it must be 1 or more, or -1 (the rest of the context)",
                              name, tokens);
    }
    settings_.max_new_tokens.reset();
    if (tokens > 0) settings_.max_new_tokens = tokens;
    return {};
  }
  auto number = std::ranges::find(kFloatSettings, name, &FloatSetting::name);
  auto integer = std::ranges::find(kIntSettings, name, &IntSetting::name);
  if (number != kFloatSettings.end()) {
    sampling.*number->member = TRY(parse_number<float>(name, value));
  } else if (integer != kIntSettings.end()) {
    sampling.*integer->member = TRY(parse_number<int>(name, value));
    if (sampling.top_k == -1) sampling.top_k = 0;  // another way to say "all"
  } else {
    return invalid_argument("{} is not a setting; /help lists them", quote(name));
  }
  TRY(sampling.validate());
  settings_.sampling = std::move(sampling);
  return {};
}

Status Chat::set_json(std::string_view schema) {
  if (schema == "off") {
    settings_.options.grammar.reset();
    say("Replies are any text.");
    return {};
  }
  GrammarOptions options;
  options.schema_name = "/json";
  options.json_object = schema.empty();
  if (!schema.empty()) options.json_schema = std::string(schema);
  std::optional<GrammarSource> grammar = TRY(grammar_source(options));
  TRY(compile_grammar(llm_, *grammar));  // report errors now
  settings_.options.grammar = std::move(grammar);
  std::string reply = schema.empty() ? "Replies are JSON objects." : "Replies follow the schema.";
  if (!settings_.tools.declared.empty()) reply += " The model has no tools while they do.";
  settings_.tools = {};
  pending_.clear();
  say(reply);
  return {};
}

Status Chat::set_tools(std::string_view source) {
  if (source == "off") {
    settings_.tools = {};
    say("The model has no tools.");
    return {};
  }
  if (source.empty()) return invalid_argument("/tools needs a file, or `off`");
  ChatTools before = std::exchange(settings_.tools, TRY(read_chat_tools(std::string(source))));
  if (Status known = check_tools(); !known) {
    settings_.tools = std::move(before);
    return known;
  }
  size_t count = settings_.tools.declared.size();
  bool ends_json = settings_.options.grammar.has_value();
  settings_.options.grammar.reset();
  say(fmt::format("The model may call {} tool{}.{}", count, count == 1 ? "" : "s",
                  ends_json ? " Replies are any text again." : ""));
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
  text +=
      fmt::format("{:<20}{}\n", "replies", settings_.options.grammar ? "by a grammar" : "any text");
  if (llm_.has_chat_template()) {
    text +=
        fmt::format("{:<20}{}\n", "system", settings_.system.empty() ? "(none)" : settings_.system);
    text += fmt::format("{:<20}{}\n", "tools", settings_.tools.declared.size());
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
