#include "cli/bench/recorded_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/divide.h"
#include "base/error.h"
#include "base/json.h"
#include "base/json_text.h"
#include "base/signed.h"
#include "base/space.h"
#include "llm/chat_prompt.h"

namespace banyan::cli {
namespace {

Status check_messages(const Json& list, const std::string& where) {
  if (!list.is_array() || list.empty()) return corrupt("{}: messages is not a list", where);
  for (const Json& m : list) {
    bool valid = m.is_object() && m.contains("role") && m["role"].is_string() &&
                 m.contains("content") && m["content"].is_string();
    if (!valid) return corrupt("{}: a message has no role and content, both texts", where);
  }
  return {};
}

Result<RecordedText> read_text(const Json& json, const std::string& where) {
  auto field = [&](const char* name) { return json.contains(name) ? json[name] : Json(); };
  if (!json.is_object()) return corrupt("{}: it is not a JSON object", where);
  Json name = json.contains("name") ? json["name"] : field("suite");
  if (!name.is_string()) return corrupt("{}: name is not a text", where);
  RecordedText text{.name = name.get<std::string>(),
                    .messages = field("messages"),
                    .tools = field("tools"),
                    .think = field("think") == true};
  TRY(check_messages(text.messages, where));
  if (const Json& last = text.messages.back(); last["role"] == "assistant") {
    text.answer = last["content"].get<std::string>();
    text.messages.erase(text.messages.size() - 1);
  }
  if (Json schema = field("schema"); !schema.is_null()) {
    text.constraint = GrammarSource::json_schema(dump_json(schema));
  }
  return text;
}

// As the model's template writes it, or plainly if it has none.
Result<std::string> prompt_of(const Llm& llm, const RecordedText& text) {
  if (llm.has_chat_template()) {
    ChatPrompt prompt{.messages = text.messages, .tools = text.tools, .documents = nullptr};
    prompt.variables["enable_thinking"] = text.think;
    return render_chat(llm, std::move(prompt));
  }
  std::string prompt;
  for (const Json& m : text.messages) {
    prompt += fmt::format("{}: {}\n\n", m["role"].get_ref<const std::string&>(),
                          m["content"].get_ref<const std::string&>());
  }
  return prompt + "assistant: ";
}

// The constraint has to allow each token in turn. Leaves it as it was.
Status check_allowed(TokenConstraint& constraint, const std::vector<TokenId>& tokens,
                     int64_t vocabulary, const std::string& name) {
  std::vector<uint32_t> mask(as_size(divide_up(vocabulary, 32)));
  for (size_t i = 0; i < tokens.size(); ++i) {
    std::ranges::fill(mask, 0u);
    constraint.fill_mask(mask);
    auto token = as_size(tokens[i]);
    if (((mask[token / 32] >> (token % 32)) & 1u) == 0) {
      return invalid_argument("{}: the schema forbids token {} of the recorded answer", name, i);
    }
    constraint.accept(tokens[i]);
  }
  constraint.rollback(static_cast<int>(tokens.size()));
  return {};
}

}  // namespace

Result<std::vector<RecordedText>> parse_recorded_texts(std::string_view text,
                                                       const std::string& source) {
  std::vector<RecordedText> texts;
  if (Json whole = Json::parse(text, nullptr, false); !whole.is_discarded()) {
    texts.push_back(TRY(read_text(whole, source)));
    return texts;
  }
  int number = 0;
  for (size_t begin = 0; begin < text.size();) {
    size_t end = std::min(text.find('\n', begin), text.size());
    std::string_view line = trim_space(text.substr(begin, end - begin));
    begin = end + 1;
    std::string where = fmt::format("{}:{}", source, ++number);
    if (line.empty()) continue;
    texts.push_back(TRY(read_text(TRY(parse_json(line, where)), where)));
  }
  if (texts.empty()) return corrupt("{}: there is no conversation", source);
  return texts;
}

Result<RecordedRequest> to_request(const Llm& llm, const RecordedText& text,
                                   int64_t new_tokens_max) {
  RecordedRequest result;
  TextRequest request{.text = TRY(prompt_of(llm, text)),
                      .add_special_tokens = !llm.has_chat_template(),
                      .sampling = {.temperature = 0},
                      .options = {.max_new_tokens = new_tokens_max, .grammar = text.constraint}};
  if (text.answer) {
    result.recorded = TRY(llm.encode(*text.answer, false));
    if (result.recorded.empty()) return invalid_argument("{}: the answer is empty", text.name);
    request.options.max_new_tokens = std::ssize(result.recorded);
    request.options.ignore_eos = true;
  }
  result.request = TRY(llm.to_tokens(request));
  if (text.answer && result.request.constraint) {
    TRY(check_allowed(*result.request.constraint, result.recorded, llm.info().vocabulary,
                      text.name));
  }
  return result;
}

}  // namespace banyan::cli
