#include "cli/suite_run.h"

#include <algorithm>
#include <cmath>
#include <memory>

#include "base/error.h"
#include "cli/terminal.h"
#include "llm/chat_prompt.h"
#include "llm/message_parser.h"
#include "llm/text_stream.h"
#include "llm/tool_declarations.h"
#include "text/tokenizer.h"

namespace banyan::cli {
namespace {

struct AskedCase {
  TextStream stream;
  std::string text;
  std::vector<TokenId> tokens;
};

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

class SuiteRun {
 public:
  SuiteRun(Llm& llm, const std::vector<SuiteCase>& cases, int64_t max_tokens, bool constrained)
      : llm_(llm), cases_(cases), max_tokens_(max_tokens), constrained_(constrained) {}

  Result<std::vector<SuiteAnswer>> run(const std::function<void(size_t)>& answered) {
    TRY(llm_.chat_template());
    syntax_ = TRY(find_chat_syntax("auto", "auto", llm_.tokenizer()->chat_template().value_or("")));
    answers_.resize(cases_.size());
    TRY(ask_more());
    while (done_ < cases_.size() && !InterruptScope::raised() && llm_.engine().step()) {
      TRY(std::exchange(status_, {}));
      TRY(ask_more());
      answered(done_);
    }
    return std::move(answers_);
  }

 private:
  // As many as may wait.
  Status ask_more() {
    auto waiting_max = static_cast<size_t>(std::max(llm_.config().queued_max, 1));
    while (asked_ < cases_.size() && asked_ - done_ < waiting_max) TRY(ask(asked_++));
    return {};
  }

  Status ask(size_t index) {
    std::string prompt = TRY(render(llm_, cases_[index]));
    TextRequest request{.text = prompt, .add_special_tokens = false};
    request.sampling.temperature = 0;
    request.max_new_tokens = max_tokens_;
    request.skip_special_tokens = !syntax_.has_special_marks();
    if (constrained_)
      request.grammar =
          GrammarSource{.kind = GrammarSource::Kind::kJsonSchema, .text = cases_[index].schema};
    GenerateRequest tokens = TRY(llm_.to_tokens(request));
    auto asked = std::make_shared<AskedCase>(
        AskedCase{TextStream(llm_.tokenizer(), tokens.prompt,
                             {.stop = {}, .skip_special_tokens = request.skip_special_tokens}),
                  "",
                  {}});
    auto take = [this, index, asked, prompt](const TokenEvent& event) {
      if (event.has_token) asked->tokens.push_back(event.token);
      asked->text += asked->stream.take(event).text;
      if (event.finish != FinishReason::kNone) finish(index, prompt, *asked);
    };
    TRY(llm_.engine().submit(std::move(tokens), take));
    return {};
  }

  void finish(size_t index, const std::string& prompt, AskedCase& asked) {
    ++done_;
    Status settled = settle(cases_[index], prompt, asked, answers_[index]);
    if (!settled) status_ = std::move(settled);
  }

  Status settle(const SuiteCase& question, const std::string& prompt, AskedCase& asked,
                SuiteAnswer& answer) {
    if (asked.stream.finish() == FinishReason::kError) {
      return std::unexpected(asked.stream.error());
    }
    answer.tokens = std::move(asked.tokens);
    answer.reply = TRY(read_reply(syntax_, question, prompt, asked.text));
    answer.right = is_right(question, answer.reply);
    if (question.schema.empty()) return {};
    Grammar grammar =
        TRY(Grammar::from_json_schema(question.schema, {.flexible_whitespace = true}));
    answer.valid = grammar.matches(answer.reply.content);
    return {};
  }

  Llm& llm_;
  const std::vector<SuiteCase>& cases_;
  int64_t max_tokens_;
  bool constrained_;
  ChatSyntax syntax_;
  std::vector<SuiteAnswer> answers_;
  size_t asked_ = 0, done_ = 0;
  Status status_;
};

}  // namespace

Result<std::vector<SuiteAnswer>> ask_suite(Llm& llm, const std::vector<SuiteCase>& cases,
                                           int64_t max_tokens, bool constrained,
                                           const std::function<void(size_t)>& answered) {
  return SuiteRun(llm, cases, max_tokens, constrained).run(answered);
}

Result<std::vector<SuiteAnswer>> score_suite(Llm& llm, const std::vector<SuiteCase>& cases,
                                             const std::function<void(size_t)>& answered) {
  std::vector<SuiteAnswer> answers;
  for (const SuiteCase& asked : cases) {
    if (InterruptScope::raised()) break;
    std::string prompt = TRY(render(llm, asked));
    auto encode = [&](const std::string& text) {
      return llm.tokenizer()->encode(text, {.add_special_tokens = false});
    };
    std::vector<TokenId> ids = TRY(encode(prompt));
    size_t begin = ids.size();
    for (TokenId id : TRY(encode(asked.answer.get<std::string>()))) ids.push_back(id);
    SuiteAnswer answer;
    std::vector<std::optional<float>> logprobs = TRY(llm.score(ids));
    for (size_t i = begin; i < logprobs.size(); ++i) {
      answer.bits -= static_cast<double>(logprobs[i].value_or(0)) / std::log(2.0);
    }
    answers.push_back(std::move(answer));
    answered(answers.size());
  }
  return answers;
}

}  // namespace banyan::cli
