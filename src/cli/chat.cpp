#include "cli/chat.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>

#include "base/error.h"
#include "base/quote.h"
#include "cli/options.h"
#include "cli/terminal.h"
#include "text/tokenizer.h"

namespace banyan::cli {
namespace {

constexpr std::string_view kHelp =
    "/reset             start over\n"
    "/system TEXT       tell the model how to be; without TEXT: nothing\n"
    "/set NAME VALUE    temperature, top_p, top_k, min_p, frequency_penalty, presence_penalty,\n"
    "                   repetition_penalty, max_new_tokens, seed (a number, or `random`)\n"
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

void say(std::string_view text) {
  fmt::print(stderr, "{}{}{}\n", dim(), text, undim());
}

}  // namespace

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
  } else {
    say(fmt::format("{} is not a command; /help lists them, // begins a message with /",
                    quote(name)));
  }
  return Next::kGoOn;
}

Result<std::vector<TokenId>> Chat::prompt_with(const std::string& message) const {
  const Tokenizer& tokenizer = *llm_.tokenizer();
  if (!llm_.has_chat_template()) return tokenizer.encode(text_ + message);
  std::vector<ChatMessage> messages;
  if (!settings_.system.empty()) messages.push_back({"system", settings_.system});
  messages.insert(messages.end(), messages_.begin(), messages_.end());
  messages.push_back({"user", message});
  std::string text = TRY(llm_.apply_chat_template(messages, settings_.template_variables));
  return tokenizer.encode(text, {.add_special_tokens = false});
}

Status Chat::reply(const std::string& message) {
  if (llm_.has_chat_template() && message.empty()) return {};
  TextRequest request;
  request.ids = TRY(prompt_with(message));
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
  if (llm_.has_chat_template()) {
    messages_.push_back({"user", message});
    messages_.push_back({"assistant", g.text});
  } else {
    text_ += message + g.text + "\n";
  }
  used_tokens_ = prompt_tokens + static_cast<int64_t>(g.output_ids.size());
  report(g);
  return {};
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
  if (llm_.has_chat_template()) {
    text +=
        fmt::format("{:<20}{}\n", "system", settings_.system.empty() ? "(none)" : settings_.system);
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
