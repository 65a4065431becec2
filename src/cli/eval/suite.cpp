#include "cli/eval/suite.h"

#include <algorithm>
#include <cmath>
#include <memory>

#include "base/error.h"
#include "base/signed.h"
#include "cli/eval/ask_many.h"
#include "cli/terminal/terminal.h"
#include "llm/chat_prompt.h"
#include "llm/llm_parts.h"
#include "llm/messages/message_parser.h"
#include "llm/messages/tool_declarations.h"
#include "text/tokenizer/tokenizer.h"

namespace banyan::cli {
namespace {

Result<std::string> render(const Llm& llm, const SuiteCase& asked) {
  ChatPrompt prompt{.messages = asked.messages, .tools = asked.tools, .documents = nullptr};
  prompt.variables["enable_thinking"] = asked.think;
  return render_chat(llm, std::move(prompt));
}

Result<SuiteReply> read_reply(const ChatSyntax& syntax, const SuiteCase& asked,
                              const std::string& prompt, const std::string& text) {
  MessageParserOptions options{.syntax = syntax, .tools = {}};
  if (!asked.tools.is_null()) options.tools = TRY(read_tool_declarations(asked.tools));
  if (syntax.reasoning != nullptr) options.start = reasoning_start(*syntax.reasoning, prompt);
  MessageDelta message = parse_message(options, text);
  SuiteReply reply{.content = std::move(message.content), .call = nullptr};
  if (message.calls.empty()) return reply;
  const ToolCallDelta& call = message.calls[0];
  Result<Json> arguments = parse_json(call.arguments, "the arguments");
  reply.call = {{"name", call.name},
                {"arguments", arguments ? *std::move(arguments) : Json(call.arguments)}};
  return reply;
}

TextRequest request_for(const SuiteCase& asked, const ChatSyntax& syntax, std::string prompt,
                        int64_t max_tokens, bool constrained) {
  TextRequest request{.text = std::move(prompt),
                      .add_special_tokens = false,
                      .sampling = {.temperature = 0},
                      .options = {.max_new_tokens = max_tokens,
                                  .skip_special_tokens = !syntax.has_special_marks()}};
  if (constrained) request.options.grammar = GrammarSource::json_schema(asked.schema);
  return request;
}

Result<SuiteAnswer> read_answer(const ChatSyntax& syntax, const SuiteCase& asked,
                                const std::string& prompt, Generation generation) {
  SuiteAnswer answer{.reply = TRY(read_reply(syntax, asked, prompt, generation.text)),
                     .tokens = std::move(generation.output_ids)};
  answer.right = is_right(asked, answer.reply);
  if (asked.schema.empty()) return answer;
  Grammar grammar = TRY(Grammar::from_json_schema(asked.schema, {.flexible_whitespace = true}));
  answer.valid = grammar.matches(answer.reply.content);
  return answer;
}

}  // namespace

Result<std::vector<SuiteAnswer>> ask_suite(Llm& llm, const std::vector<SuiteCase>& cases,
                                           int64_t max_tokens, bool constrained,
                                           const std::function<void(size_t)>& answered) {
  TRY(chat_template_of(llm));
  ChatSyntax syntax =
      TRY(find_chat_syntax("auto", "auto", tokenizer_of(llm)->chat_template().value_or("")));
  std::vector<SuiteAnswer> answers(cases.size());
  std::vector<std::string> prompts;
  size_t done = 0;
  ManyAsked asked{.at_once = as_size(std::max(llm.config().queued_max, 1))};
  asked.next = [&]() -> Result<std::optional<ManyAsked::Request>> {
    size_t index = prompts.size();
    if (index == cases.size()) return std::nullopt;
    prompts.push_back(TRY(render(llm, cases[index])));
    return ManyAsked::Request{
        index, request_for(cases[index], syntax, prompts[index], max_tokens, constrained)};
  };
  asked.take = [&](size_t index, Result<Generation> generation) -> Status {
    answers[index] =
        TRY(read_answer(syntax, cases[index], prompts[index], TRY(std::move(generation))));
    answered(++done);
    return {};
  };
  TRY(ask_many(llm, asked));
  return answers;
}

Result<std::vector<SuiteAnswer>> score_suite(Llm& llm, const std::vector<SuiteCase>& cases,
                                             const std::function<void(size_t)>& answered) {
  std::vector<SuiteAnswer> answers;
  for (const SuiteCase& asked : cases) {
    if (InterruptScope::raised()) break;
    std::string prompt = TRY(render(llm, asked));
    auto encode = [&](const std::string& text) {
      return tokenizer_of(llm)->encode(text, {.add_special_tokens = false});
    };
    std::vector<TokenId> ids = TRY(encode(prompt));
    size_t begin = ids.size();
    for (TokenId id : TRY(encode(asked.answer.get<std::string>()))) ids.push_back(id);
    SuiteAnswer answer;
    std::vector<std::optional<float>> logprobs = TRY(llm.score(ids));
    for (size_t i = begin; i < logprobs.size(); ++i) {
      answer.bits -= logprobs[i].value_or(0) / std::log(2.0);
    }
    answers.push_back(std::move(answer));
    answered(answers.size());
  }
  return answers;
}

}  // namespace banyan::cli
